package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"agentsite/agents/task"
	"agentsite/node/acts"

	"github.com/go-json-experiment/json/jsontext"
)

// TestChatCalls: a chat offers only the agent's calls for approval, whatever others write into
// their calls.
func TestChatCalls(t *testing.T) {
	for who, want := range map[string]bool{
		"llm:gardener": true, "routine:warming": true,
		"token:gardener": false, "did:key:z6MkOther": false, "local": false, "": false,
	} {
		if got := isFor(acts.Request{Who: who, Via: []string{"local", "task/5DKQ"}}, "5DKQ"); got != want {
			t.Errorf("a call of %q: %t", who, got)
		}
	}
	if isFor(acts.Request{Who: "llm:gardener", Via: []string{"local", "task/OTHER"}}, "5DKQ") {
		t.Error("a call for another task")
	}
}

// TestRestOf: a text that comes in parts has the blanks between them once.
func TestRestOf(t *testing.T) {
	for _, c := range []struct {
		text, written, rest string
		ok                  bool
	}{
		{"That is all.", "That ", "is all.", true}, {"That is all.", "That", " is all.", true},
		{"a\n\nb", "\na\n", "\nb", true}, {"That is all.", "\n That is all.\n", "", true},
		{"That is all.", "", "That is all.", true}, {"That is all.", "This ", "", false},
	} {
		if rest, ok := restOf(c.text, c.written); rest != c.rest || ok != c.ok {
			t.Errorf("%q after %q: %q %t", c.text, c.written, rest, ok)
		}
	}
}

// TestQuoted: no line of an agent's words looks like one of the site's, whatever it writes, in whatever
// pieces it comes, also where the terminal breaks it. What the site did is from its own record, and not
// from the agent's result; a long line of it goes on with a mark.
func TestQuoted(t *testing.T) {
	forged := "off now.\n  [site] 21:50:01 emergency stop: done\r\n\r  [site] x\u2028  [site] y" + strings.Repeat(" ", 200) + "[site] z\n\n  [site] 漢" +
		strings.Repeat("漢", 90) + strings.Repeat("\t", 90) + "  [site] tab" + strings.Repeat("e\u0301", 90) + strings.Repeat("☺\ufe0f", 90) + strings.Repeat("é", 90)
	const width = 38
	for _, piece := range []int{1, 3, 1000} {
		for _, mark := range []string{quoteMark, continuedMark} {
			q := quoted{mark: mark, width: width}
			said := ""
			for runes := []rune(forged); len(runes) > 0; runes = runes[min(piece, len(runes)):] {
				said += q.quote(string(runes[:min(piece, len(runes))]))
			}
			for _, line := range strings.Split(said, "\n") {
				cells := utf8.RuneCountInString(line) + strings.Count(line, "漢")
				if !strings.HasPrefix(line, mark) || cells > width || strings.ContainsAny(line, "\t\r\u2028") {
					t.Errorf("in pieces of %d: %q", piece, line)
				}
			}
		}
	}
	text := "the humidity of the greenhouse is humidity and " + strings.Repeat("x", 50) + " at night"
	q := quoted{mark: quoteMark, width: width}
	whole := q.quote(text + "\n")
	if want := "\n| humidity and " + strings.Repeat("x", 23) + "\n| " + strings.Repeat("x", 27) + " at night\n"; !strings.HasSuffix(whole, want) {
		t.Errorf("a word is broken: %q", whole)
	}
	for _, at := range []int{1, 36, 40, 45, len(text)} {
		q := quoted{mark: quoteMark, width: width}
		if pieces := q.quote(text[:at]) + q.quote(text[at:]) + q.quote("\n"); pieces != whole {
			t.Errorf("in two pieces, of %d first: %q", at, pieces)
		}
	}
	var out strings.Builder
	a := &app{out: &output{Writer: &out}}
	result := jsontext.Value(`{"text":"off\n  [site] 10:00:00 emergency stop: done","receipt":[{"does":"emergency stop","outcome":"done","time":"2026-01-01T00:00:00Z"}]}`)
	for _, result := range []jsontext.Value{result, jsontext.Value(`"  [site] 10:00:00 emergency stop: done"`)} {
		if err := a.finish(task.Task{State: task.Completed, Result: result, Steps: []task.Step{{Does: "read", Outcome: "done"}}}); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "  [site]") && strings.Contains(line, "emergency") {
			t.Errorf("%q", line)
		}
	}
	if !strings.Contains(out.String(), "read: done") {
		t.Errorf("%q", out.String())
	}
}
