package expr

import (
	"slices"
	"strings"
	"time"

	"agentsite/device"
)

const (
	maxNodes  = 128
	maxDepth  = 32
	minWindow = time.Second
	maxWindow = 24 * time.Hour
)

// reserved are the words that join operands; functions and days are words only in their places.
var reserved = map[string]bool{"and": true, "or": true, "not": true, "is": true, "between": true}

var days = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

var months = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// parser holds what is parsed. After the first mistake, err, only the end of the text follows.
type parser struct {
	text   string
	lookup func(string) (Point, bool)
	names  func() []string
	tok    token
	err    *Error
	nodes  int
	depth  int
	prog   *Program
}

// Compile compiles a condition: an expression that is true or false. It adds what that uses, and u
// then belongs to the Program, too. lookup describes the point with an address as it is written,
// device/point or site/device/point; ok is false where there is none, and the nearest of names is then
// suggested, which is called only for an error. The error is an *Error.
func (u *Uses) Compile(text string, lookup func(address string) (p Point, ok bool), names func() []string) (*Program, error) {
	p := &parser{text: text, lookup: lookup, names: names, prog: &Program{text: text, uses: u}}
	x := p.whole(p.or, "the condition is empty: write such as climate/temperature < 5 Cel", "and or or")
	p.wantBool(x)
	if p.err != nil {
		return nil, p.err
	}
	p.prog.root = x.node
	return p.prog, nil
}

// whole parses all of the text. empty is the mistake of a text without anything, and next what may follow
// the parsed part.
func (p *parser) whole(parse func() operand, empty, next string) operand {
	p.checkText()
	p.advance()
	if p.tok.kind == tokEnd {
		p.fail(0, 0, "%s", empty)
	}
	x := parse()
	if p.tok.kind != tokEnd {
		p.unexpected(next)
	}
	return x
}

// add counts a node.
func (p *parser) add(n node) *node {
	if p.nodes++; p.nodes > maxNodes {
		p.fail(p.tok.off, p.tok.end, "the condition has more than %d parts: split it into two rules", maxNodes)
	}
	return &n
}

func (p *parser) isOperator(text string) bool { return p.tok.kind == tokOperator && p.tok.text == text }
func (p *parser) isWord(text string) bool     { return p.tok.kind == tokWord && p.tok.text == text }

// expect skips punctuation.
func (p *parser) expect(text, example string) {
	if !p.isOperator(text) {
		p.fail(p.tok.off, p.tok.end, "%s is missing here: write such as %s", text, example)
	}
	p.advance()
}

// unexpected refuses the token; expected is what could stand there.
func (p *parser) unexpected(expected string) {
	t := p.tok
	written := p.text[t.off:t.end]
	small := strings.ToLower(written)
	switch {
	case t.kind == tokEnd:
		p.fail(t.off, t.end, "the condition ends too early: %s is missing", expected)
	case t.kind == tokWord && small != written && reserved[small]:
		p.fail(t.off, t.end, "write %s in small letters", small)
	case t.kind == tokWord && written == "not":
		p.fail(t.off, t.end, "not stands before a whole comparison: write such as not door/position == open")
	case t.kind == tokWord && written == "in":
		p.fail(t.off, t.end, "in is not used here: write such as month between oct..apr")
	case written == ",":
		p.fail(t.off, t.end, "a comma separates the arguments of functions only: a number has a point, such as 0.5")
	default:
		p.fail(t.off, t.end, "%s cannot stand here: %s is missing before it", clip(written), expected)
	}
}

// nested parses one level deeper.
func (p *parser) nested(parse func() operand) operand {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.tok.off, p.tok.end, "the condition is nested deeper than %d: split it into two rules", maxDepth)
		return operand{}
	}
	x := parse()
	p.depth--
	return x
}

func (p *parser) or() operand  { return p.logic("or", opOr, p.and) }
func (p *parser) and() operand { return p.logic("and", opAnd, p.not) }

func (p *parser) logic(word string, o op, operand func() operand) operand {
	x := operand()
	for p.isWord(word) {
		p.wantBool(x)
		p.advance()
		y := operand()
		p.wantBool(y)
		x = p.join(typBool, x, y, node{op: o})
	}
	return x
}

