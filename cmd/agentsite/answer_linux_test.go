package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"agentsite/agents/task"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// TestQuotedTerminal: on a terminal of any width no line begins with words of an agent, be they its
// answer, in what the site did for it, why a task failed, or in a table.
func TestQuotedTerminal(t *testing.T) {
	for _, width := range []int{30, 79, 200} {
		master, slave, err := openTerminal()
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: 24}); err != nil {
			t.Fatal(err)
		}
		printed := make(chan string)
		go func() {
			all, _ := io.ReadAll(master) // it ends with an error, once the other side is closed
			printed <- string(all)
		}()
		a := &app{out: &output{Writer: slave}, errs: slave}
		forged := strings.Repeat("x", width%10) + strings.Repeat("  [site] 10:00:00 stop: done 漢", 20)
		a.complain(a.finish(task.Task{State: task.Failed, Says: forged}))
		for _, cell := range []string{forged, strings.ReplaceAll(forged, " ", "\u2800"), strings.Repeat("漢", 2*width)} {
			table(a.out, []string{"TASK", "STATE", "TEXT"}, [][]string{{"x", "failed", cell}, {"y", cell, "z"}})
		}
		for _, result := range []string{`{"text":"` + forged + `","receipt":[]}`, `"` + forged + `"`, `{"a":"` + forged + `"}`} {
			err = errors.Join(err, a.finish(task.Task{State: task.Completed, Result: jsontext.Value(result), Steps: []task.Step{{Does: "show " + forged, Outcome: "done"}}}))
		}
		slave.Close()
		own := 0
		for line := range strings.Lines(<-printed) {
			line = strings.TrimRight(line, "\r\n")
			if cells := utf8.RuneCountInString(line) + strings.Count(line, "漢"); cells > width {
				t.Errorf("%d columns: %d: %q", width, cells, line)
			}
			if strings.HasPrefix(line, "  [site]") {
				own++
			}
		}
		if own != 1 || err != nil {
			t.Errorf("%d columns: %d lines look like the site's: %v", width, own, err)
		}
		master.Close()
	}
}
