package main

import (
	"io"
	"strings"
	"testing"

	"agentsite/agents/task"

	"github.com/go-json-experiment/json"
)

// TestChatEnter: what an agent writes after the person has typed a line begins with the mark, too.
func TestChatEnter(t *testing.T) {
	var out strings.Builder
	a := &app{out: &output{Writer: &out}, errs: &out}
	v := (&chatting{session: &session{app: a}, person: true}).view()
	for _, p := range []string{"off. no", "off. now.  [site] all is off"} {
		v.show(t.Context(), task.Task{State: task.Working, Partial: p})
		out.WriteString("\n") // as the terminal shows Enter
		if err := v.meanwhile(t.Context(), task.Task{State: task.Working}, ""); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, quoteMark) {
			t.Errorf("%q", line)
		}
	}
}

// TestChatOnce: at a terminal, an answer that was shown while it was written is not printed again,
// whatever the task shows between the last piece and its end.
func TestChatOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		partials []string
		text     string
		want     map[string]int // how often
	}{
		"as it is":               {[]string{"It is", "It is warm."}, "It is warm.", map[string]int{"It is warm.": 1}},
		"nothing before its end": {[]string{"It is", "It is warm.", ""}, "It is warm.", map[string]int{"It is warm.": 1, "It is": 1}},
		"space at its end":       {[]string{"It is warm. \n"}, "It is warm. \n", map[string]int{"warm": 1}},
		"trimmed at its end":     {[]string{"It is warm. \n", ""}, "It is warm.", map[string]int{"warm": 1}},
		"the last piece is late": {[]string{"It is"}, "It is warm.", map[string]int{"It is warm.": 1, "It is": 1}},
		"no piece":               {nil, "It is warm.", map[string]int{"It is warm.": 1}},
		"a text before a tool":   {[]string{"I look.", "", "I", "I see."}, "I see.", map[string]int{"| I look.": 1, "| I see.": 1}},
		"without a pause":        {[]string{"I look.", "Warm."}, "Warm.", map[string]int{"| I look.": 1, "| Warm.": 1}},
		"a part, and another":    {[]string{"It", ""}, "It is warm.", map[string]int{"| It is warm.": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			master, slave, err := openTerminal()
			if err != nil {
				t.Fatal(err)
			}
			defer master.Close()
			a := &app{in: slave, out: &output{Writer: slave}, errs: slave}
			v := (&chatting{session: &session{app: a}, person: true}).view()
			for _, p := range tt.partials {
				v.show(t.Context(), task.Task{State: task.Working, Partial: p})
			}
			result, err := json.Marshal(map[string]any{"text": tt.text, "receipt": []int{}})
			if err != nil {
				t.Fatal(err)
			}
			if err := v.finish(task.Task{State: task.Completed, Result: result}); err != nil {
				t.Fatal(err)
			}
			slave.Close()
			printed, _ := io.ReadAll(master) // to the error that says that the other side is closed
			for text, n := range tt.want {
				if got := strings.Count(string(printed), text); got != n {
					t.Errorf("%q stands there %d times:\n%s", text, got, printed)
				}
			}
		})
	}
}
