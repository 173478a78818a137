package llm

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"agentsite/agents/llm/chat"
	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

// Finding is what a check of a model found.
type Finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Says  string `json:"says"`
}

// lampTools are the tools of a small site.
var lampTools = []chat.ToolDef{
	{Name: "read_points", Description: "The latest readings.", Input: jsontext.Value(`{"type":"object","properties":{"points":{"type":"array","items":{"enum":["lamp/relay","climate/temperature"]}}}}`)},
	{Name: "switch_output", Description: "Switch an output for a time.", Input: jsontext.Value(`{"type":"object","required":["output","on"],"properties":{"output":{"enum":["lamp/relay"]},"on":{"type":"boolean"},"for_seconds":{"type":"number"}}}`)},
}

// checks are the requests made with those tools, each with the expected call and the fault if that is
// missing; where call is "", the model has to switch nothing.
var checks = [...]struct{ check, text, call, wrong string }{
	{"looks", "How warm is it?", "read_points", "it does not read the thermometer"},
	{"acts", "Switch the lamp on for a minute.", "switch_output true", "it does not switch the lamp on"},
	{"restraint", "Is the lamp on?", "", "it switches the lamp when nobody wants that"},
	{"restraint", "Thank you, that is all.", "", "it switches the lamp when nobody wants that"},
}

// tries is how often it is asked each.
const tries = 2

// Check asks the model some things, and reports what came of each: whether its server answers, has
// the context that the configuration says, and calls tools when it should and only then. It takes
// some ten requests, which no budget counts, and needs no running site. The error is ctx's.
func (a *Agent) Check(ctx context.Context, report func(Finding)) error {
	hello, err := a.try(ctx, "Say hello in one word.", nil)
	if err != nil {
		report(Finding{"server", false, device.AsFault(err).Msg})
		return ctx.Err()
	}
	says := fmt.Sprintf("it answers %.40q", hello.Text)
	if !hello.Usage.Known {
		says += "; it reports no tokens, so that they are estimated"
	}
	report(Finding{"server", true, says})
	report(a.checkContext(ctx))
	for i := range checks {
		c := &checks[i]
		f := Finding{c.check, true, fmt.Sprintf("%q: as wanted, %d times of %d", c.text, tries, tries)}
		for range tries {
			got, err := a.try(ctx, c.text, lampTools)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			good, all := c.call == "", ""
			for i := range got.Calls {
				call := &got.Calls[i]
				called := call.Name + " " + string(chat.Fields(call.Arguments)["on"])
				all += called + "; "
				if strings.HasPrefix(called, cmp.Or(c.call, "switch_output")) {
					good = c.call != ""
				}
			}
			switch {
			case err != nil:
				f.OK, f.Says = false, fmt.Sprintf("%q: %s", c.text, device.AsFault(err).Msg)
			case !good:
				f.OK, f.Says = false, fmt.Sprintf("%q: %s (calls %.80q, says %.60q)", c.text, c.wrong, all, got.Text)
			}
		}
		report(f)
	}
	return ctx.Err()
}

// try asks the model one thing.
func (a *Agent) try(ctx context.Context, text string, offered []chat.ToolDef) (chat.Answer, error) {
	system := chat.Message{Role: chat.System, Text: fmt.Sprintf(rules, "test") + a.Instructions}
	return a.model.Complete(ctx, chat.Request{Messages: []chat.Message{system, {Role: chat.User, Text: text}}, Tools: offered, MaxAnswer: a.Model.Answer}, nil)
}

// checkContext asks for a word at the beginning of a request of almost the whole context: some servers
// cut what is too long for them there, and do not say so.
func (a *Agent) checkContext(ctx context.Context) Finding {
	word := strings.ToLower(rand.Text()[:8])
	const filler = "The tomatoes grow well and the weather is fine today. "
	// A token of English has about four bytes; what is sent is nine tenths of the rest.
	size := (a.Model.Context - a.Model.Answer) * 4 * 9 / 10
	text := "Remember this word: " + word + ".\n" + strings.Repeat(filler, max(1, size/len(filler)-20)) + "\nWhich word were you to remember? Answer with it alone."
	got, err := a.try(ctx, text, nil)
	switch {
	case err != nil:
		return Finding{"context", false, device.AsFault(err).Msg}
	case strings.Contains(strings.ToLower(got.Text), word):
		return Finding{"context", true, fmt.Sprintf("it knows the beginning of a request of about %d tokens", len(text)/4)}
	}
	says := fmt.Sprintf("of a request of about %d tokens it does not know the beginning: it says %.60q", len(text)/4, got.Text)
	if got.Usage.Known {
		says += fmt.Sprintf("; the server counted %d tokens", got.Usage.Prompt)
	}
	return Finding{"context", false, says + "; raise the server's context (of Ollama OLLAMA_CONTEXT_LENGTH), or lower model.context"}
}
