package llm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentsite/agents"
	"agentsite/agents/llm/chat"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxTurns is how often the model is asked for one task, and maxCalls how many calls of one answer
// are made.
const maxTurns, maxCalls = 8, 4

// run is a model at work on one task.
type run struct {
	*Agent
	self agents.Principal
	work task.Work
	site *guarded
	task task.Task

	catalog  *tools.Catalog
	offered  []tools.Tool
	earlier  []chat.Message // of the conversation before the task
	messages []chat.Message // of the task: the asker's words, and what followed
	note     string         // on the server, for the asker; "" for none
}

// Work implements agent.Worker.
func (a *Agent) Work(ctx context.Context, self agents.Principal, site agents.Site, w task.Work) (jsontext.Value, error) {
	t := w.Task()
	a.working.Store(&t.ID)
	defer a.working.Store(nil)
	if strings.TrimSpace(t.Text) == "" {
		return nil, device.Faultf(device.Invalid, "say in words what you want: agentsite ask %s what you want", t.Agent)
	}
	r := &run{Agent: a, self: self, work: w, task: t}
	r.site = &guarded{Site: site, run: r}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	text, err := r.talk(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(r.answer(text), json.Deterministic(true))
}

// begin lists the tools, and takes up the conversation.
func (r *run) begin(ctx context.Context) error {
	r.catalog = tools.New(r.site, programs{r.world.Hosted, r})
	all, err := r.catalog.Tools(ctx, r.self)
	if err != nil {
		return err
	}
	for _, t := range all {
		if len(r.Allowed) == 0 || slices.Contains(r.Allowed, t.Name) {
			r.offered = append(r.offered, t)
		}
	}
	if r.Drafts && r.world.Draft != nil {
		r.offered = append(r.offered, tools.Tool{Name: draftTool, Description: draftHelp, Input: []byte(draftInput)})
	}
	if err := r.remember(ctx); err != nil {
		return err
	}
	r.messages = []chat.Message{{Role: chat.User, Text: r.task.Text}}
	if before := r.task.Steps; len(before) > 0 {
		r.site.resume(before)
		r.messages = append(r.messages, chat.Message{Role: chat.User, Text: restarted(before)})
	}
	return nil
}

// talk asks the model until it answers without a call.
func (r *run) talk(ctx context.Context) (string, error) {
	if r.Mode == modePlan {
		return r.plan(ctx)
	}
	for turn := 1; ; turn++ {
		offered := r.offered
		if turn == maxTurns {
			offered = nil
		}
		a, err := r.ask(ctx, r.messages, offered)
		if err != nil {
			return "", err
		}
		if len(a.Calls) == 0 || turn == maxTurns {
			return a.Text, nil
		}
		r.messages = append(r.messages, chat.Message{Role: chat.Assistant, Text: a.Text, Calls: a.Calls})
		var pictures []chat.Image
		for i, c := range a.Calls {
			said := result{fault: device.Faultf(device.Busy, "not made: at most %d calls in one turn", maxCalls)}
			if i < maxCalls {
				said = r.call(ctx, c)
			}
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			pictures = append(pictures, said.pictures...)
			r.messages = append(r.messages, chat.Message{Role: chat.Tool, CallID: c.ID, Text: said.text()})
		}
		if len(pictures) > 0 {
			r.messages = append(r.messages, chat.Message{Role: chat.User, Text: "(the pictures that the tools took)", Images: pictures})
		}
	}
}

// ask sends the model one request, within the budget and its turn at the server.
func (r *run) ask(ctx context.Context, messages []chat.Message, offered []tools.Tool) (chat.Answer, error) {
	req, bytes, err := r.fit(messages, offered)
	if err != nil {
		return chat.Answer{}, err
	}
	leave, err := r.world.Queues.Enter(ctx, r.Model.URL, r.name, r.priority())
	if err != nil {
		return chat.Answer{}, err
	}
	defer leave()
	// A token is at least one byte, so that no budget is passed.
	spent, err := r.world.Ledger.reserve(r.name, r.Limits, r.Model.Price, bytes, r.Model.Answer)
	if err != nil {
		return chat.Answer{}, err
	}
	r.work.Say("the model thinks")
	var show func(string)
	if t, ok := r.work.(task.Talk); ok {
		show = t.Write
	}
	a, err := r.model.Complete(ctx, req, show)
	r.work.Say("")
	switch {
	case err != nil:
		if a.Usage.Known { // else it may have used all
			spent.settle(a.Usage)
		}
		return a, err
	case a.Usage.Known && a.Usage.Prompt > 0:
		spent.settle(a.Usage)
		r.noteCut(bytes, a.Usage.Prompt)
	default:
		spent.settle(chat.Usage{Prompt: tokens(bytes), Answer: tokens(len(a.Text) + sizeOfCalls(a.Calls))})
	}
	if a.Refused != "" && a.Text == "" && len(a.Calls) == 0 {
		a.Text = "The model refused to answer."
	}
	if len(a.Calls) == 0 && prose(a.Text, offered) {
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
	r.cut.Store(note)
}

// prose reports whether a text is a call of one of the tools, which a server has not understood as one.
func prose(text string, offered []tools.Tool) bool {
	return slices.ContainsFunc(offered, func(t tools.Tool) bool {
		return strings.Contains(text, "<function="+t.Name) || strings.Contains(text, strconv.Quote(t.Name)) && (strings.Contains(text, `"arguments"`) || strings.Contains(text, `"parameters"`))
	})
}

// priority is that of people, unless an agent of the site asks.
func (r *run) priority() chat.Priority {
	kind, _, _ := strings.Cut(r.task.Asker, ":")
	switch kind {
	case "rule":
		return chat.Rule
	case "routine":
		return chat.Schedule
	}
	return chat.Chat
}
