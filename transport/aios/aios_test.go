package aios

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
	"agentsite/agents/task/tasktest"
	"agentsite/device"
	"agentsite/transport/aios/aiostest"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var self = agents.Principal{ID: "aios:aios"}

// rig is a reporter with an agent to ask, beds.
type rig struct {
	*testing.T
	host  *tasktest.Host
	url   string
	asked atomic.Int32 // tasks that were worked on
	busy  atomic.Int32 // at the moment
	most  atomic.Int32
	free  atomic.Bool // nobody has claimed the site
}

// newRig serves a registry and hosts an agent that works on its tasks by work; nil returns their text.
func newRig(t *testing.T, registry http.Handler, work func(context.Context, task.Work) (jsontext.Value, error)) *rig {
	server := httptest.NewServer(registry)
	t.Cleanup(server.Close)
	r := &rig{T: t, url: server.URL}
	r.host = &tasktest.Host{
		Agent: task.Agent{Name: "beds", Skills: []task.Skill{{ID: "run"}}},
		May:   func(p agents.Principal) bool { return p == self }, Owner: func(agents.Principal) bool { return false },
		Work: func(ctx context.Context, w task.Work) (jsontext.Value, error) {
			r.asked.Add(1)
			defer r.busy.Add(-1)
			if n := r.busy.Add(1); n > r.most.Load() {
				r.most.Store(n)
			}
			if work != nil {
				return work(ctx, w)
			}
			return json.Marshal(w.Task().Text)
		},
	}
	t.Cleanup(r.host.Close)
	return r
}

func (r *rig) agent() *Agent {
	a := Kind(World{
		Site: "garden", Version: "9.9", Node: func(at string) string { return "node of " + at }, Now: time.Now, Claimed: func() bool { return !r.free.Load() }, Tasks: func() task.Host { return r.host },
	}).New().(*Agent)
	a.Registry, a.every = r.url+"/", 10*time.Millisecond
	return a
}

// run runs an agent until it is stopped.
func (r *rig) run(a *Agent) (stop func()) {
	if _, err := a.Define(); err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx, self, nil) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			r.Error(err)
		}
	}
	r.Cleanup(stop)
	return stop
}

