package config

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/token"
)

// innerKey matches a key inside what was read as one text, because a comma is missing before it.
var innerKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([;\s]\s*)([A-Za-z_][A-Za-z0-9_]*):(\s|$)`) })

// gluedKey matches a text that was meant as a key and its value.
var gluedKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*):([^\s/].*)$`) })

// wordsAround matches a key and its value without a colon between them.
var wordsAround = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)\s*[=\s]\s*(\S.*)$`) })

// numberEnd and numberStart match the parts of a number before and after its comma.
var (
	numberEnd   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-?[0-9]+$`) })
	numberStart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+[A-Za-z%]*`) })
)

// equals matches a line with = in place of the colon, and loneWord one with a word alone.
var (
	equals   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(\S.*)$`) })
	loneWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)\s*$`) })
)

// flow is an open brace or bracket.
type flow struct {
	open   *token.Token
	indent int          // the column at which its line begins
	key    bool         // of a mapping: a key follows
	value  *token.Token // the last scalar
}

// checkFlow refuses mistakes in braces, brackets and quotes that the parser explains by what follows
// them, or reads as something else.
func checkFlow(src *source, tokens token.Tokens) *Error {
	var open []flow
	line, indent := 0, 0
	var before *token.Token
	for i, t := range tokens {
		if t.Type == token.CommentType || before != nil &&
			(before.Type == token.LiteralType || before.Type == token.FoldedType) {
			before = t
			continue // the text of a block is not looked at
		}
		at := position(t)
		if at.line != line {
			line, indent = at.line, at.column
		}
		var next *token.Token
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		if t.Type == token.InvalidType && strings.Contains(t.Error, "could not find end character") {
			if cause := earlyQuote(src, before, at); cause != nil {
				return cause
			}
			return src.errorf(at, "the quote that begins here is not closed; end the text with another %.1s",
				strings.TrimSpace(t.Value))
		}
		if t.Type == token.StringType && strings.HasPrefix(t.Value, "%") || t.Type == token.DirectiveType && at.column > 1 {
			return src.errorf(at, "text that begins with %% is written in quotes, as in \"%%\"")
		}
		if len(open) == 0 {
			if t.Type == token.StringType && (strings.HasPrefix(t.Value, "}") || strings.HasPrefix(t.Value, "]")) {
				return src.errorf(at, "nothing is open here that %s could close; remove it", t.Value[:1])
			}
			key := t.Value
			if spansLines(t) {
				key = strings.TrimSpace(src.lines[at.line-1])
			}
			if m := gluedKey().FindStringSubmatch(key); m != nil && t.Type == token.StringType &&
				next != nil && next.Type == token.MappingValueType {
				return spaceMissing(src, at, m)
			}
		} else if err := open[len(open)-1].check(src, before, t, next, line == at.line && at.column == indent); err != nil {
			return err
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			open = append(open, flow{open: t, indent: indent, key: t.Type == token.MappingStartType})
		case token.MappingEndType, token.SequenceEndType:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case token.CollectEntryType:
			if len(open) > 0 {
				open[len(open)-1].key = open[len(open)-1].open.Type == token.MappingStartType
			}
		case token.MappingValueType:
			if len(open) > 0 {
				open[len(open)-1].key = false
			}
		default:
			if len(open) > 0 {
				open[len(open)-1].value = t
			}
		}
		before = t
	}
	if len(open) > 0 {
		return open[len(open)-1].unclosed(src)
	}
	return nil
}

var closing = map[string]string{"{": "}", "[": "]"}

func (f flow) unclosed(src *source) *Error {
	return src.errorf(position(f.open), "the %s that begins here is not closed; write %s at its end",
		f.open.Value, closing[f.open.Value])
}

// check looks at a token inside f, with the one before it and the next. first tells that it begins a
// line.
func (f flow) check(src *source, before, t, next *token.Token, first bool) *Error {
	at := position(t)
	text := strings.TrimSpace(t.Value)
	isKey := next != nil && next.Type == token.MappingValueType
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		if before != nil && ends(before) {
			return missingComma(src, before, at, text)
		}
		return nil
	case token.MappingValueType:
		if next == nil || before == nil || quoted(before) || isStart(next) || f.open.Type != token.MappingStartType ||
			position(next) != (pos{at.line, at.column + 1}) {
			return nil
		}
		return src.errorf(position(next), "write a space after the colon: %s: %s", clip(before.Value), clip(next.Value))
	case token.CollectEntryType:
		if f.open.Type != token.MappingStartType || before == nil || next == nil || !digitsAround(before, t, next) {
			return nil
		}
		whole := numberEnd().FindString(strings.TrimSpace(before.Value)) + "." + numberStart().FindString(strings.TrimSpace(next.Value))
		return src.errorf(at, "numbers are written with a point, not a comma: write %s", clip(whole))
	case token.MappingEndType, token.SequenceEndType:
		return nil
	}
	switch {
	case isKey && first && at.column <= f.indent:
		return f.unclosed(src)
	case before != nil && ends(before):
		return missingComma(src, before, at, text)
	case quoted(t) || t.Type == token.InvalidType:
		return nil
	}
	other := map[string]string{"{": "]", "[": "}"}[f.open.Value]
	if strings.HasSuffix(text, other) {
		return src.errorf(position(f.open), "the %s that begins here is closed by %s; write %s in its place",
			f.open.Value, text[len(text)-1:], closing[f.open.Value])
	}
	if m := innerKey().FindStringSubmatchIndex(t.Value); m != nil {
		key, lineAt := t.Value[m[4]:m[5]], at
		if !strings.Contains(t.Value[:m[4]], "\n") {
			lineAt.column += len([]rune(t.Value[:m[4]]))
		}
		return src.errorf(lineAt, "a comma is missing before %s", clip(key))
	}
	if !f.key || isKey || next == nil || isStart(next) {
		return nil
	}
	if f.value != nil && !quoted(f.value) && strings.ContainsAny(strings.TrimSpace(f.value.Value), " (") {
		return src.errorf(position(f.value), "text with a comma in it is written in quotes: \"%s, …\"",
			clip(strings.TrimSpace(f.value.Value)))
	}
	if m := wordsAround().FindStringSubmatch(text); m != nil {
		return src.errorf(at, "a colon is missing: write %s: %s", m[1], clip(m[2]))
	}
	return nil
}

func missingComma(src *source, before *token.Token, at pos, text string) *Error {
	if cause := earlyQuote(src, before, at); cause != nil {
		return cause
	}
	return src.errorf(at, "a comma is missing before %s", clip(text))
}

// earlyQuote is about a quoted text that goes on after its second quote, at the next token: it was meant to end
// before that quote, or after it. It is nil for any other.
func earlyQuote(src *source, before *token.Token, next pos) *Error {
	if before == nil || !quoted(before) {
		return nil
	}
	line, text := []rune(src.lines[next.line-1]), strings.TrimRight(before.Value, " ")
	beside := next.column > 1 && strings.ContainsRune(`"'`, line[next.column-2])
	switch {
	case spansLines(before), beside && text != "" && strings.Contains(":,[{", text[len(text)-1:]):
		return openQuote(src, before)
	case beside && text != before.Value:
		return src.errorf(position(before), "this text ends at its second quote; write it in the other kind of quotes")
	}
	return nil
}