func (p *parser) not() operand {
	if !p.isWord("not") {
		return p.comparison()
	}
	off := p.tok.off
	p.advance()
	x := p.nested(p.not)
	p.wantBool(x)
	x = p.join(typBool, x, operand{}, node{op: opNot})
	x.off = off
	return x
}

// calendarWords can be values of states, too.
var calendarWords = []string{"month", "date", "holiday"}

var relations = map[string]op{"==": opEqual, "is": opEqual, "!=": opNotEqual, "<": opLess, "<=": opLessEqual, ">": opGreater, ">=": opGreaterEqual}

// relation returns the operator of comparison that the token is.
func (p *parser) relation() (op, bool) {
	o, ok := relations[p.tok.text]
	return o, ok && (p.tok.kind == tokOperator || p.tok.kind == tokWord)
}

func (p *parser) comparison() operand {
	x := p.sum()
	at := p.tok
	o, ok := p.relation()
	switch {
	case p.isWord("between"):
		p.advance()
		lo := p.sum()
		if !p.isOperator("..") && !p.isWord("and") {
			p.unexpected("..")
		}
		p.advance()
		x = p.between(x, lo, p.sum())
	case ok:
		p.advance()
		if at.text == "is" && p.isWord("not") {
			p.fail(at.off, p.tok.end, "is not is not used here: write !=")
		}
		if t := p.tok; t.kind == tokWord && (x.typ == typText || x.typ == typAny) && slices.Contains(calendarWords, t.text) {
			x = p.compare(o, at, x, p.constant(typWord, device.Text(t.text))) // a value of the state
			break
		}
		x = p.compare(o, at, x, p.sum())
	default:
		return x
	}
	if _, ok := p.relation(); ok || p.isWord("between") {
		p.fail(p.tok.off, p.tok.end, "a comparison has two sides: write such as a < b and b < c")
	}
	return x
}

func (p *parser) sum() operand {
	x := p.product()
	for p.isOperator("+") || p.isOperator("-") {
		at := p.tok
		p.advance()
		x = p.plus(at, x, p.product())
	}
	return x
}

func (p *parser) product() operand {
	x := p.primary()
	for p.isOperator("*") || p.isOperator("/") {
		at := p.tok
		p.advance()
		x = p.times(at, x, p.primary())
	}
	return x
}

func (p *parser) primary() operand {
	t := p.tok
	switch {
	case t.kind == tokNumber:
		return p.constant(typNumber, device.Number(t.num))
	case t.kind == tokLength:
		return p.constant(typLength, device.Number(t.num))
	case t.kind == tokClock:
		return p.constant(typClock, device.Number(t.num))
	case t.kind == tokDate:
		return p.constant(typDay, device.Number(t.num))
	case t.kind == tokText:
		return p.constant(typText, device.Text(t.text))
	case t.kind == tokAddress:
		return p.value()
	case p.isOperator("("):
		p.advance()
		x := p.nested(p.or)
		x.off, x.end = t.off, p.tok.end
		p.expect(")", "(a or b) and c")
		x.literal = false
		return x
	case p.isOperator("-"):
		return p.negative()
	case t.kind != tokWord || reserved[strings.ToLower(t.text)]:
		p.unexpected("a point, a number or a function")
		return operand{}
	}
	if p.at(p.skipSpace(t.end)) == '(' {
		return p.call()
	}
	return p.word()
}

// negative parses a negative number.
func (p *parser) negative() operand {
	minus := p.tok
	p.advance()
	if p.tok.kind != tokNumber || p.tok.off != minus.end {
		p.fail(minus.off, minus.end, "only a number can be negative, such as -5: write 0 - before anything else, with the unit of what follows")
	}
	p.tok.off, p.tok.text = minus.off, "-"+p.tok.text
	return p.constant(typNumber, device.Number(-p.tok.num))
}

// constant makes an operand of the token.
func (p *parser) constant(t typ, v device.Value) operand {
	x := operand{node: p.add(node{val: v}), typ: t, unit: p.tok.unit, off: p.tok.off, end: p.tok.end, literal: true, word: p.tok.text}
	p.advance()
	return x
}

