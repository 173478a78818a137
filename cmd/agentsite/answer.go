package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"agentsite/agents/task"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// spoken is the result of an agent that understands words.
type spoken struct {
	Text    string         `json:"text"`
	Receipt jsontext.Value `json:"receipt"`
	Foreign string         `json:"foreign"`
	Note    string         `json:"note"`
}

// spokenBy decodes the result of a task, if it is that of an agent that understands words.
func spokenBy(result jsontext.Value) (s spoken, ok bool) {
	err := json.Unmarshal(result, &s, json.RejectUnknownMembers(true))
	return s, err == nil && s.Receipt.Kind() == '['
}

// sitePrefix begins what the site did, under an agent's words.
const sitePrefix = "  [site] "

// sayAnswer prints the words of an agent, quoted, and below them what the site did, by its own record
// of the task: the agent may be elsewhere, and its result may say anything.
func (a *app) sayAnswer(t task.Task, s spoken) error {
	if s.Text != "" {
		if err := a.sayQuoted(s.Text); err != nil {
			return err
		}
	}
	for _, step := range t.Steps {
		sayAfter(a.out, sitePrefix, clock(step.Time)+" "+stepLine(step.Does, step.Outcome, step.Says))
	}
	if len(t.Steps) == 0 {
		sayAfter(a.out, sitePrefix, "nothing was done")
	}
	if s.Foreign != "" {
		sayAfter(a.out, sitePrefix, "it had read the words of "+s.Foreign)
	}
	if s.Note != "" {
		return sayAfter(a.out, sitePrefix, s.Note)
	}
	return nil
}

// sayQuoted prints words of an agent.
func (a *app) sayQuoted(text string) error {
	q := quoted{mark: quoteMark, width: lineWidth(a.out)}
	_, err := fmt.Fprintln(a.out, q.quote(strings.TrimSuffix(text, "\n")))
	return err
}

// sayAfter prints one line after a prefix, which is not empty. A terminal shows none of its text at the
// beginning of a line without a mark.
func sayAfter(w io.Writer, prefix, text string) error {
	_, err := fmt.Fprintln(w, prefix+withBreaks(clean(text), cellsOf(prefix), lineWidth(w)))
	return err
}

// withBreaks returns a cleaned line from a column on with marked breaks, between words if they fit, where it is
// longer than width; 0 is any.
func withBreaks(line string, column, width int) (text string) {
	q := quoted{mark: continuedMark, width: width, column: column}
	for i, word := range strings.Split(line, " ") {
		if i > 0 {
			word = " " + word
		}
		if n := cellsOf(word); q.width > 0 && q.column+n > q.width && n <= q.width-len(q.mark) {
			text, word = text+q.quote("\n"), strings.TrimPrefix(word, " ")
		}
		text += q.quote(word)
	}
	return text
}

// noteSaid prints a remark as note does, with words of an agent or of a site.
func (a *app) noteSaid(text string) { sayAfter(a.errs, "agentsite: ", text) }

const (
	// quoteMark begins each line of an agent's words, and no line of the site's or of this program's.
	quoteMark = "| "
	// continuedMark begins the further lines of a line that is too long for the terminal.
	continuedMark = "  ... "
)

// lineWidth returns how long a line may be that a terminal shows as one, 0 for any length where the
// output is no terminal.
func lineWidth(w io.Writer) int {
	o, ok := w.(*output)
	if !ok {
		o = &output{Writer: w}
	}
	if !o.terminal() {
		return 0
	}
	return max(o.columns()-2, 20) // whatever COLUMNS says
}

// cellsOf returns how many columns of a terminal a cleaned text takes, at most. Terminals disagree
// about emoji and symbols, and on whether a combining mark has a column of its own.
func cellsOf(text string) (n int) {
	for _, r := range text {
		if n++; r >= 0x1100 || r >= 0x80 && !unicode.IsLetter(r) && !unicode.IsMark(r) {
			n++
		}
	}
	return n
}

// quoted marks the lines of a text that is printed piece by piece, and breaks those that are too long.
type quoted struct {
	mark   string
	width  int // of the lines; 0 for any
	column int // that the line has reached
}

// quote returns the next piece of the text, cleaned, with a mark before each line. It breaks a line before
// a word that begins in the piece, if the word fits into a line.
func (q *quoted) quote(text string) string {
	var b strings.Builder
	text = cleanLines(text)
	for i, r := range text {
		width := cellsOf(string(r))
		needs := width
		if i > 0 && text[i-1] == ' ' {
			word, _, _ := strings.Cut(text[i:], "\n")
			word, _, _ = strings.Cut(word, " ")
			if n := cellsOf(word); n <= q.width-len(q.mark) {
				needs = max(width, n)
			}
		}
		if r != '\n' && q.width > 0 && q.column+needs > q.width {
			b.WriteByte('\n')
			q.column = 0
		}
		if q.column == 0 {
			b.WriteString(q.mark)
			q.column = len(q.mark)
		}
		b.WriteRune(r)
		if q.column += width; r == '\n' {
			q.column = 0
		}
	}
	return b.String()
}