// ends reports whether a value ends with t.
func ends(t *token.Token) bool {
	return quoted(t) || t.Type == token.MappingEndType || t.Type == token.SequenceEndType
}

func quoted(t *token.Token) bool {
	return t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}

func isStart(t *token.Token) bool {
	return t.Type == token.MappingStartType || t.Type == token.SequenceStartType
}

// digitsAround reports whether a comma stands between two digits without a space, as in 2,5m.
func digitsAround(before, comma, next *token.Token) bool {
	at, left, right := position(comma), strings.TrimSpace(before.Value), strings.TrimSpace(next.Value)
	if left == "" || right == "" || quoted(before) || quoted(next) {
		return false
	}
	beside := position(next) == (pos{at.line, at.column + 1}) && position(before).line == at.line &&
		position(before).column+len([]rune(left)) == at.column
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	return beside && digit(left[len(left)-1]) && digit(right[0])
}

// causeOf returns a mistake at or before the token at which the parser gave up; nil if there is none that
// it knows.
func causeOf(src *source, tokens token.Tokens, stopped *token.Token) *Error {
	for i, t := range tokens {
		at, text := position(t), strings.TrimSpace(t.Value)
		if at.compare(position(stopped)) > 0 {
			return nil
		}
		if spansLines(t) {
			if quoted(t) {
				return openQuote(src, t)
			}
			if m := gluedKey().FindStringSubmatch(strings.TrimSpace(src.lines[at.line-1])); m != nil {
				return spaceMissing(src, at, m)
			}
			value := i > 0 && tokens[i-1].Type == token.MappingValueType && t.Type == token.StringType
			if value && i+1 < len(tokens) && tokens[i+1].Type == token.MappingValueType && !strings.Contains(text, "=") {
				return indented(src, tokens[i+1])
			}
		}
		if i > 0 && quoted(tokens[i-1]) && t.Type == token.StringType && position(tokens[i-1]).line == at.line {
			if cause := earlyQuote(src, tokens[i-1], at); cause != nil {
				return cause
			}
			return src.errorf(position(tokens[i-1]), "this text ends at its second quote; write it in the other kind of quotes")
		}
		firstOfLine := i == 0 || position(tokens[i-1]).line < at.line
		if t.Type != token.StringType || position(stopped).line != at.line || !firstOfLine {
			continue
		}
		if m := gluedKey().FindStringSubmatch(text); m != nil {
			return spaceMissing(src, at, m)
		}
		if m := equals().FindStringSubmatch(src.lines[at.line-1]); m != nil {
			return src.errorf(at, "a colon is missing: write %s: %s", m[1], clip(m[2]))
		}
		if m := loneWord().FindStringSubmatch(src.lines[at.line-1]); m != nil {
			return src.errorf(at, "a colon is missing: write %s:", m[1])
		}
		if cause := outdented(src, tokens[:i], at); cause != nil {
			return cause
		}
	}
	return nil
}