func (p *parser) word() operand {
	clock := func(t typ, o op, varies uint8) operand {
		x := operand{node: p.add(node{op: o}), typ: t, off: p.tok.off, end: p.tok.end, varies: varies}
		p.prog.usesClock = true
		p.advance()
		return x
	}
	switch p.tok.text {
	case "on", "true":
		return p.constant(typBool, device.Bool(true))
	case "off", "false":
		return p.constant(typBool, device.Bool(false))
	case "now":
		return clock(typClock, opNow, variesNow)
	case "weekday":
		return clock(typWeekday, opWeekday, variesDay)
	case "month":
		return clock(typMonth, opMonth, variesDay)
	case "date":
		return clock(typDate, opDate, variesDay)
	case "holiday":
		if p.prog.uses.Holiday == nil {
			p.fail(p.tok.off, p.tok.end, `holiday needs a list of days: add such as "holidays: [dec 25, 2027-03-26]" under site:`)
		}
		x := clock(typBool, opHoliday, variesDay)
		x.node.wait = waitDay
		return x
	case "sunrise", "sunset":
		p.prog.usesSun = true
		o := opSunrise
		if p.tok.text == "sunset" {
			o = opSunset
		}
		return clock(typClock, o, variesDay)
	}
	word := p.constant(typWord, device.Text(p.tok.text))
	if month := slices.Index(months, word.word) + 1; month > 0 && p.tok.kind == tokNumber && p.tok.unit == "" {
		return p.yearly(word, month)
	}
	return word
}

// yearly parses the day after a month.
func (p *parser) yearly(month operand, number int) operand {
	day := p.tok.num
	x := p.constant(typDate, device.Number(float64(number)*100+day))
	x.off, x.word = month.off, p.text[month.off:x.end]
	if day < 1 || time.Date(2000, time.Month(number), int(day), 0, 0, 0, 0, time.UTC).Day() != int(day) ||
		day != float64(int(day)) {
		p.fail(x.off, x.end, "%s is not a date: write such as dec 24, or 2026-12-24 for one year", clip(x.word))
	}
	return x
}

// point looks up the address that the token is.
func (p *parser) point() (operand, Point) {
	t := p.tok
	if t.kind != tokAddress {
		p.unexpected("a point's address, device/point,")
		return operand{}, Point{}
	}
	pt, ok := p.lookup(t.text)
	if !ok {
		p.unknownPoint(t)
		return operand{}, Point{}
	}
	i := p.prog.uses.Add(t.text)
	x := operand{node: p.add(node{index: int32(i)}), off: t.off, end: t.end}
	p.advance()
	return x, pt
}

func (p *parser) unknownPoint(t token) {
	if rest := t.text[1:]; t.text[0] == '-' && slices.Contains(p.names(), rest) {
		p.fail(t.off, t.end, "only a number can be negative: write 0 - %s, with the unit of %[1]s", rest)
	}
	for i := len(t.text) - 1; i > 0; i-- {
		if c := t.text[i]; c == '-' || c == '/' {
			if _, ok := p.lookup(t.text[:i]); ok && i+1 < len(t.text) {
				p.fail(t.off, t.end, "there is no point %s: if you mean arithmetic, write %s %c %s", t.text, t.text[:i], c, t.text[i+1:])
				return
			}
		}
	}
	p.fail(t.off, t.end, "there is no point %s%s", t.text, device.Suggest(t.text, p.names(), "point"))
}

// value parses a point that stands for its value.
func (p *parser) value() operand {
	x, pt := p.point()
	if p.err != nil {
		return x
	}
	x.node.op, x.unit, x.values = opPoint, pt.Unit, pt.Values
	at := p.source(x)
	switch {
	case pt.Kind == "":
		x.typ, x.unit = typAny, anyUnit
	case pt.Kind == device.KindMeasurement || pt.Kind == device.KindLevel:
		x.typ, x.node.want = typNumber, device.TypeNumber
	case pt.Kind == device.KindState && len(pt.Values) > 0:
		x.typ, x.node.want = typText, device.TypeText
	case pt.Kind == device.KindState || pt.Kind == device.KindSwitch:
		x.typ, x.node.want = typBool, device.TypeBool
	case pt.Kind == device.KindEvent:
		p.fail(x.off, x.end, "%s is an event and has no value: write age(%[1]s) < 1m or count(%[1]s, 10m) > 0", at)
	default:
		p.fail(x.off, x.end, "%s is of kind %s and has no value: only age(%[1]s) and known(%[1]s) can be used", at, pt.Kind)
	}
	return x
}

