package openapi

import (
	"context"
	"time"

	"agentsite/agents/task"
	"agentsite/node"

	"github.com/go-json-experiment/json/jsontext"
)

// maxListed bounds the tasks of a list.
const maxListed = 50

// agentList are the agents that a caller may ask.
type agentList struct {
	Agents []task.Agent `json:"agents"`
}

func (a api) agents(ctx context.Context, c *call) (any, error) {
	all, err := a.Tasks.Agents(ctx, c.Who)
	if all == nil {
		all = []task.Agent{}
	}
	return boxed(agentList{all}, err)
}

// askBody is a task.Request without the agent, which the path names.
type askBody struct {
	Skill     string         `json:"skill,omitzero" jsonschema:"may be left out where the agent has one"`
	Text      string         `json:"text,omitzero" jsonschema:"what is wanted, for agents that read"`
	Arguments jsontext.Value `json:"arguments,omitzero" jsonschema:"of the skill, see listAgents"`
	Seconds   *float64       `json:"seconds,omitzero" jsonschema:"until it fails; about an hour when left out"`
}

func (a api) ask(ctx context.Context, c *call) (any, error) {
	var body askBody
	if err := a.decode(c, &body); err != nil {
		return nil, err
	}
	t, err := a.Tasks.Ask(ctx, c.Who, task.Request{
		Agent: c.Request.PathValue("agent"), Skill: body.Skill, Text: body.Text, Arguments: body.Arguments, Seconds: body.Seconds, Terms: c.terms,
	})
	if err == nil {
		c.Writer.Header().Set("Location", "/api/tasks/"+t.ID)
	}
	return boxed(t, err)
}

// taskList are tasks, those that have not ended first, and then the newest.
type taskList struct {
	Tasks []task.Task `json:"tasks"`
	More  int         `json:"more,omitzero" jsonschema:"older ones, which are left out"`
}

func (a api) listTasks(ctx context.Context, c *call) (any, error) {
	all, err := a.Tasks.List(ctx, c.Who)
	if err != nil {
		return nil, err
	}
	all, more := task.Cut(all, maxListed)
	out := taskList{Tasks: make([]task.Task, 0, len(all)), More: more}
	for _, t := range all {
		t.Result, t.Steps, t.Text, t.Arguments = nil, nil, "", nil
		out.Tasks = append(out.Tasks, t)
	}
	return out, nil
}

// task tells how a task is. A call that waits holds one of its account's places for that.
func (a api) task(ctx context.Context, c *call) (any, error) {
	id := c.Request.PathValue("task")
	t, err := a.Tasks.Task(ctx, c.Who, id)
	length := c.numbers[wait.name]
	if err != nil || length == nil || t.Settled() {
		return boxed(t, err)
	}
	place, err := a.Node.Hold(c.Who, node.Waits)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	return boxed(a.Wait(ctx, c.Who, t, time.Duration(*length*float64(time.Second))))
}

// answerBody answers a task's question.
type answerBody struct {
	Answer   string `json:"answer"`
	Question string `json:"question,omitzero" jsonschema:"its ID; the present one when left out"`
}

func (a api) answer(ctx context.Context, c *call) (any, error) {
	var body answerBody
	if err := a.decode(c, &body); err != nil {
		return nil, err
	}
	return boxed(task.AnswerQuestion(ctx, a.Tasks, c.Who, c.Request.PathValue("task"), body.Question, body.Answer))
}

func (a api) cancel(ctx context.Context, c *call) (any, error) {
	return boxed(a.Tasks.Cancel(ctx, c.Who, c.Request.PathValue("task")))
}