// wait waits until something is so.
func (r *rig) wait(what string, is func() bool) {
	r.Helper()
	for deadline := time.After(20 * time.Second); !is(); {
		select {
		case <-deadline:
			r.Fatalf("%s: not within 20 s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// TestReporter: a site reports itself by the members of the protocol and no others. It does a task
// once that is delivered repeatedly, also twice in a list.
func TestReporter(t *testing.T) {
	registry := new(aiostest.Registry)
	hold := make(chan struct{})
	r := newRig(t, registry, func(ctx context.Context, w task.Work) (jsontext.Value, error) {
		select {
		case <-hold:
		case <-ctx.Done():
		}
		if w.Task().Text == "model" {
			return jsontext.Value(`{"receipt":[],"text":"it is off"}`), nil
		}
		return json.Marshal(w.Task().Text)
	})
	registry.Add("model", "example/beds", "model")
	registry.Add("one", "beds", "water the beds")
	registry.Add("one", "beds", "water the beds")
	registry.Add("two", "beds", "run")
	r.run(r.agent())
	r.wait("reports", func() bool { return len(registry.Nodes()) > 5 })
	if n := r.asked.Load(); n != 3 {
		t.Errorf("worked %d times", n)
	}
	close(hold)
	r.wait("words", func() bool { return len(registry.Results("model")) > 0 })
	if got := registry.Results("model")[0].Result; string(got.Result) != `"it is off"` {
		t.Errorf("%+v: its words are the result", got)
	}
	r.wait("result", func() bool { return len(registry.Results("one")) > 0 })
	got := registry.Results("one")[0]
	if got.Node != "node of "+r.url || got.Result.Status != "completed" || string(got.Result.Result) != `"water the beds"` || got.Result.Error != "" {
		t.Errorf("%+v", got)
	}
	r.wait("result", func() bool { return len(registry.Results("two")) > 0 })
	if got := registry.Results("two")[0].Result; string(got.Result) != `""` {
		t.Errorf("%+v: the message is a skill", got)
	}
	seen := len(registry.Nodes())
	r.wait("more reports", func() bool { return len(registry.Nodes()) > seen+3 })
	if n := r.asked.Load(); n != 3 {
		t.Errorf("worked %d times", n)
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(registry.Nodes()[0], &members); err != nil {
		t.Fatal(err)
	}
	if len(members) != 6 || string(members["node_name"]) != `"garden"` || string(members["available_agents"]) != `["beds"]` || string(members["status"]) != `"active"` || members["node_id"] == nil || members["timestamp"] == nil {
		t.Errorf("%s", registry.Nodes()[0])
	}
	var system map[string]string
	if err := json.Unmarshal(members["system_info"], &system); err != nil || len(system) != 2 || system["version"] != "agentsite 9.9" {
		t.Errorf("%s: nothing about the machine and its addresses is told", members["system_info"])
	}
}

// TestRefusals: each task that cannot be done is reported as failed with its kind, and asks nothing.
func TestRefusals(t *testing.T) {
	registry := new(aiostest.Registry)
	r := newRig(t, registry, func(ctx context.Context, w task.Work) (jsontext.Value, error) {
		switch w.Task().Text {
		case "ask me":
			_, err := w.Input(ctx, task.Question{ID: "1", Text: "which?"})
			return nil, err
		case "break":
			return nil, device.Faultf(device.Offline, "the pump is away")
		}
		return nil, errors.New("not this")
	})
	for id, c := range map[string]struct{ agent, message, kind string }{
		"other":    {"heating", "on", string(device.Invalid)},
		"nobody":   {"", "on", string(device.Invalid)},
		"question": {"beds", "ask me", string(device.Invalid)},
		"broken":   {"beds", "break", string(device.Offline)},
	} {
		registry.Add(id, c.agent, c.message)
		defer func() {
			got := registry.Results(id)
			if len(got) != 1 || got[0].Result.Status != "failed" || got[0].Result.Error != c.kind || got[0].Result.Message == "" || got[0].Result.Result != nil {
				t.Errorf("%s: %+v", id, got)
			}
		}()
	}
	raw := map[string]string{
		"type": `{"type":"shell","data":{"agent":"beds","message":"x"}}`, "text": `"water"`, "null": `null`, "numbers": `{"type":"custom","data":{"agent":1,"message":2}}`,
		"lists": `{"type":"custom","data":[]}`, "doubled": `{"type":"custom"}`,
	}
	for id, text := range raw {
		registry.AddRaw(id, jsontext.Value(text))
	}
	r.run(r.agent())
	for id := range raw {
		r.wait(id, func() bool { return len(registry.Results(id)) > 0 })
		if got := registry.Results(id)[0].Result; got.Status != "failed" || got.Error != string(device.Invalid) {
			t.Errorf("%s: %+v", id, got)
		}
	}
	for _, id := range []string{"other", "nobody", "question", "broken"} {
		r.wait(id, func() bool { return len(registry.Results(id)) > 0 })
	}
	if n := r.asked.Load(); n != 2 {
		t.Errorf("worked on %d", n)
	}
}

// TestNoPermission: a registry whose agent may ask nothing is told of no agent, and gets nothing done.
func TestNoPermission(t *testing.T) {
	registry := new(aiostest.Registry)
	registry.Add("a", "beds", "water")
	r := newRig(t, registry, nil)
	r.host.May = func(agents.Principal) bool { return false }
	r.run(r.agent())
	r.wait("result", func() bool { return len(registry.Results("a")) > 0 })
	if got := registry.Results("a")[0].Result; got.Error != string(device.Denied) || r.asked.Load() != 0 {
		t.Errorf("%+v, %d", got, r.asked.Load())
	}
	if node := string(registry.Nodes()[0]); !strings.Contains(node, `"available_agents":[]`) {
		t.Error(node)
	}
}

// TestUnclaimed: a site without an owner sends nothing at all.
func TestUnclaimed(t *testing.T) {
	registry := new(aiostest.Registry)
	requests := new(atomic.Int32)
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { requests.Add(1); registry.ServeHTTP(w, q) }), nil)
	r.free.Store(true)
	a := r.agent()
	r.run(a)
	r.wait("report", func() bool { return a.Report(t.Context()).State == agent.Waiting })
	if requests.Load() != 0 {
		t.Error(requests.Load())
	}
	r.free.Store(false)
	r.wait("requests", func() bool { return len(registry.Nodes()) > 0 })
}

// TestHostile: a registry's answers that are no lists do nothing, wherever they redirect, and no
// answer ends the reporter.
func TestHostile(t *testing.T) {
	elsewhere := new(atomic.Int32)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { elsewhere.Add(1); io.WriteString(w, `[]`) }))
	defer other.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
		},
		"huge":   func(w http.ResponseWriter, q *http.Request) { io.WriteString(w, "["+strings.Repeat(" ", maxTasks)+"]") },
		"object": func(w http.ResponseWriter, q *http.Request) { io.WriteString(w, `{"taskId":"a"}`) },
		"page":   func(w http.ResponseWriter, q *http.Request) { io.WriteString(w, `<html>`) },
		"deep":   func(w http.ResponseWriter, q *http.Request) { io.WriteString(w, strings.Repeat("[", 200_000)) },
		"cut": func(w http.ResponseWriter, q *http.Request) {
			io.WriteString(w, `[{"taskId":"a","task":{"type":"custom"`)
		},
		"forbidden": func(w http.ResponseWriter, q *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"broken":    func(w http.ResponseWriter, q *http.Request) { panic(http.ErrAbortHandler) },
		"created":   func(w http.ResponseWriter, q *http.Request) { w.WriteHeader(http.StatusCreated) },
	} {
		t.Run(name, func(t *testing.T) {
			tries := new(atomic.Int32)
			r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if q.Method == http.MethodGet {
					tries.Add(1)
					answer(w, q)
				}
			}), nil)
			a := r.agent()
			r.run(a)
			r.wait("another try", func() bool { return tries.Load() > 1 })
			r.wait("report", func() bool { return a.Report(t.Context()).State == agent.Waiting })
			if says := a.Report(t.Context()).Says; strings.Contains(says, "node") {
				t.Errorf("%q has the secret of the protocol", says)
			}
			if r.asked.Load() != 0 || elsewhere.Load() != 0 {
				t.Errorf("%d tasks, %d requests elsewhere", r.asked.Load(), elsewhere.Load())
			}
		})
	}
	t.Run("items", func(t *testing.T) { // among which one is a task
		long := strings.Repeat("x", maxID+1)
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Method == http.MethodGet {
				fmt.Fprintf(w, `[null,1,"a",[],{},{"taskId":null},{"taskId":7},{"taskId":""},{"taskId":%q},{"taskId":"a\nb"},{"taskId":"ä"},{"TASKID":"b"},
					{"taskId":"good","more":1,"task":{"type":"custom","data":{"agent":"beds","message":"water"}}}]`, long)
			}
		}), nil)
		r.run(r.agent())
		r.wait("task", func() bool { return r.asked.Load() > 0 })
	})
}

