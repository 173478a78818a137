package conformance

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/agents/tools"
)

// Agent offers the fixtures that are tools. It is safe for concurrent use.
type Agent struct {
	announce func(agents.Change)
	tasks    func() task.Host // of the site that hosts a Worker
	fixtures []fixture
	tools    []tools.Tool // of the fixtures
}

// fixture is one tool of the suite.
type fixture struct {
	name, description string
	input             string // a JSON Schema; "" for no arguments
	call              func(context.Context, tools.Call) (tools.Result, error)
	ask               askingCall // instead of call, of a tool that asks in its caller's name
}

// askingCall is a call that knows its caller.
type askingCall = func(context.Context, agents.Principal, tools.Call) (tools.Result, error)

var _ tools.Agent = (*Agent)(nil)

// New makes the agent. It tells announce of the changes that its fixtures cause, and asks the Worker
// for tasks at the host that tasks returns.
func New(announce func(agents.Change), tasks func() task.Host) *Agent {
	a := &Agent{announce: announce, tasks: tasks}
	for _, part := range [][]fixture{
		contentFixtures, runningFixtures, askingFixtures, roundFixtures, a.changeFixtures(), a.taskFixtures(),
	} {
		a.fixtures = append(a.fixtures, part...)
	}
	for _, f := range a.fixtures {
		t := tools.Tool{Name: f.name, Description: f.description, Input: []byte(`{"type":"object"}`)}
		if f.input != "" {
			t.Input = []byte(f.input)
		}
		a.tools = append(a.tools, t)
	}
	return a
}

// Run changes the watched resource every three seconds until ctx ends.
func (a *Agent) Run(ctx context.Context) {
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.announce(agents.Change{URI: watchedURI})
		}
	}
}

func (a *Agent) Tools() []tools.Tool { return a.tools }

func (a *Agent) Call(ctx context.Context, p agents.Principal, c tools.Call) (tools.Result, error) {
	for _, f := range a.fixtures {
		if f.name == c.Tool {
			if f.ask != nil {
				return f.ask(ctx, p, c)
			}
			return f.call(ctx, c)
		}
	}
	return tools.Result{}, tools.ErrNotFound
}

// changeFixtures announce a change of the lists, which stay as they are: the suite
// looks for the notification.
func (a *Agent) changeFixtures() []fixture {
	announcing := func(c agents.Change) func(context.Context, tools.Call) (tools.Result, error) {
		return func(context.Context, tools.Call) (tools.Result, error) {
			a.announce(c)
			return text("announced"), nil
		}
	}
	return []fixture{
		{name: "test_trigger_tool_change", description: "Announces that the tools changed",
			call: announcing(agents.Change{Tools: true})},
		{name: "test_trigger_prompt_change", description: "Announces that the prompts changed",
			call: announcing(agents.Change{Prompts: true})},
	}
}

func text(s string) tools.Result { return tools.Result{Content: []tools.Content{{Text: s}}} }
