package main

import (
	"os"
	"strings"
)

// style is the parameter of a terminal's escape sequence for a text (SGR); "" is as any other. Nothing is said by a
// style alone: terminals without colours, and pipes, get the same words.
type style string

const (
	styleWrong   style = "31" // red
	styleWarning style = "33" // yellow
	styleStrong  style = "1"  // away from safe
	styleDim     style = "2"  // secondary
)

// colours reports whether the output shows styles: it is a terminal that has them, and its user did not decline.
func (o *output) colours() bool {
	kind := os.Getenv("TERM")
	return o.terminal() && os.Getenv("NO_COLOR") == "" && kind != "" && kind != "dumb"
}

// paint returns a cleaned text in a style, or unchanged if the output has no styles.
func (o *output) paint(s style, text string) string {
	if s == "" || text == "" || !o.colours() {
		return text
	}
	return styleBegin + string(s) + styleEnd + text + styleBegin + "0" + styleEnd
}

const styleBegin, styleEnd = "\x1b[", "m"

// unpainted returns a text without the sequences of paint. A cleaned text has no others.
func unpainted(text string) string {
	if !strings.Contains(text, styleBegin) {
		return text
	}
	bare, rest, _ := strings.Cut(text, styleBegin)
	for part := range strings.SplitSeq(rest, styleBegin) {
		_, after, _ := strings.Cut(part, styleEnd)
		bare += after
	}
	return bare
}
