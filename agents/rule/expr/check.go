package expr

import (
	"cmp"
	"slices"
	"strings"

	"agentsite/device"
)

type typ uint8

const (
	typNone typ = iota
	typAny      // a point whose description is not known yet
	typBool
	typNumber
	typText
	typWord // not in quotes: what it means depends on what it is compared with
	typLength
	typClock
	typWeekday
	typMonth
	typDate // of every year
	typDay  // a date with its year
)

// typeNames are types as messages name them, with an example.
var typeNames = [...][2]string{
	typNone: {"nothing", ""}, typAny: {"the value of a point", ""}, typBool: {"on or off", "on"}, typNumber: {"a number", "5"},
	typText: {"a text", `"open"`}, typWord: {"a word", "open"}, typLength: {"a length of time", "10m, without a space"},
	typClock: {"a time of day", "22:00"}, typWeekday: {"a weekday", "sat"},
	typMonth: {"a month", "oct"}, typDate: {"a date", "dec 24"}, typDay: {"a date with its year", "2026-12-24"},
}

// anyUnit is the unit of numbers that fit every other.
const anyUnit = "?"

// Causes for which an operand changes while no reading comes.
const (
	variesNow uint8 = 1 << iota // the time of day
	variesAge
	variesDay // at midnight
)

// operand is a node with what the compiler knows of it.
type operand struct {
	node     *node
	typ      typ
	unit     string   // of a number
	values   []string // of a text: all it can be; nil: not known
	off, end int
	varies   uint8
	literal  bool // word is how it is written; of a number without its unit
	word     string
}

// source returns the operand as it is written.
func (p *parser) source(x operand) string { return clip(p.text[x.off:max(x.off, x.end)]) }

// join makes an operand of two; y may be the zero operand.
func (p *parser) join(t typ, x, y operand, n node) operand {
	n.a, n.b = x.node, y.node
	return operand{node: p.add(n), typ: t, off: x.off, end: max(x.end, y.end), varies: x.varies | y.varies}
}

func (p *parser) wantBool(x operand) {
	at := p.source(x)
	switch x.typ {
	case typBool, typAny:
	case typWord:
		p.unknownWord(x)
	case typNumber:
		p.fail(x.off, x.end, "%s is a number, not true or false: compare it, such as %[1]s < %s", at, strings.TrimSpace("5 "+strings.Trim(x.unit, anyUnit)))
	default:
		p.fail(x.off, x.end, "%s is %s, not true or false: compare it with another", at, typeNames[x.typ][0])
	}
}

func (p *parser) unknownWord(x operand) {
	known := append([]string{"on", "off", "now", "sunrise", "sunset", "weekday", "month", "date", "holiday"}, p.names()...)
	hint := cmp.Or(device.Suggest(x.word, known, ""), ": a point is written device/point")
	if strings.Contains(x.word, "-") {
		hint = ": arithmetic - needs spaces around it"
	}
	p.fail(x.off, x.end, "%s is not known here%s", clip(x.word), hint)
}

// wantNumber makes x a number, or another type that counts, and refuses the rest.
func (p *parser) wantNumber(x *operand, or ...typ) {
	switch {
	case x.typ == typAny:
		x.typ = typNumber
	case x.typ == typWord:
		p.unknownWord(*x)
	case x.typ != typNumber && !slices.Contains(or, x.typ):
		p.fail(x.off, x.end, "%s is %s, and cannot be calculated with", p.source(*x), typeNames[x.typ][0])
	}
}

// fit makes both operands of one type and unit, for a comparison.
func (p *parser) fit(x, y operand) {
	if x.literal && !y.literal {
		x, y = y, x
	}
	switch {
	case x.typ == typWord:
		p.unknownWord(x)
	case y.literal && x.typ == typText && (y.typ == typWord || y.typ == typBool || y.typ == typText):
		y.node.val = device.Text(y.word)
		if x.values != nil && !slices.Contains(x.values, y.word) {
			p.fail(y.off, y.end, "%s is never %s%s", p.source(x), clip(y.word), device.Suggest(y.word, x.values, "value"))
		}
	case y.typ == typWord && x.typ == typWeekday:
		day := slices.Index(days, y.word)
		if day < 0 {
			p.fail(y.off, y.end, "%s is not a weekday: write one of %s", clip(y.word), strings.Join(days, ", "))
		}
		y.node.val = device.Number(float64(day))
	case y.typ == typWord && x.typ == typMonth:
		month := slices.Index(months, y.word) + 1
		if month == 0 {
			p.fail(y.off, y.end, "%s is not a month: write one of %s", clip(y.word), strings.Join(months, ", "))
		}
		y.node.val = device.Number(float64(month))
	case y.typ == typDay && (x.node.op == opDate || x.node.op == opDay):
		x.node.op = opDay
	case y.typ == typWord && (x.typ == typAny || x.typ == typText):
	case y.typ == typWord && x.typ == typBool:
		p.mismatch(x, y)
	case y.typ == typWord:
		p.unknownWord(y)
	case x.typ == typAny && y.typ <= typText, y.typ == typAny && x.typ <= typText:
	case x.typ != y.typ:
		p.mismatch(x, y)
	case x.typ == typNumber:
		p.fitUnit(x, y)
	}
}

