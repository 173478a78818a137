package llm

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/llm/chat"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
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
	{Name: agents.OpRead.Tool(), Description: "The latest readings.", Input: jsontext.Value(`{"type":"object","properties":{"points":{"type":"array","items":{"enum":["lamp/relay","climate/temperature"]}}}}`)},
	{Name: tools.SwitchOutput, Description: "Switch an output for a time.", Input: jsontext.Value(`{"type":"object","required":["output","on"],"properties":{"output":{"enum":["lamp/relay"]},"on":{"type":"boolean"},"for_seconds":{"type":"number"}}}`)},
}

// Check asks the model some things, and reports what came of each: whether its server answers, has
// the context that the configuration says, and calls tools when it should and only then. It takes
// some ten requests, which no budget counts, and needs no running site. The error is ctx's.
func (a *Agent) Check(ctx context.Context, report func(Finding)) error {
	ask := func(text string, offered []chat.ToolDef) (chat.Answer, error) {
		system := chat.Message{Role: chat.System, Text: fmt.Sprintf(rules, "test") + a.Instructions}
		return a.model.Complete(ctx, chat.Request{Messages: []chat.Message{system, {Role: chat.User, Text: text}}, Tools: offered, MaxAnswer: a.Model.Answer}, nil)
	}
	hello, err := ask("Say hello in one word.", nil)
	if err != nil {
		report(Finding{"server", false, device.AsFault(err).Msg})
		return ctx.Err()
	}
	says := fmt.Sprintf("it answers %.40q", hello.Text)
	if !hello.Usage.Known {
		says += "; it reports no tokens, so that they are estimated"
	}
	report(Finding{"server", true, says})
	if err := a.checkContext(ctx, ask, report); err != nil {
		return err
	}
	still := func(called []string) string {
		if slices.ContainsFunc(called, func(c string) bool { return strings.HasPrefix(c, tools.SwitchOutput) }) {
			return "it switches the lamp when nobody wants that"
		}
		return ""
	}
	for _, c := range []struct {
		check, text string
		good        func(called []string) string // "" for good
	}{
		{"looks", "How warm is it?", func(called []string) string {
			if !slices.Contains(called, agents.OpRead.Tool()) {
				return "it does not read the thermometer"
			}
			return ""
		}},
		{"acts", "Switch the lamp on for a minute.", func(called []string) string {
			if !slices.Contains(called, tools.SwitchOutput+" true") {
				return "it does not switch the lamp on"
			}
			return ""
		}},
		{"restraint", "Is the lamp on?", still},
		{"restraint", "Thank you, that is all.", still},
	} {
		const tries = 2
		wrong := ""
		for range tries {
			got, err := ask(c.text, lampTools)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			var called []string
			for _, call := range got.Calls {
				var args struct {
					On *bool `json:"on"`
				}
				if call.Broken == "" && json.Unmarshal(call.Arguments, &args) == nil && args.On != nil {
					called = append(called, fmt.Sprint(call.Name, " ", *args.On))
				} else {
					called = append(called, call.Name)
				}
			}
			switch {
			case err != nil:
				wrong = device.AsFault(err).Msg
			case c.good(called) != "":
				wrong = c.good(called) + fmt.Sprintf(" (calls %.80q, says %.60q)", called, got.Text)
			}
		}
		if wrong == "" {
			wrong = fmt.Sprintf("%d times of %d", tries, tries)
			report(Finding{c.check, true, fmt.Sprintf("%q: as wanted, %s", c.text, wrong)})
			continue
		}
		report(Finding{c.check, false, fmt.Sprintf("%q: %s", c.text, wrong)})
	}
	return ctx.Err()
}

// checkContext asks for a word at the beginning of a request of almost the whole context: some servers
// cut what is too long for them there, and do not say so.
func (a *Agent) checkContext(ctx context.Context, ask func(string, []chat.ToolDef) (chat.Answer, error), report func(Finding)) error {
	word := strings.ToLower(rand.Text()[:8])
	const filler = "The tomatoes grow well and the weather is fine today. "
	// A token of English has about four bytes; what is sent is nine tenths of the rest.
	size := (a.Model.Context - a.Model.Answer) * 4 * 9 / 10
	text := "Remember this word: " + word + ".\n" + strings.Repeat(filler, max(1, size/len(filler)-20)) + "\nWhich word were you to remember? Answer with it alone."
	got, err := ask(text, nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		report(Finding{"context", false, device.AsFault(err).Msg})
	case !strings.Contains(strings.ToLower(got.Text), word):
		says := fmt.Sprintf("of a request of about %d tokens it does not know the beginning: it says %.60q", len(text)/4, got.Text)
		if got.Usage.Known {
			says += fmt.Sprintf("; the server counted %d tokens", got.Usage.Prompt)
		}
		report(Finding{"context", false, says + "; raise the server's context (of Ollama OLLAMA_CONTEXT_LENGTH), or lower model.context"})
	default:
		report(Finding{"context", true, fmt.Sprintf("it knows the beginning of a request of about %d tokens", len(text)/4)})
	}
	return nil
}