// TestPrivate: a registry's name that leads to an address of this network is not asked.
func TestPrivate(t *testing.T) {
	hits := new(atomic.Int32)
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { hits.Add(1) }), nil)
	a := r.agent()
	a.Registry = strings.Replace(r.url, "http://127.0.0.1", "https://localhost", 1)
	r.run(a)
	r.wait("report", func() bool {
		return a.Report(t.Context()).State == agent.Waiting && strings.Contains(a.Report(t.Context()).Says, "private network")
	})
	if hits.Load() != 0 {
		t.Error("it was dialled")
	}
	for _, url := range []string{"", "registry.example.org", "ftp://registry.example.org", "http://registry.example.org", "http://192.168.1.7", "https://u:p@registry.example.org", "https://registry.example.org?a=b", "https://registry.example.org#a"} {
		a.Registry = url
		var wrong *agent.Mistake
		if _, err := a.Define(); !errors.As(err, &wrong) || wrong.Key != "registry" {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// TestFlood: of thousands of tasks a few are worked on at a time.
func TestFlood(t *testing.T) {
	registry := new(aiostest.Registry)
	hold := make(chan struct{})
	r := newRig(t, registry, func(ctx context.Context, w task.Work) (jsontext.Value, error) {
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return jsontext.Value(`"done"`), nil
	})
	for i := range 1500 {
		registry.Add(fmt.Sprint(i), "beds", "water")
	}
	r.run(r.agent())
	r.wait("reports", func() bool { return len(registry.Nodes()) > 5 })
	if n := r.asked.Load(); n != maxWorking {
		t.Errorf("%d at a time", n)
	}
	close(hold)
	r.wait("results", func() bool { return len(registry.Results("100")) > 0 })
	if n := r.most.Load(); n != maxWorking {
		t.Errorf("%d at a time", n)
	}
}

// TestRestart: tasks taken before a restart are done once, and outcomes not reported before are
// reported after it.
func TestRestart(t *testing.T) {
	registry := new(aiostest.Registry)
	hold := make(chan struct{})
	r := newRig(t, registry, func(ctx context.Context, w task.Work) (jsontext.Value, error) {
		if w.Task().Text == "slow" {
			select {
			case <-hold:
			case <-ctx.Done():
			}
		}
		return json.Marshal(w.Task().Text)
	})
	registry.SetBusy(http.StatusBadGateway)
	registry.Add("working", "beds", "slow")
	registry.Add("ended", "beds", "fast")
	stop := r.run(r.agent())
	r.wait("work", func() bool {
		all, _ := r.host.List(t.Context(), self)
		return len(all) == 2 && slices.ContainsFunc(all, func(t task.Task) bool { return t.State == task.Completed })
	})
	stop()
	registry.SetBusy(0)
	close(hold)
	r.run(r.agent())
	for id, text := range map[string]string{"working": `"slow"`, "ended": `"fast"`} {
		r.wait(id, func() bool { return len(registry.Results(id)) > 0 })
		if got := registry.Results(id)[0].Result; got.Status != "completed" || string(got.Result) != text {
			t.Errorf("%s: %+v", id, got)
		}
	}
	if n := r.asked.Load(); n != 2 {
		t.Errorf("worked %d times", n)
	}
}

// TestRefusedResult: a registry that knows a task no more is told of it once.
func TestRefusedResult(t *testing.T) {
	registry := new(aiostest.Registry)
	registry.SetBusy(http.StatusNotFound)
	registry.Add("a", "beds", "water")
	r := newRig(t, registry, nil)
	a := r.agent()
	r.run(a)
	r.wait("work", func() bool { return r.asked.Load() == 1 })
	registry.SetBusy(0)
	r.wait("result", func() bool { return len(registry.Results("a")) > 0 }) // it was listed again
	if r.asked.Load() != 1 {
		t.Error(r.asked.Load())
	}
}

// TestRate: a task that the site has no room for is asked for again, and then given up.
func TestRate(t *testing.T) {
	registry := new(aiostest.Registry)
	r := newRig(t, registry, nil)
	a := r.agent()
	full := &busyHost{Host: r.host, full: 3}
	a.world.Tasks = func() task.Host { return full }
	registry.Add("a", "beds", "water")
	stop := r.run(a)
	r.wait("result", func() bool { return len(registry.Results("a")) > 0 })
	if got := registry.Results("a")[0].Result; got.Status != "completed" || full.asked.Load() != 4 {
		t.Errorf("%+v after %d", got, full.asked.Load())
	}
	stop()
	full.full = 1000
	registry.Add("b", "beds", "water")
	r.run(a)
	r.wait("result", func() bool { return len(registry.Results("b")) > 0 })
	if got := registry.Results("b")[0].Result; got.Error != string(device.Busy) || full.asked.Load() != 4+maxTries {
		t.Errorf("%+v after %d", got, full.asked.Load())
	}
}

// busyHost has no room for some of the first requests.
type busyHost struct {
	task.Host
	full  int32
	asked atomic.Int32
}

func (h *busyHost) Ask(ctx context.Context, p agents.Principal, r task.Request) (task.Task, error) {
	if h.asked.Add(1) <= h.full {
		return task.Task{}, device.Faultf(device.Busy, "too many")
	}
	return h.Host.Ask(ctx, p, r)
}
