package expr

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agentsite/device"
	"agentsite/device/ucum"
)

type tokenKind uint8

const (
	tokEnd      tokenKind = iota
	tokOperator           // and punctuation
	tokWord
	tokAddress
	tokText   // in double quotes
	tokNumber // with its unit, if any
	tokLength
	tokClock // a time of day
	tokDate  // with its year
)

type token struct {
	kind     tokenKind
	text     string // as it is written; of a text without the quotes, of a number without the unit
	off, end int
	num      float64 // lengths and times of day in nanoseconds
	unit     string
}

const (
	maxText   = 1 << 10
	maxLength = 2400 * time.Hour // nanoseconds that a float64 holds exactly
	day       = float64(24 * time.Hour)
)

// fail records the first mistake and ends the text there.
func (p *parser) fail(off, end int, format string, args ...any) {
	if p.err == nil {
		text := p.text[:min(len(p.text), maxText)]
		off, end = min(off, len(text)), min(end, len(text))
		p.err = &Error{Text: text, Offset: off, Len: end - off, Msg: printable(fmt.Sprintf(format, args...))}
	}
	p.tok = token{off: p.tok.end, end: p.tok.end}
}

// checkText refuses a text that is too long or has characters that cannot be seen.
func (p *parser) checkText() {
	if len(p.text) > maxText {
		p.fail(maxText, maxText, "the condition has %d bytes: write at most %d, or split it into two rules", len(p.text), maxText)
	}
	for i := 0; i < len(p.text) && p.err == nil; {
		r, size := utf8.DecodeRuneInString(p.text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			p.fail(i, i+1, "the byte 0x%02X is not UTF-8: remove it", p.text[i])
		case r != '\n' && r != '\t' && !unicode.IsPrint(r):
			p.fail(i, i+size, "the character %U cannot be seen: remove it, or write a space", r)
		}
		i += size
	}
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= 'A' && c <= 'Z'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// at returns the byte at i, and 0 after the end.
func (p *parser) at(i int) byte {
	if i < len(p.text) {
		return p.text[i]
	}
	return 0
}

// span returns the end of the bytes from i that belong.
func (p *parser) span(i int, belongs func(byte) bool) int {
	for i < len(p.text) && belongs(p.text[i]) {
		i++
	}
	return i
}

func (p *parser) skipSpace(i int) int {
	return p.span(i, func(c byte) bool { return c == ' ' || c == '\n' || c == '\t' })
}

// advance reads the next token into p.tok.
func (p *parser) advance() {
	i := p.skipSpace(p.tok.end)
	if p.err != nil || i == len(p.text) {
		p.tok = token{off: i, end: i}
		return
	}
	end := p.span(i, isNameByte)
	switch c := p.text[i]; {
	case end > i && p.at(end) == '/' && isNameByte(p.at(end+1)):
		p.address(i, end)
	case isDigit(c):
		p.number(i)
	case end > i && c != '-':
		p.tok = token{kind: tokWord, text: p.text[i:end], off: i, end: end}
	case c == '"':
		p.quoted(i)
	default:
		p.operator(i)
	}
}

// address reads the names that slashes join; the first one ends at end.
func (p *parser) address(off, end int) {
	for p.at(end) == '/' && isNameByte(p.at(end+1)) {
		end = p.span(end+1, isNameByte)
	}
	text := p.text[off:end]
	names := strings.Split(text, "/")
	for _, name := range names {
		if err := device.CheckName(name); err != nil {
			p.fail(off, end, "%v", err)
			return
		}
	}
	if len(names) > 3 {
		p.fail(off, end, "%s has %d names: write device/point or site/device/point, and spaces around an arithmetic /", clip(text), len(names))
		return
	}
	p.tok = token{kind: tokAddress, text: text, off: off, end: end}
}

func (p *parser) quoted(off int) {
	n := strings.IndexAny(p.text[off+1:], "\"\n\t")
	if n < 0 || p.text[off+1+n] != '"' {
		p.fail(off, off+1, `a text ends in the line where it begins: write a second "`)
		return
	}
	if n == 0 {
		p.fail(off, off+2, "there is nothing between the quotes: write a value of the state")
		return
	}
	p.tok = token{kind: tokText, text: p.text[off+1 : off+1+n], off: off, end: off + n + 2}
}

// number reads a number with its unit, a length, a date, or a time of day.
func (p *parser) number(off int) {
	end := p.span(off, isDigit)
	if p.at(end) == '-' && end-off == 4 && isDigit(p.at(end+1)) {
		p.date(off, p.span(end, isNameByte))
		return
	}
	if p.at(end) == ':' {
		p.clock(off, p.span(end, func(c byte) bool { return c == ':' || isNameByte(c) }))
		return
	}
	if p.at(end) == '.' && isDigit(p.at(end+1)) {
		end = p.span(end+1, isDigit)
	}
	if p.at(end) == '.' && p.at(end+1) != '.' {
		p.fail(off, end+1, "%s. is not a number: write %[1]s", clip(p.text[off:end]))
		return
	}
	if p.at(end) == ',' && isDigit(p.at(end+1)) && !p.inCall(off) {
		whole := p.span(end+1, isDigit)
		p.fail(off, whole, "numbers are written with a point, not a comma: write %s.%s",
			clip(p.text[off:end]), clip(p.text[end+1:whole]))
		return
	}
	text := p.text[off:end]
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n > 1e300 {
		p.fail(off, end, "the number %s is too large", clip(text))
		return
	}
	unit := p.unit(end)
	if written := p.text[off:unit]; slices.Contains(lengthUnits, strings.Map(letter, written)) {
		p.length(written, off)
		return
	}
	p.tok = token{kind: tokNumber, text: text, off: off, end: end, num: n}
	if unit == end {
		end = p.skipSpace(end)
		unit = p.unit(end)
	}
	if code := p.text[end:unit]; code != "" && !reserved[code] {
		if err := ucum.Check(code); err != nil {
			says := err.Error()
			if head, could, ok := strings.Cut(says, ": write "); ok {
				says = head + ": write " + clip(text) + " " + strings.Trim(could, `"`) // quotes are for YAML
			}
			p.fail(off, unit, "%s", says)
			return
		}
		p.tok.unit, p.tok.end = code, unit
	}
}

// inCall reports whether the byte at off is between the parentheses of a function.
func (p *parser) inCall(off int) bool {
	open := 0
	for i := off - 1; i >= 0; i-- {
		switch p.text[i] {
		case ')':
			open++
		case '(':
			if open == 0 {
				return i > 0 && isNameByte(p.text[i-1])
			}
			open--
		}
	}
	return false
}

// lengthUnits are the units of a length, without its numbers.
var lengthUnits = []string{"h", "m", "s", "ms", "hm", "hs", "hms"}

// letter drops digits and points.
func letter(r rune) rune {
	if r == '.' || r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// unit returns the end of the unit at i, or i where there is none.
func (p *parser) unit(i int) int {
	switch c := p.at(i); {
	case c == '/':
		if next := p.at(i + 1); !isNameByte(next) && next != '[' && next != '{' {
			return i // the operator
		}
	case c == '%', c == '[', c == '{', c == '\'', isNameByte(c) && c != '-' && !isDigit(c), c >= utf8.RuneSelf, strings.HasPrefix(p.text[i:], "10*"):
	default:
		return i
	}
	remark := false
	for ; i < len(p.text); i++ {
		c := p.text[i]
		if c == '{' || c == '}' {
			remark = c == '{'
		}
		if !remark && (strings.IndexByte("(),<>=!&|", c) >= 0 || c == '.' && p.at(i+1) == '.') || c <= ' ' {
			break
		}
	}
	return i
}

func (p *parser) length(text string, off int) {
	d, err := time.ParseDuration(text)
	if err != nil || d > maxLength {
		p.fail(off, off+len(text), "%s is not a length of time up to %s: write such as 90s, 10m or 1h30m", clip(text), device.FormatDuration(maxLength))
		return
	}
	p.tok = token{kind: tokLength, text: text, off: off, end: off + len(text), num: float64(d)}
}

func (p *parser) clock(off, end int) {
	text := p.text[off:end]
	hour, minute, _ := strings.Cut(text, ":")
	h, errH := strconv.ParseUint(hour, 10, 8)
	m, errM := strconv.ParseUint(minute, 10, 8)
	switch {
	case text == "24:00":
		p.fail(off, end, "a day ends at 0:00 of the next: write 0:00")
	case errH != nil || errM != nil || len(hour) > 2 || len(minute) != 2 || h > 23 || m > 59:
		p.fail(off, end, "%s is not a time of day: write such as 6:00 or 22:30", clip(text))
	default:
		p.tok = token{kind: tokClock, text: text, off: off, end: end, num: float64(time.Duration(h)*time.Hour + time.Duration(m)*time.Minute)}
	}
}

func (p *parser) date(off, end int) {
	text := p.text[off:end]
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		p.fail(off, end, "%s is not a date: write such as 2026-12-24, or dec 24 for every year", clip(text))
		return
	}
	p.tok = token{kind: tokDate, text: text, off: off, end: end, num: dayNumber(t.Date())}
}

// dayNumber returns a day as a number that orders; of every year it has the year 0.
func dayNumber(year int, month time.Month, day int) float64 {
	return float64(year*10000 + int(month)*100 + day)
}

// operators in the order in which they are tried.
var operators = []string{"..", "==", "!=", "<=", ">=", "<", ">", "(", ")", ",", "+", "-", "*", "/"}

// mistaken are signs of other languages, in the order in which they are tried.
var mistaken = [][2]string{
	{"<>", "!="}, {"=<", "<="}, {"=>", ">="}, {"===", "=="}, {"=", "=="}, {"&&", "and"}, {"&", "and"}, {"||", "or"}, {"|", "or"},
	{"!", "not"}, {"≤", "<="}, {"≥", ">="}, {"≠", "!="}, {"'", `"`}, {"…", ".."}, {"−", "-"}, {"–", "-"}, {"×", "*"}, {"÷", "/"},
}

func (p *parser) operator(i int) {
	rest := p.text[i:]
	for _, m := range mistaken {
		if strings.HasPrefix(rest, m[0]) && !strings.HasPrefix(rest, "!=") && (m[0] != "=" || !strings.HasPrefix(rest, "==")) {
			p.fail(i, i+len(m[0]), "%s is not used here: write %s", m[0], m[1])
			return
		}
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			p.tok = token{kind: tokOperator, text: op, off: i, end: i + len(op)}
			return
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case r == '.' && isDigit(p.at(i+1)):
		p.fail(i, i+1, "a number begins with a digit: write 0.%c", p.at(i+1))
	case r < utf8.RuneSelf:
		p.fail(i, i+1, "the character %c is not used in conditions: remove it", r)
	default:
		p.fail(i, i+size, "the character %U is not ASCII: names are written with a-z, 0-9, _ and -", r)
	}
}

// finite returns the number n, and unknown for NaN and Inf.
func finite(n float64) device.Value {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return device.Value{}
	}
	return device.Number(n)
}