// call parses a function with its arguments.
func (p *parser) call() operand {
	f := p.tok
	var x operand
	switch f.text {
	case "min", "max":
		p.open()
		x = p.nested(p.sum)
		if !p.isOperator(",") {
			p.fail(p.tok.off, p.tok.end, "%s compares two or more: write such as %[1]s(a/b, c/d)", f.text)
		}
		for p.isOperator(",") {
			p.advance()
			x = p.extreme(f, x, p.nested(p.sum))
		}
	case "clamp":
		p.open()
		x = p.clamp()
	case "abs":
		p.open()
		x = p.absolute(p.nested(p.sum))
	case "age", "known":
		p.open()
		x = p.reading(f.text)
	default:
		i := slices.Index(windowNames[:], f.text)
		if i < 0 {
			known := append([]string{"min", "max", "clamp", "abs", "age", "known"}, windowNames[:]...)
			p.fail(f.off, f.end, "there is no function %s%s", clip(f.text), device.Suggest(f.text, known, "function"))
			return x
		}
		p.open()
		x = p.window(f, WindowFunc(i))
	}
	x.off, x.end = f.off, p.tok.end
	p.expect(")", f.text+"(…)")
	x.literal = false
	return x
}

// open skips the name of a function and the parenthesis.
func (p *parser) open() {
	p.advance()
	p.advance()
}

func (p *parser) reading(function string) operand {
	x, pt := p.point()
	switch {
	case p.err != nil:
	case function == "age":
		x.node.op, x.typ, x.varies = opAge, typLength, variesAge
	case pt.Kind == device.KindEvent:
		p.fail(x.off, x.end, "%s is an event and has no value that could be known: write age(%[1]s) or count(%[1]s, 10m)", p.source(x))
	default:
		x.node.op, x.typ = opKnown, typBool
	}
	return x
}

func (p *parser) window(f token, fn WindowFunc) operand {
	x, pt := p.point()
	if p.err != nil {
		return x
	}
	number := pt.Kind == "" || pt.Kind == device.KindMeasurement || pt.Kind == device.KindLevel
	counted := pt.Kind == device.KindEvent || pt.Kind == device.KindState && len(pt.Values) == 0
	switch {
	case fn == Count && !number && !counted:
		p.fail(x.off, x.end, "count works on numbers, events and states that are on or off, and %s is none of them", p.source(x))
	case fn != Count && !number:
		p.fail(x.off, x.end, "%s works on numbers, and %s is of kind %s", f.text, p.source(x), pt.Kind)
	}
	if !p.isOperator(",") {
		p.fail(p.tok.off, p.tok.end, "%s needs a length of time: write %[1]s(%s, 10m)", f.text, p.source(x))
	}
	p.advance()
	t := p.tok
	length := time.Duration(t.num)
	switch {
	case t.kind != tokLength:
		p.fail(t.off, t.end, "the length of %s is a time such as 10m: write %[1]s(%s, 10m)", f.text, p.source(x))
	case length < minWindow || length > maxWindow:
		p.fail(t.off, t.end, "%s looks back 1s to 24h, not %s", f.text, t.text)
	}
	p.advance()
	w := Window{int(x.node.index), fn, length}
	i := slices.Index(p.prog.uses.Windows, w)
	if i < 0 {
		i = len(p.prog.uses.Windows)
		p.prog.uses.Windows = append(p.prog.uses.Windows, w)
	}
	x.typ, x.unit = typNumber, pt.Unit
	*x.node = node{op: opWindow, index: int32(i), val: device.Number(float64(length)), want: device.TypeNumber}
	switch {
	case fn == Count:
		x.unit = ""
	case pt.Kind == "":
		x.unit, x.node.want = anyUnit, device.TypeNone
	}
	return x
}