func (p *parser) mismatch(x, y operand) {
	if y.typ == typAny || x.literal {
		x, y = y, x
	}
	hint := ""
	switch example := typeNames[x.typ][1]; {
	case y.typ == typLength && x.typ == typNumber:
		hint = ": write a number, a space and the unit, such as " + strings.TrimSpace("5 "+strings.Trim(x.unit, anyUnit))
	case y.literal && example != "":
		hint = ": write such as " + example
	}
	p.fail(y.off, y.end, "%s is %s, and %s is %s%s", p.source(x), typeNames[x.typ][0], p.source(y), typeNames[y.typ][0], hint)
}

// fitUnit refuses two numbers in different units.
func (p *parser) fitUnit(x, y operand) {
	if x.literal {
		x, y = y, x
	}
	switch {
	case x.unit == y.unit || x.unit == anyUnit || y.unit == anyUnit:
	case y.literal && x.unit == "":
		p.fail(y.off, y.end, "%s has no unit: write %s", p.source(x), y.word)
	case y.literal && y.unit == "":
		p.fail(y.off, y.end, "%s is in %s: write %s %[2]s", p.source(x), x.unit, y.word)
	case x.unit == "":
		p.fail(y.off, y.end, "%s has no unit, and %s is in %s: both need the same unit", p.source(x), p.source(y), y.unit)
	case y.unit == "":
		p.fail(y.off, y.end, "%s is in %s, and %s has no unit: both need the same unit", p.source(x), x.unit, p.source(y))
	default:
		p.fail(y.off, y.end, "%s is in %s, and %s is in %s: both need the same unit", p.source(x), x.unit, p.source(y), y.unit)
	}
}

// yearly are ranges of what comes again each year.
var yearly = map[typ]string{typMonth: "month between oct..apr", typDate: "date between dec 24..jan 6"}

var flipped = map[op]op{opEqual: opEqual, opNotEqual: opNotEqual, opLess: opGreater, opLessEqual: opGreaterEqual, opGreater: opLess, opGreaterEqual: opLessEqual}

// compare joins x and y by the relation o, which is written at.
func (p *parser) compare(o op, at token, x, y operand) operand {
	p.fit(x, y)
	if p.err != nil {
		return operand{}
	}
	t := max(x.typ, y.typ)
	equality := o == opEqual || o == opNotEqual
	switch {
	case (t == typBool || t == typText || t == typWord) && !equality:
		p.fail(at.off, at.end, "%s is not greater or less: write == or !=", p.source(x))
	case t == typWeekday && !equality:
		p.fail(at.off, at.end, "weekdays have no order: write such as weekday between mon..fri")
	case (t == typMonth || t == typDate) && !equality:
		p.fail(at.off, at.end, "%s comes again each year: write such as %s", typeNames[t][0], yearly[t])
	case t == typClock && equality:
		p.fail(at.off, at.end, "a time of day is equal for a moment only: write such as now between 22:00..22:10")
	case t == typLength && equality:
		p.fail(at.off, at.end, "a length of time is equal for a moment only: write >= or <")
	}
	if p.err == nil && (y.node.op == opAge || y.node.op == opNow) && x.node.op != opAge && x.node.op != opNow {
		x, y, o = y, x, flipped[o] // as the wait of a comparison requires
	}
	z := p.join(typBool, x, y, node{op: o, wait: waits(x, y.varies)})
	z.off, z.end, z.varies = min(x.off, y.off), max(x.end, y.end), 0
	return z
}

