package aios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/web/outbound"
)

// KindName is the name of the kind of agent, and so the beginning of its principal.
const KindName = "aios"

const (
	interval = 30 * time.Second // as in the reference
	maxPause = 10               // intervals, between tries of a registry that does not answer
	// maxWorking bounds the tasks of the registry that have not been reported yet; tasks beyond
	// are left where they are.
	maxWorking = 8
	// maxTries bounds the requests for a task that the site has no room for.
	maxTries = 20
)

var errShape = errors.New("the answer of the registry is not a list of tasks")

// World holds the parts of the site that the reporter uses.
type World struct {
	Site    string // its name
	Version string // of the program
	// Node returns how the site calls itself at a registry. It is the only secret of the protocol:
	// with it anybody takes the site's tasks from the registry, and answers them.
	Node  func(registry string) string
	Tasks func() task.Host
	Now   func() time.Time
	// Claimed reports whether the site has an owner. Before, nothing is reported and fetched.
	Claimed func() bool
}

// Kind returns the entry of the list of kinds.
func Kind(w World) agent.Kind {
	return agent.Kind{Name: KindName, Doc: "reports the agents that it may ask to an AIOS registry, and takes tasks for them from there", New: func() agent.Agent { return &Agent{world: w, every: interval} }}
}

// Agent is a reporter.
type Agent struct {
	Registry string `json:"registry" jsonschema:"the URL of the registry, such as https://registry.example.org"`

	agent.Status

	world World
	every time.Duration
	http  *http.Client
	node  string

	mu      sync.Mutex
	working map[string]bool // tasks there, by their IDs
}

// Define implements agent.Defined.
func (a *Agent) Define() (agent.Definition, error) {
	err := outbound.CheckURL(a.Registry, "a registry", "https://registry.example.org")
	if err == nil && strings.Contains(a.Registry, "?") {
		err = fmt.Errorf("%.80q has a query; write the URL that /api/nodes follows", a.Registry)
	}
	if err != nil {
		return agent.Definition{}, &agent.Mistake{Key: "registry", Err: err}
	}
	return agent.Definition{}, nil
}

// Run reports and fetches each half minute, until ctx ends. Tasks that were taken go on then, and are
// reported after the next start.
func (a *Agent) Run(ctx context.Context, self agents.Principal, _ agents.Site) error {
	u, err := url.Parse(a.Registry)
	if err != nil {
		return err
	}
	a.http, a.node = outbound.Client(callTimeout, u.Hostname()), a.world.Node(a.base())
	a.working = make(map[string]bool)
	var running sync.WaitGroup
	defer running.Wait()
	take := func(id string, work func() outcome) {
		if a.take(id) {
			running.Go(func() {
				defer a.leave(id)
				if o := work(); ctx.Err() == nil {
					a.report(ctx, id, o)
				}
			})
		}
	}
	if err := a.resume(ctx, self, take); err != nil {
		return err
	}
	for pause := a.every; ; {
		err := a.round(ctx, self, take)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			pause = a.every
		default:
			if pause == a.every {
				slog.Warn("the AIOS registry is not reached", "registry", u.Host, "err", err)
			}
			a.Say(agent.Waiting, "the registry is not reached: %v", err)
			pause = min(2*pause, maxPause*a.every)
		}
		if device.Sleep(ctx, pause) != nil {
			return nil
		}
	}
}

// take reserves a slot for a task of the registry, and reports whether it could. It refuses a task
// that is already worked on.
func (a *Agent) take(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.working[id] || len(a.working) >= maxWorking {
		return false
	}
	a.working[id] = true
	return true
}

func (a *Agent) leave(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.working, id)
}

// resume goes on with the tasks that were taken before a restart. It reports the last ended tasks
// again, as many as run at a time, because it is not stored whether the registry got their outcome.
func (a *Agent) resume(ctx context.Context, self agents.Principal, take func(string, func() outcome)) error {
	all, err := a.world.Tasks().List(ctx, self)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(x, y task.Task) int {
		if x.State.Ended() != y.State.Ended() { // working tasks first
			return map[bool]int{true: 1, false: -1}[x.State.Ended()]
		}
		return cmp.Compare(y.Changed, x.Changed)
	})
	for _, t := range all[:min(len(all), maxWorking)] {
		take(t.Context, func() outcome { return a.follow(ctx, self, t.ID) })
	}
	return nil
}

