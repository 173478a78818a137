//go:build e2e

// Package agents tests hosted agents with the real program.
package agents

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"
	"agentsite/agents/task"
	"agentsite/cmd/internal/e2e/harness"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const config = `site: { name: house }
http: { https: none }
devices:
  lamp: { driver: sim, model: relay, points: { relay: { min_off: 0, max_on: 1h } } }
  climate: { driver: sim, model: climate, every: 1s }
agents:
  gpt:
    kind: llm
    model: { url: %q, name: test }
    may: read climate, set lamp max 10m
    limits: { calls_per_hour: 3600, tokens_per_day: 100000000 }
`

// turns answers as a model that reads, moves the lamp, and then says so.
func turns(body []byte) (a chat.Answer) {
	call := func(name, args string) []chat.Call {
		return []chat.Call{{ID: "c", Name: name, Arguments: jsontext.Value(args)}}
	}
	last := body[bytes.LastIndex(body, []byte(`"role":"user"`)):]
	switch results := bytes.Count(last, []byte(`"role":"tool"`)); {
	case results == 0 && !bytes.Contains(last, []byte("restarted")):
		a.Calls = call("read_points", `{"points":["climate/temperature"]}`)
	case results <= 1:
		a.Calls = call("switch_output", `{"output":"lamp/relay","on":true,"for_seconds":60}`)
	default:
		a.Text = "I looked, and switched the lamp on."
	}
	return a
}

// TestModelKilled: the site is killed at any moment of a model's work. Started again, it goes on:
// the task ends, nothing is moved twice, and the conversation can be read.
func TestModelKilled(t *testing.T) {
	program := harness.Need(t, "the program", harness.Program)
	s := chattest.New(t, chattest.Plain, func(body []byte) chat.Answer {
		time.Sleep(rand.N(20 * time.Millisecond)) // a model thinks
		return turns(body)
	})
	data := harness.TempDir(t)
	start := func() *harness.Site { return harness.StartIn(t, data, fmt.Sprintf(config, s.Endpoint()), nil, program) }
	ends := map[task.State]int{}
	site := start()
	many := harness.Workload(20, 200)
	for n := range many {
		c := site.Client(t, n%2 == 0)
		asked, err := c.Tasks().Ask(t.Context(), agents.Principal{}, task.Request{Agent: "gpt", Text: "light, please", Context: "talk", Terms: agents.Terms{Key: new(fmt.Sprint("key", n))}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(80 * time.Millisecond)) // at any moment
		site.Kill(t)
		site = start()
		c = site.Client(t, false)
		var ended task.Task
		harness.WaitFor(t, 30*time.Second, "the task ends", func() bool {
			ended, err = c.Tasks().Task(t.Context(), agents.Principal{}, asked.ID)
			return err == nil && ended.State.Ended()
		})
		ends[ended.State]++
		tried := 0
		for _, step := range ended.Steps {
			if strings.HasPrefix(step.Does, "set lamp/relay to on") && (step.Outcome == "done" || step.Outcome == "unknown_outcome") {
				tried++
			}
		}
		out, err := site.CLI(t, "journal", "--json", "--limit", "1000")
		if err != nil {
			t.Fatal(err)
		}
		moves := 0
		for line := range strings.Lines(out) {
			if strings.Contains(line, "switch_output") && strings.Contains(line, "task/"+asked.ID) {
				moves++
			}
		}
		if tried > 1 || moves > 1 {
			t.Fatalf("%d times of %d: the lamp was moved %d times by the task's steps, and %d by the journal: %+v", n, many, tried, moves, ended.Steps)
		}
		if ended.State == task.Completed {
			var said struct {
				Text string `json:"text"`
			}
			if err := json.Unmarshal(ended.Result, &said); err != nil || said.Text == "" {
				t.Errorf("%s %v", ended.Result, err)
			}
		}
	}
	t.Logf("killed %d times: the tasks are %v", many, ends)
	if ends[task.Completed] == 0 {
		t.Error("no task goes on after a kill")
	}
	list, err := site.Client(t, false).Tasks().List(t.Context(), agents.Principal{})
	talk := 0
	for _, one := range list {
		if one.Context == "talk" {
			talk++
		}
	}
	if err != nil || talk < min(many, 50) {
		t.Errorf("%d tasks of the conversation are left: %v", talk, err)
	}
}
