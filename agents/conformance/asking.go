package conformance

import (
	"context"
	"fmt"

	"agentsite/agents/tools"
)

// askingFixtures ask their client something that the arguments or a schema of
// interest decide.
var askingFixtures = []fixture{
	{name: "test_sampling", description: "Asks the client's model", input: oneText("prompt"),
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			var args struct {
				Prompt string `json:"prompt"`
			}
			if err := c.Args.Decode(&args); err != nil {
				return tools.Result{}, err
			}
			if said, ok := sampled(c.Exchange, "sampling"); ok {
				return text("LLM response: " + said), nil
			}
			return need("", sample("sampling", args.Prompt)), nil
		}},
	{name: "test_elicitation", description: "Asks the client's user", input: oneText("message"),
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			var args struct {
				Message string `json:"message"`
			}
			if err := c.Args.Decode(&args); err != nil {
				return tools.Result{}, err
			}
			return elicit(c, form("user", args.Message, map[string]any{
				"username": described("string", "User's response"),
				"email":    described("string", "User's email address"),
			}, "username", "email"))
		}},
	{name: "test_elicitation_sep1034_defaults", description: "Asks with a default for every type",
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			return elicit(c, form("user", "Check the values that are filled in", map[string]any{
				"name":     map[string]any{"type": "string", "default": "John Doe"},
				"age":      map[string]any{"type": "integer", "default": 30},
				"score":    map[string]any{"type": "number", "default": 95.5},
				"status":   map[string]any{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
				"verified": map[string]any{"type": "boolean", "default": true},
			}))
		}},
	{name: "test_elicitation_sep1330_enums", description: "Asks with every form of a choice",
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			options := []string{"option1", "option2", "option3"}
			return elicit(c, form("user", "Choose", map[string]any{
				"untitledSingle": map[string]any{"type": "string", "enum": options},
				"titledSingle":   map[string]any{"type": "string", "oneOf": titled},
				"legacyEnum": map[string]any{
					"type": "string", "enum": []string{"opt1", "opt2", "opt3"},
					"enumNames": []string{"Option One", "Option Two", "Option Three"},
				},
				"untitledMulti": map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": options}},
				"titledMulti":   map[string]any{"type": "array", "items": map[string]any{"anyOf": titled}},
			}))
		}},
	{name: "test_missing_capability", description: "Needs a client that can sample",
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			if !c.Exchange.Can.Sampling {
				return tools.Result{}, &tools.NeedsCapability{Needs: tools.Capabilities{Sampling: true}}
			}
			return text("the client can sample"), nil
		}},
}

var titled = []map[string]any{
	{"const": "value1", "title": "First Option"},
	{"const": "value2", "title": "Second Option"},
	{"const": "value3", "title": "Third Option"},
}

func described(kind, description string) map[string]any {
	return map[string]any{"type": kind, "description": description}
}

func oneText(name string) string {
	return fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string"}},"required":[%[1]q]}`, name)
}

// elicit asks, and says what came back.
func elicit(c tools.Call, q tools.Question) (tools.Result, error) {
	if f, ok := answered(c.Exchange, q.Key); ok {
		return text(fmt.Sprintf("Elicitation result: action=%s, content=%v", f.Action, f.Content)), nil
	}
	return need("", q), nil
}