// round reports the site and takes the tasks that wait for it.
func (a *Agent) round(ctx context.Context, self agents.Principal, take func(string, func() outcome)) error {
	if !a.world.Claimed() {
		a.Say(agent.Waiting, "the site has no owner, and reports nothing before: agentsite claim")
		return nil
	}
	list, err := a.world.Tasks().Agents(ctx, self)
	if err != nil {
		return err
	}
	s := status{
		ID: a.node, Name: a.world.Site, Time: a.world.Now().UTC().Format(time.RFC3339), Agents: []string{}, Status: "active",
		System: system{runtime.GOOS + "/" + runtime.GOARCH, "agentsite " + a.world.Version},
	}
	for _, t := range list {
		s.Agents = append(s.Agents, t.Name)
	}
	if err := a.post(ctx, "/api/nodes", s); err != nil {
		return err
	}
	waiting, err := a.fetch(ctx)
	if err != nil {
		return err
	}
	for _, p := range waiting {
		take(p.ID, func() outcome { return a.ask(ctx, self, p) })
	}
	if len(list) == 0 {
		a.Say(agent.Idle, "it may ask no agent, so that it reports none: write may: ask NAME")
	} else {
		a.Say(agent.Idle, "it reports %d of the site's agents", len(list))
	}
	return nil
}

// ask asks an agent for a task of the registry, and returns its outcome.
func (a *Agent) ask(ctx context.Context, self agents.Principal, p pending) outcome {
	if p.Task.Type != "custom" || p.Task.Data.Agent == "" {
		return failed(device.Faultf(device.Invalid, "this site takes tasks of the type custom, with an agent and a message"))
	}
	key := a.keyOf(p.ID)
	_, name := path.Split(p.Task.Data.Agent) // AUTHOR/NAME there
	r := task.Request{Agent: name, Text: p.Task.Data.Message, Context: p.ID, Terms: agents.Terms{Key: &key}}
	list, err := a.world.Tasks().Agents(ctx, self)
	if err != nil {
		return failed(err)
	}
	for _, t := range list { // a routine reads no text, and the protocol has nothing else
		if t.Name == r.Agent && slices.ContainsFunc(t.Skills, func(s task.Skill) bool { return s.ID == r.Text }) {
			r.Skill, r.Text = r.Text, ""
		}
	}
	for try := 1; ; try++ {
		t, err := a.world.Tasks().Ask(ctx, self, r)
		if err == nil {
			return a.follow(ctx, self, t.ID)
		}
		var needed *agents.ApprovalNeeded
		kind := device.AsFault(err).Kind
		switch {
		case errors.As(err, &needed):
			r.Approval = needed.State
		case kind != device.Busy && kind != device.Unavailable:
			return failed(err)
		}
		if try == maxTries || device.Sleep(ctx, a.every) != nil {
			return failed(err)
		}
	}
}

// follow waits for the end of a task. A question ends it: nobody at the registry sees it.
func (a *Agent) follow(ctx context.Context, self agents.Principal, id string) outcome {
	var last task.Task
	err := a.world.Tasks().Watch(ctx, self, id, func(t task.Task) error {
		last = t
		if t.State != task.InputRequired {
			return nil
		}
		_, err := a.world.Tasks().Cancel(ctx, self, id)
		return cmp.Or(err, error(device.Faultf(device.Invalid, "it asks a question, which cannot be answered from a registry")))
	})
	switch {
	case err != nil:
		return failed(err)
	case last.State == task.Completed:
		words, ok := last.Words()
		if !ok { // a registry's pages show texts
			words = string(last.Result)
		}
		return outcome{Status: "completed", Result: &words}
	}
	return outcome{Status: "failed", Message: cmp.Or(last.Says, "it has not been done"), Error: cmp.Or(last.Fault, string(last.State))}
}

func failed(err error) outcome {
	f := device.AsFault(err)
	return outcome{Status: "failed", Message: f.Error(), Error: string(f.Kind)}
}

// report sends a task's outcome to the registry until that answers. It does not repeat a report
// that the registry refuses.
func (a *Agent) report(ctx context.Context, id string, o outcome) {
	for pause := a.every; ; pause = min(2*pause, maxPause*a.every) {
		err := a.post(ctx, "/api/nodes/results", reported{id, a.node, o})
		var refused *outbound.StatusError
		switch {
		case err == nil:
			return
		case errors.As(err, &refused) && refused.Code >= 300 && refused.Code < 500:
			slog.Warn("the AIOS registry refuses the result of a task", "err", err)
			return
		case device.Sleep(ctx, pause) != nil:
			return
		}
	}
}
