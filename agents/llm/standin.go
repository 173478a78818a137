package llm

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"agentsite/agents"
	"agentsite/agents/llm/chat"
	"agentsite/agents/tools"
	"agentsite/device/ucum"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// standInURL is the model.url of the stand-in.
const standInURL = "stand-in"

// standIn is a script in the place of a model, so that everything around a model can be tried without
// one. It knows "read", "on" and "off", and says what it is.
type standIn struct{}

// Complete implements Completer.
func (*standIn) Complete(_ context.Context, r chat.Request, say func(string)) (a chat.Answer, err error) {
	last := &r.Messages[len(r.Messages)-1]
	if last.Role == chat.Tool {
		a.Text = tell(last.Text)
	} else if call, args := choose(last.Text, r.Tools); call != "" {
		a.Calls = []chat.Call{{ID: "1", Name: call, Arguments: jsontext.Value(args)}}
	} else {
		a.Text = "I may read and move nothing here."
	}
	if a.Text != "" {
		a.Text = "(a script, no model) " + a.Text
		if say != nil {
			say(a.Text)
		}
	}
	a.Usage = chat.Usage{Prompt: tokens(size(&r)), Answer: tokens(sizeOfAnswer(&a)), Known: true}
	return a, nil
}

// choose returns the tool call that a text asks for; "" if it asks for none.
func choose(text string, offered []chat.ToolDef) (call, args string) {
	said := words(text)
	on, off := slices.Contains(said, "on") || slices.Contains(said, "open"), slices.Contains(said, "off") || slices.Contains(said, "close")
	if _, output := named(said, offered, tools.SwitchOutput, "output"); output != "" && on != off && !strings.Contains(text, "?") {
		return tools.SwitchOutput, `{"output":` + output + `,"on":` + strconv.FormatBool(on) + "}"
	}
	some, point := named(said, offered, agents.OpRead.Tool(), "points")
	switch {
	case !some:
		return "", ""
	case point == "":
		return agents.OpRead.Tool(), "{}"
	}
	return agents.OpRead.Tool(), `{"points":[` + point + "]}"
}

// named reports whether an argument of a tool takes any names, and returns the first of them whose
// device or point was said, as JSON.
func named(said []string, offered []chat.ToolDef, tool, field string) (some bool, name string) {
	for i := range offered {
		if offered[i].Name != tool {
			continue
		}
		schema := chat.Fields(chat.Fields(chat.Fields(offered[i].Input)["properties"])[field])
		if items := schema["items"]; items != nil {
			schema = chat.Fields(items)
		}
		for _, name := range chat.Elements(schema["enum"]) {
			some = true
			for _, w := range words(string(name)) {
				if len(w) > 2 && slices.Contains(said, w) {
					return some, string(name)
				}
			}
		}
	}
	return some, ""
}

// tell tells what the last call brought.
func tell(result string) string {
	text := jsontext.Value(result)
	if f := chat.Fields(text); f["error"] != nil {
		return "That was not done: " + chat.Text(f["says"])
	}
	var out agents.Output
	if json.Unmarshal(text, &out) == nil && out.Output != "" {
		return out.Output + " is " + out.Value.String() + " now, for " + strconv.FormatFloat(out.Left, 'f', 0, 64) + " s."
	}
	var got agents.Readings
	if json.Unmarshal(text, &got) != nil {
		return result
	}
	all := ""
	for i := range got.Readings[:min(len(got.Readings), 8)] {
		r := &got.Readings[i]
		all += strings.TrimSpace(r.Point+" is "+r.Value.String()+" "+ucum.Symbol(r.Unit)) + ", "
	}
	return strings.TrimSuffix(all, ", ") + ". Say \"heater on\", or the name of a point."
}
