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
	_, err := fmt.Fprint(a.out, q.quote(strings.TrimSuffix(text, "\n")+"\n"))
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
func withBreaks(line string, column, width int) string {
	q := quoted{mark: continuedMark, width: width, column: column}
	return strings.TrimSuffix(q.quote(line+"\n"), "\n")
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
	width  int    // of the lines; 0 for any
	column int    // that the line has reached
	held   string // the last word so far, with the space before it: its end decides on which line it is
}

// quote returns the next piece of the text, cleaned, with a mark before each line. It breaks a line before
// a word that fits into one, and within a longer word. The last word comes with what ends it.
func (q *quoted) quote(text string) string {
	var b strings.Builder
	text, q.held = q.held+cleanLines(text), ""
	for text != "" {
		blank := len(text) - len(strings.TrimLeft(text, " "))
		n := strings.IndexAny(text[blank:], " \n")
		if n < 0 && q.width > 0 && cellsOf(text) <= q.width-len(q.mark) {
			q.held = text
			break
		} else if n < 0 {
			n = len(text) - blank
		}
		word := text[:blank+n]
		text = text[blank+n:]
		if q.width > 0 && q.column > 0 && q.column+cellsOf(word) > q.width && cellsOf(word[blank:]) <= q.width-len(q.mark) {
			if word = word[blank:]; word != "" {
				q.write(&b, '\n')
			}
		}
		for _, r := range word {
			if q.width > 0 && q.column+cellsOf(string(r)) > q.width {
				q.write(&b, '\n')
			}
			q.write(&b, r)
		}
		if strings.HasPrefix(text, "\n") {
			q.write(&b, '\n')
			text = text[1:]
		}
	}
	return b.String()
}

// write writes a character, with the mark before it where a line begins.
func (q *quoted) write(b *strings.Builder, r rune) {
	if q.column == 0 {
		b.WriteString(q.mark)
		q.column = len(q.mark)
	}
	b.WriteRune(r)
	if q.column += cellsOf(string(r)); r == '\n' {
		q.column = 0
	}
}
