package main

import (
	"fmt"
	"strings"

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

// sayAnswer prints the words of an agent, quoted, and below them what the site did, by its own record
// of the task: the agent may be elsewhere, and its result may say anything.
func (a *app) sayAnswer(t task.Task, s spoken) error {
	if s.Text != "" {
		if err := a.sayQuoted(s.Text); err != nil {
			return err
		}
	}
	for _, step := range t.Steps {
		a.say("  [site] %s %s", clock(step.Time), stepLine(step.Does, step.Outcome, step.Says))
	}
	if len(t.Steps) == 0 {
		a.say("  [site] nothing was done")
	}
	if s.Foreign != "" {
		a.say("  [site] it had read the words of %s", s.Foreign)
	}
	if s.Note != "" {
		return a.say("  [site] %s", s.Note)
	}
	return nil
}

// sayQuoted prints words of an agent.
func (a *app) sayQuoted(text string) error {
	q := quoted{unbroken: !a.out.terminal()}
	_, err := fmt.Fprintln(a.out, q.quote(strings.TrimSuffix(text, "\n")))
	return err
}

// quoteMark begins each line of an agent's words, and no line of the site's or of this program's.
const quoteMark = "| "

// quoteWidth is where a terminal of 80 columns has room for a line. A longer one would go on in the
// next line without a mark.
const quoteWidth = 78

// quoted marks the lines of a text that is printed piece by piece.
type quoted struct {
	column   int // that the line has reached
	unbroken bool
}

// quote returns the next piece of the text, cleaned, with a mark before each line.
func (q *quoted) quote(text string) string {
	var b strings.Builder
	for _, r := range cleanLines(text) {
		width := 1
		if r >= 0x1100 { // perhaps a wide one
			width = 2
		}
		if r != '\n' && q.column+width > quoteWidth && !q.unbroken {
			b.WriteByte('\n')
			q.column = 0
		}
		if q.column == 0 {
			b.WriteString(quoteMark)
			q.column = len(quoteMark)
		}
		b.WriteRune(r)
		if q.column += width; r == '\n' {
			q.column = 0
		}
	}
	return b.String()
}
