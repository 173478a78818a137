package expr

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"agentsite/device"
)

// Error is a mistake in an expression.
type Error struct {
	Text   string // the expression, at most its first 1 KiB
	Offset int    // of the first wrong byte in Text
	Len    int    // in bytes; 0 at the end of the text
	Msg    string // what is wrong and how to fix it, in one line of printable characters
}

// Error returns Msg, and below it the expression with the wrong part underlined. Of a long
// expression it shows an excerpt. Characters without a fixed width are shown as a question mark.
func (e *Error) Error() string {
	if e.Text == "" {
		return e.Msg
	}
	const around = 50 // characters before and after the mistake
	before := runes(e.Text[:e.Offset])
	wrong := runes(e.Text[e.Offset : e.Offset+e.Len])
	after := runes(e.Text[e.Offset+e.Len:])
	if len(before) > around {
		before = append([]rune("… "), before[len(before)-around:]...)
	}
	if len(wrong) > around {
		wrong, after = wrong[:around], nil
	}
	if len(after) > around {
		after = append(after[:around:around], []rune(" …")...)
	}
	return e.Msg + "\n  " + string(before) + string(wrong) + string(after) +
		"\n  " + strings.Repeat(" ", len(before)) + strings.Repeat("^", max(1, len(wrong)))
}

// runes returns the characters of s, each of which takes one column.
func runes(s string) []rune {
	all := make([]rune, 0, len(s))
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			r = ' '
		case r > unicode.MaxLatin1 || !unicode.IsPrint(r):
			r = '?'
		}
		all = append(all, r)
	}
	return all
}

// printable replaces what a terminal could execute.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// clip shortens a part of an expression for a message.
func clip(s string) string { return device.Clip(s, 60) }
