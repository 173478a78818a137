package llm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/llm/chat"
	"agentsite/agents/principal"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

// maxTurns bounds the requests to the model for one task, and maxCalls the calls made of one answer.
const maxTurns, maxCalls = 8, 4

// run is a model at work on one task.
type run struct {
	agent *Agent
	self  agents.Principal
	work  task.Work
	site  *guarded
	task  task.Task

	catalog  *tools.Catalog
	all      []*tools.Tool  // that it may use
	offered  []*tools.Tool  // that it may call now
	earlier  []chat.Message // of the conversation before the task
	messages []chat.Message // of the task: the asker's words, and what followed
	pictures []chat.Image   // that the calls of this turn have taken
	note     string         // on the server, for the asker; "" for none
}

// Work implements agent.Worker.
func (a *Agent) Work(ctx context.Context, self agents.Principal, site agents.Site, w task.Work) (jsontext.Value, error) {
	r := &run{agent: a, self: self, work: w, task: w.Task()}
	a.working.Store(&r.task.ID)
	defer a.working.CompareAndSwap(&r.task.ID, nil)
	if strings.TrimSpace(r.task.Text) == "" {
		return nil, device.Faultf(device.Invalid, "say in words what you want: agentsite ask %s what you want", r.task.Agent)
	}
	r.site = &guarded{Site: site, run: r}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	text, err := r.talk(ctx)
	if err != nil {
		return nil, err
	}
	return r.answer(text)
}

// begin lists the tools, and takes up the conversation.
func (r *run) begin(ctx context.Context) error {
	a := r.agent
	r.catalog = tools.New(r.site, a.world.Hosted)
	all, err := r.catalog.Tools(ctx, r.self)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Name != draftTool && (len(a.Allowed) == 0 || slices.Contains(a.Allowed, all[i].Name)) { // of no program
			r.all = append(r.all, &all[i])
		}
	}
	if a.Drafts && a.world.Draft != nil {
		r.all = append(r.all, &tools.Tool{Name: draftTool, Description: draftHelp, Input: []byte(draftInput)})
	}
	if err := r.remember(ctx); err != nil {
		return err
	}
	add(&r.messages, chat.User, r.task.Text)
	if before := r.task.Steps; len(before) > 0 {
		r.site.resume(before)
		add(&r.messages, chat.User, restarted(before))
	}
	r.offered = r.all
	if a.Mode == modePlan {
		r.offerPlan()
	}
	return nil
}

// add adds a message to a conversation.
func add(all *[]chat.Message, role chat.Role, text string) *chat.Message {
	*all = append(*all, chat.Message{Role: role, Text: text})
	return &(*all)[len(*all)-1]
}

// talk asks the model until it answers without a call, or its plan is carried out.
func (r *run) talk(ctx context.Context) (string, error) {
	for turn := 1; ; turn++ {
		if turn == maxTurns {
			r.offered = nil
		}
		a, err := r.ask(ctx, r.messages, r.offered)
		if err == nil && turn == maxTurns && a.Text == "" {
			err = device.Faultf(device.Unavailable, "the model gave no answer: it called tools in each of its %d turns; ask for less at once", maxTurns)
		}
		if err != nil || len(a.Calls) == 0 || turn == maxTurns {
			return a.Text, err
		}
		r.messages = append(r.messages, a.Message())
		r.pictures = nil
		for i := range a.Calls {
			var text string
			switch c := &a.Calls[i]; {
			case i >= maxCalls:
				text = fault(device.Faultf(device.Busy, "not made: at most %d calls in one turn", maxCalls))
			case c.Name == planTool && r.agent.Mode == modePlan:
				steps, err := r.readPlan(c)
				if err == nil {
					return r.carryOut(ctx, steps)
				}
				text = fault(err)
			default:
				text, _ = r.call(ctx, c)
			}
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			add(&r.messages, chat.Tool, text).CallID = a.Calls[i].ID
		}
		if len(r.pictures) > 0 {
			add(&r.messages, chat.User, "(the pictures that the tools took)").Images = r.pictures
		}
	}
}

// ask sends the model one request, within the budget and its turn at the server.
func (r *run) ask(ctx context.Context, messages []chat.Message, offered []*tools.Tool) (a chat.Answer, err error) {
	req, bytes, err := r.fit(messages, offered)
	if err != nil {
		return a, err
	}
	w := r.agent.world
	leave, err := w.Queues.Enter(ctx, r.agent.Model.URL, r.agent.name, r.priority())
	if err != nil {
		return a, err
	}
	defer leave()
	// A token is at least one byte, so that no budget is passed.
	spent, err := w.Ledger.reserve(r.agent, bytes, r.agent.Model.Answer)
	if err != nil {
		return a, err
	}
	r.work.Say("the model thinks")
	var show func(string)
	if t, ok := r.work.(task.Talk); ok {
		show = t.Write
	}
	req.Again = func() error { // what was sent before may have used all of its reservation
		next, err := w.Ledger.reserve(r.agent, bytes, r.agent.Model.Answer)
		if err == nil {
			spent = next
		}
		return err
	}
	a, err = r.agent.model.Complete(ctx, req, show)
	r.work.Say("")
	used := a.Usage
	if err == nil && used.Known && used.Prompt > 0 {
		r.noteCut(bytes, used.Prompt)
	} else if err == nil {
		used = chat.Usage{Prompt: tokens(bytes), Answer: tokens(sizeOfAnswer(&a)), Known: true}
	}
	if used.Known { // else it may have used all
		spent.settle(used)
	}
	if err != nil || len(a.Calls) > 0 {
		return a, err
	}
	if a.Refused != "" && a.Text == "" {
		a.Text = "The model refused to answer."
	}
	if prose(a.Text, offered) {
		r.note = "the model wrote a call as words, and of words no call is made; its server has to know how the model calls: llama.cpp by --jinja, vLLM by --tool-call-parser, Ollama by the model's template"
	}
	return a, nil
}

// noteCut notes where a server counted far fewer tokens than it was sent: some cut a request at its
// beginning, and do not say so.
func (r *run) noteCut(bytes, counted int) {
	var note *string
	if counted*bytesOfToken < bytes {
		r.note = fmt.Sprintf("the server counted %d tokens of about %d that it was sent: it probably cut their beginning; raise its context (of Ollama OLLAMA_CONTEXT_LENGTH), or lower model.context", counted, tokens(bytes))
		note = &r.note
	}
	r.agent.cut.Store(note)
}

// prose reports whether a text is a call of one of the tools, which a server has not understood as one.
func prose(text string, offered []*tools.Tool) bool {
	if !strings.Contains(text, `"arguments"`) && !strings.Contains(text, `"parameters"`) && !strings.Contains(text, "<function=") {
		return false
	}
	for _, t := range offered {
		if strings.Contains(text, "<function="+t.Name) || strings.Contains(text, `"`+t.Name+`"`) {
			return true
		}
	}
	return false
}

// priority is that of people, unless an agent of the site asks.
func (r *run) priority() chat.Priority {
	switch kind, _ := principal.Parse(r.task.Asker).Agent(); kind {
	case "rule":
		return chat.Rule
	case "routine":
		return chat.Schedule
	}
	return chat.Chat
}
