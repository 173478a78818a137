package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents/rule/trial"
	"agentsite/device"
)

// TestDrawTrial: the times away from safe of the trial are drawn above the real ones. A part that
// the answer left out is not drawn.
func TestDrawTrial(t *testing.T) {
	t.Setenv("COLUMNS", "60")
	t.Setenv("LC_ALL", "C")
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.Local)
	at := func(hours int) time.Time { return from.Add(time.Duration(hours) * time.Hour) }
	on, off := device.Bool(true), device.Bool(false)
	r := trial.Result{
		From: from, To: at(40),
		Moves: []trial.Move{{Time: at(0), Value: on}, {Time: at(10), Value: off}, {Time: at(20), Value: on}},
		Outputs: []trial.OutputResult{{Output: "a/\x1b[2Jrelay", Safe: off, Was: trial.Past{Changes: []trial.Was{
			{Time: at(0), Value: off}, {Time: at(30), Value: on},
		}}}},
	}
	// rows returns what is drawn at the hours 5, 15, 25 and 35 of each output's row: | where it is on.
	rows := func() (all []string) {
		t.Helper()
		var b bytes.Buffer
		if err := (&app{out: &output{Writer: &b}}).drawTrial(r, time.Local); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if strings.ContainsFunc(line, steers) || len(line) > 60 {
				t.Errorf("%q", line)
			}
			if drawn, ok := strings.CutPrefix(line, "on "); ok {
				drawn += strings.Repeat(" ", 57-len(drawn))
				all = append(all, string([]byte{drawn[7], drawn[21], drawn[35], drawn[49]}))
			}
		}
		return all
	}
	if got := rows(); !slices.Equal(got, []string{"|-||", "---|"}) {
		t.Errorf("%q", got)
	}
	r.MoreMoves = 1
	if got := rows(); !slices.Equal(got, []string{"|-  ", "---|"}) {
		t.Errorf("%q", got)
	}
}
