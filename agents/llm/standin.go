package llm

import (
	"context"
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

// standInURL is the model.url of the stand-in.
const standInURL = "stand-in"

// standIn is a script in the place of a model, so that everything around a model can be tried without
// one. It knows "read", "on" and "off", and says what it is.
type standIn struct{}

// Complete implements Completer.
func (standIn) Complete(_ context.Context, r chat.Request, say func(string)) (a chat.Answer, err error) {
	last := r.Messages[len(r.Messages)-1]
	switch {
	case last.Role == chat.Tool:
		a.Text = "(a script, no model) " + tell(r.Messages)
	default:
		a = act(last.Text, r.Tools)
	}
	if say != nil && a.Text != "" {
		say(a.Text)
	}
	a.Usage = chat.Usage{Prompt: tokens(size(&r)), Answer: tokens(len(a.Text) + sizeOfCalls(a.Calls)), Known: true}
	return a, nil
}

// act chooses a call for what was said.
func act(text string, offered []chat.ToolDef) (a chat.Answer) {
	said := words(text)
	on, off := slices.Contains(said, "on") || slices.Contains(said, "open"), slices.Contains(said, "off") || slices.Contains(said, "close")
	if output := named(said, enum(offered, tools.SwitchOutput, "output")); output != "" && on != off && !strings.Contains(text, "?") {
		args, _ := json.Marshal(map[string]any{"output": output, "on": on}, json.Deterministic(true))
		a.Calls = []chat.Call{{ID: "1", Name: tools.SwitchOutput, Arguments: args}}
		return a
	}
	read := agents.OpRead.Tool()
	if all := enum(offered, read, "points"); len(all) > 0 {
		args := map[string]any{}
		if point := named(said, all); point != "" {
			args["points"] = []string{point}
		}
		text, _ := json.Marshal(args, json.Deterministic(true))
		a.Calls = []chat.Call{{ID: "1", Name: read, Arguments: text}}
		return a
	}
	a.Text = "(a script, no model) I may read and move nothing here."
	return a
}

// named returns the first of names whose device or point was said.
func named(said, names []string) string {
	for _, name := range names {
		for _, w := range words(name) {
			if len(w) > 2 && slices.Contains(said, w) {
				return name
			}
		}
	}
	return ""
}

// enum returns the names that an argument of a tool may have.
func enum(offered []chat.ToolDef, tool, field string) []string {
	i := slices.IndexFunc(offered, func(t chat.ToolDef) bool { return t.Name == tool })
	if i < 0 {
		return nil
	}
	type property struct {
		Enum  []string `json:"enum"`
		Items struct {
			Enum []string `json:"enum"`
		} `json:"items"`
	}
	var schema struct {
		Properties map[string]jsontext.Value `json:"properties"`
	}
	var p property
	if json.Unmarshal(offered[i].Input, &schema) != nil || json.Unmarshal(schema.Properties[field], &p) != nil {
		return nil
	}
	return append(p.Enum, p.Items.Enum...)
}

// tell tells what the last call brought.
func tell(messages []chat.Message) string {
	last := messages[len(messages)-1]
	var got struct {
		Error    string           `json:"error"`
		Says     string           `json:"says"`
		Output   string           `json:"output"`
		Value    device.Value     `json:"value"`
		Left     float64          `json:"seconds_left"`
		Readings []agents.Reading `json:"readings"`
	}
	switch err := json.Unmarshal([]byte(last.Text), &got); {
	case err != nil:
		return last.Text
	case got.Error != "":
		return "That was not done: " + got.Says
	case got.Output != "":
		return fmt.Sprintf("%s is %s now, for %.0f s.", got.Output, got.Value, got.Left)
	}
	var all []string
	for _, r := range got.Readings[:min(len(got.Readings), 8)] {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s is %v %s", r.Point, r.Value, r.Unit)))
	}
	return strings.Join(all, ", ") + ". Say \"heater on\", or the name of a point."
}
