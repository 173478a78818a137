package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// WorkerName is the name by which the fixtures ask the Worker.
const WorkerName = "fixtures"

// Worker takes the tasks.
type Worker struct{}

var _ agent.Worker = Worker{}

// Run waits for the end: the worker works only when it is asked.
func (Worker) Run(ctx context.Context, _ agents.Principal, _ agents.Site) error {
	<-ctx.Done()
	return nil
}

// taskArgs are the arguments of all fixtures.
type taskArgs struct {
	Seconds  float64 `json:"seconds,omitzero"`
	Label    string  `json:"label,omitzero"`
	Filename string  `json:"filename,omitzero"`
	Name     string  `json:"name,omitzero"`
}

// skills are the functions of the worker, by skill.
var skills = map[string]func(context.Context, taskArgs, task.Work) (any, error){
	"slow": func(ctx context.Context, in taskArgs, _ task.Work) (any, error) {
		return "computed " + in.Label, sleep(ctx, in.Seconds)
	},
	"fail": func(ctx context.Context, _ taskArgs, _ task.Work) (any, error) {
		if err := sleep(ctx, 0.5); err != nil {
			return nil, err
		}
		return nil, device.Faultf(device.Unsafe, "this tool intentionally fails")
	},
	"crash": func(context.Context, taskArgs, task.Work) (any, error) {
		return nil, errors.New("this tool intentionally has a defect")
	},
	"confirm": func(ctx context.Context, in taskArgs, w task.Work) (any, error) {
		return w.Input(ctx, task.Question{ID: "confirm", Text: "Delete " + in.Filename + "?"})
	},
	"questions": func(ctx context.Context, _ taskArgs, w task.Work) (any, error) {
		first, err := w.Input(ctx, task.Question{ID: "first", Text: "The first name?"})
		if err != nil {
			return nil, err
		}
		second, err := w.Input(ctx, task.Question{ID: "second", Text: "The second name?"})
		return []string{first, second}, err
	},
	"hello": func(_ context.Context, in taskArgs, _ task.Work) (any, error) { return "Hello, " + in.Name + "!", nil },
}

func (Worker) Skills() (all []task.Skill) {
	for _, id := range []string{"slow", "fail", "crash", "confirm", "questions", "hello"} {
		all = append(all, task.Skill{ID: id, Description: "a fixture", Input: jsontext.Value(`{"type":"object"}`)})
	}
	return all
}

func (Worker) Work(ctx context.Context, _ agents.Principal, _ agents.Site, w task.Work) (jsontext.Value, error) {
	t := w.Task()
	var in taskArgs
	if len(t.Arguments) > 0 {
		if err := json.Unmarshal(t.Arguments, &in); err != nil {
			return nil, device.Faultf(device.Invalid, "arguments: %w", err)
		}
	}
	res, err := skills[t.Skill](ctx, in, w)
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}

func sleep(ctx context.Context, seconds float64) error {
	return device.Sleep(ctx, time.Duration(seconds*float64(time.Second)))
}

// taskFixtures are the tools that ask the worker. One that is required is refused to a client that
// has not declared the extension.
func (a *Agent) taskFixtures() []fixture {
	asks := func(skill string, required bool) askingCall {
		return func(ctx context.Context, p agents.Principal, c tools.Call) (tools.Result, error) {
			var in taskArgs
			if err := c.Args.Decode(&in); err != nil {
				return tools.Result{}, device.Faultf(device.Invalid, "%w", err)
			}
			return a.ask(ctx, p, c, skill, in, required)
		}
	}
	const open = `{"type":"object","properties":{
		"seconds":{"type":"number"},"label":{"type":"string"},"filename":{"type":"string"}}}`
	return []fixture{
		{name: "greet", description: "Greets, without a task", input: oneText("name"),
			call: func(_ context.Context, c tools.Call) (tools.Result, error) {
				var in taskArgs
				err := c.Args.Decode(&in)
				return text(fmt.Sprintf("Hello, %s!", in.Name)), err
			}},
		{name: "slow_compute", description: "Takes some seconds", input: open, ask: asks("slow", false)},
		{name: "failing_job", description: "Fails, as a task only", input: open, ask: asks("fail", true)},
		{name: "protocol_error_job", description: "Has a defect", input: open, ask: asks("crash", false)},
		{name: "confirm_delete", description: "Asks before it goes on", input: open, ask: asks("confirm", false)},
		{name: "multi_input", description: "Asks two questions", input: open, ask: asks("questions", false)},
		{name: "test_tool_with_task", description: "Asks for a name, and then is a task",
			ask: func(ctx context.Context, p agents.Principal, c tools.Call) (tools.Result, error) {
				name, ok := accepted[string](c.Exchange, "user_name", "name")
				if !ok {
					return need("", askName), nil
				}
				return a.ask(ctx, p, c, "hello", taskArgs{Name: name}, true)
			}},
	}
}

// ask asks the worker, and waits for the end where the client takes no tasks.
func (a *Agent) ask(
	ctx context.Context, p agents.Principal, c tools.Call, skill string, in taskArgs, required bool,
) (tools.Result, error) {
	if required && !c.Exchange.Can.Tasks {
		return tools.Result{}, &tools.NeedsCapability{Needs: tools.Capabilities{Tasks: true}}
	}
	args, err := json.Marshal(in)
	if err != nil {
		return tools.Result{}, err
	}
	host := a.tasks()
	t, err := host.Ask(ctx, p, task.Request{Agent: WorkerName, Skill: skill, Arguments: args, Terms: c.Terms})
	if err != nil || c.Exchange.Can.Tasks {
		return tools.Result{Task: &t}, err
	}
	if err := host.Watch(ctx, p, t.ID, func(now task.Task) error { t = now; return nil }); err != nil {
		return tools.Result{}, err
	}
	return tools.OutcomeOf(t)
}