// between makes x between lo..hi.
func (p *parser) between(x, lo, hi operand) operand {
	p.fit(x, lo)
	p.fit(x, hi)
	if x.typ == typAny {
		p.fit(lo, hi)
	}
	if p.err != nil {
		return operand{}
	}
	n := node{op: opBetween, c: hi.node, wait: waits(x, lo.varies|hi.varies)}
	a, b := lo.node.val.Number(), hi.node.val.Number()
	literal := lo.literal && hi.literal
	switch t := max(x.typ, lo.typ, hi.typ); {
	case (lo.typ == typDay) != (hi.typ == typDay):
		p.fail(lo.off, hi.end, "one of the dates has a year and the other has none: write both in one way")
	case t == typWeekday || t == typMonth || t == typDate:
		n.op = opDays
	case t == typClock:
		n.op = opDuring
		if literal && a == b {
			p.fail(lo.off, hi.end, "%s..%s is empty, because the end does not belong: write a later end", lo.word, hi.word)
		}
	case t != typNumber && t != typLength && t != typDay && t != typAny:
		p.fail(x.off, x.end, "%s is %s, which has no range: write == or !=", p.source(x), typeNames[x.typ][0])
	case literal && a > b:
		p.fail(lo.off, hi.end, "%s..%s is empty: write the smaller first", lo.word, hi.word)
	}
	z := p.join(typBool, x, lo, n)
	z.end, z.varies = hi.end, 0
	return z
}

// waits says how a comparison of x with bounds of the kind varies changes while time passes.
func waits(x operand, varies uint8) wait {
	switch all := x.varies | varies; {
	case all == 0:
		return waitNone
	case x.node.op == opAge && varies == 0:
		return waitAge
	case x.node.op == opNow && varies&^variesDay == 0:
		return waitNow
	case all == variesDay:
		return waitDay
	}
	return waitSecond
}

// plus joins a sum or a difference, as at says.
func (p *parser) plus(at token, x, y operand) operand {
	n := node{op: opAdd}
	if at.text == "-" {
		n.op = opSubtract
	}
	p.wantNumber(&x, typLength, typClock)
	p.wantNumber(&y, typLength, typClock)
	unit := x.unit
	switch {
	case p.err != nil:
		return operand{}
	case x.typ == typClock && y.typ == typLength:
		n.wraps = x.varies&variesDay == 0 // sunrise and sunset keep their date
	case x.typ == typClock || y.typ == typClock:
		p.fail(y.off, y.end, "a time of day can be shifted by a length of time only: write such as sunset - 20m")
	case x.typ != y.typ:
		p.mismatch(x, y)
	case x.typ == typNumber:
		p.fitUnit(x, y)
		if unit == anyUnit {
			unit = y.unit
		}
	}
	z := p.join(x.typ, x, y, n)
	z.unit = unit
	return z
}

// times joins a product or a quotient, as at says.
func (p *parser) times(at token, x, y operand) operand {
	p.wantNumber(&x, typLength)
	p.wantNumber(&y, typLength)
	if p.err != nil {
		return operand{}
	}
	n := node{op: opMultiply}
	t, unit := x.typ, x.unit
	plainX := x.typ == typNumber && (x.unit == "" || x.unit == anyUnit)
	plainY := y.typ == typNumber && (y.unit == "" || y.unit == anyUnit)
	switch divide := at.text == "/"; {
	case divide:
		n.op = opDivide
		switch {
		case plainY && y.unit == anyUnit && t == typNumber:
			unit = anyUnit
		case plainY:
		case x.typ == y.typ && (x.unit == y.unit || x.unit == anyUnit):
			t, unit = typNumber, ""
		default:
			p.fail(at.off, at.end, "%s cannot be divided by %s: divide by a number without a unit, or by one in the same unit", p.source(x), p.source(y))
		}
	case plainX && plainY && x.unit != y.unit:
		unit = anyUnit
	case plainY:
	case plainX:
		t, unit = y.typ, y.unit
		if x.unit == anyUnit && t == typNumber {
			unit = anyUnit
		}
	default:
		p.fail(at.off, at.end, "%s cannot be multiplied by %s: one of them must be a number without a unit", p.source(x), p.source(y))
	}
	z := p.join(t, x, y, n)
	z.unit = unit
	return z
}

// extreme joins two arguments of min or max, which f is.
func (p *parser) extreme(f token, x, y operand) operand {
	p.wantNumber(&x, typLength, typClock)
	p.wantNumber(&y, typLength, typClock)
	switch {
	case p.err != nil:
		return operand{}
	case x.typ != y.typ:
		p.mismatch(x, y)
	case x.typ == typNumber:
		p.fitUnit(x, y)
	}
	n := node{op: opMin}
	if f.text == "max" {
		n.op = opMax
	}
	z := p.join(x.typ, x, y, n)
	if z.unit = x.unit; z.unit == anyUnit {
		z.unit = y.unit
	}
	return z
}

func (p *parser) absolute(x operand) operand {
	p.wantNumber(&x, typLength)
	z := p.join(x.typ, x, operand{}, node{op: opAbs})
	z.unit = x.unit
	return z
}
