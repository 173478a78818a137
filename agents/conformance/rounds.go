package conformance

import (
	"context"
	"fmt"
	"strings"

	"agentsite/agents/tools"
)

// roundFixtures come to their result in several rounds (SEP-2322). Whatever is not
// an answer is asked for again.
var roundFixtures = []fixture{
	{name: "test_input_required_result_elicitation", description: "Asks for a name",
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			if name, ok := accepted[string](c.Exchange, "user_name", "name"); ok {
				return text("Hello, " + name + "!"), nil
			}
			return need("", askName), nil
		}},
	{name: "test_input_required_result_sampling", description: "Asks the client's model",
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			if said, ok := sampled(c.Exchange, "capital_question"); ok {
				return text(said), nil
			}
			return need("", sample("capital_question", "What is the capital of France?")), nil
		}},
	{name: "test_input_required_result_list_roots", description: "Asks for the roots",
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			if n, ok := rooted(c.Exchange, "client_roots"); ok {
				return text(fmt.Sprintf("%d roots", n)), nil
			}
			return need("", roots("client_roots")), nil
		}},
	{name: "test_input_required_result_request_state", description: "Asks, with a state to come back",
		call: confirmed},
	{name: "test_input_required_result_tampered_state", description: "Asks, with a state that must come back as it was",
		call: confirmed},
	{name: "test_input_required_result_multiple_inputs", description: "Asks for three things at once",
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			name, named := accepted[string](c.Exchange, "user_name", "name")
			greeting, greeted := sampled(c.Exchange, "greeting")
			n, rooted := rooted(c.Exchange, "client_roots")
			if named && greeted && rooted {
				return text(fmt.Sprintf("%s %s, %d roots", greeting, name, n)), nil
			}
			return need("three at once", askName, sample("greeting", "Generate a greeting"), roots("client_roots")), nil
		}},
	{name: "test_input_required_result_multi_round", description: "Asks twice",
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			name, second := strings.CutPrefix(c.Exchange.State, "second:")
			switch {
			case second:
				if color, ok := accepted[string](c.Exchange, "step2", "color"); ok {
					return text(name + " likes " + color), nil
				}
			case c.Exchange.State == "first":
				if name, ok := accepted[string](c.Exchange, "step1", "name"); ok {
					return need("second:"+name, field("step2", "Step 2: What is your favorite color?", "color", "string")), nil
				}
			}
			return need("first", field("step1", "Step 1: What is your name?", "name", "string")), nil
		}},
	{name: "test_input_required_result_capabilities", description: "Asks for what the client can answer",
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			if len(c.Exchange.Answers) > 0 {
				return text("answered"), nil
			}
			var questions []tools.Question
			can := c.Exchange.Can
			if can.Elicitation {
				questions = append(questions, askName)
			}
			if can.Sampling {
				questions = append(questions, sample("greeting", "Generate a greeting"))
			}
			if can.Roots {
				questions = append(questions, roots("client_roots"))
			}
			if questions == nil {
				return text("this client cannot be asked for anything"), nil
			}
			return need("", questions...), nil
		}},
}

var askName = field("user_name", "What is your name?", "name", "string")

// confirmed ends once the confirmation comes with the state that it was asked with.
func confirmed(_ context.Context, c tools.Call) (tools.Result, error) {
	const state = "waiting for a confirmation"
	if _, ok := accepted[bool](c.Exchange, "confirm", "ok"); ok && c.Exchange.State == state {
		return text("state-ok: the confirmation came with its state"), nil
	}
	return need(state, field("confirm", "Please confirm", "ok", "boolean")), nil
}