// outdented is about a line that begins between the columns of two levels above it; nil for any other.
func outdented(src *source, above token.Tokens, at pos) *Error {
	var open levels
	for _, t := range above {
		open.add(t)
	}
	i := slices.IndexFunc(open.columns, func(column int) bool { return column > at.column })
	if open.flow > 0 || i <= 0 || open.columns[i-1] == at.column {
		return nil
	}
	outer, inner := open.columns[i-1]-1, open.columns[i]-1
	return src.errorf(at, "this line begins after %d spaces, and those above after %d and %d; begin it after %d or %d",
		at.column-1, outer, inner, outer, inner)
}

// indented is about the line of a key that the line above took for more of its text.
func indented(src *source, colon *token.Token) *Error {
	n := position(colon).line
	line := src.lines[n-1]
	column := len(line) - len(strings.TrimLeft(line, " ")) + 1
	return src.errorf(pos{n, column}, "this line begins further to the right than the one above; begin both in the same column")
}

// spansLines reports whether a text is of several lines.
func spansLines(t *token.Token) bool { return strings.Contains(strings.TrimSpace(t.Origin), "\n") }

func openQuote(src *source, t *token.Token) *Error {
	return src.errorf(position(t), "the quote that begins here is not closed at the end of its text; write another %.1s there",
		strings.TrimSpace(t.Origin))
}

// spaceMissing is about a match of gluedKey.
func spaceMissing(src *source, at pos, match []string) *Error {
	if strings.ContainsAny(match[2][:1], `{["'`) {
		return src.errorf(at, "write a space after %s:", match[1])
	}
	return src.errorf(at, "write a space after the colon: %s: %s", match[1], clip(match[2]))
}
