package conformance

import "agentsite/agents/tools"

// need is a result that asks.
func need(state string, questions ...tools.Question) tools.Result {
	return tools.Result{NeedInput: &tools.NeedInput{State: state, Questions: questions}}
}

// form asks a person to fill in an object with the given properties.
func form(key, message string, properties map[string]any, required ...string) tools.Question {
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return tools.Question{Key: key, Method: "elicitation/create", Params: map[string]any{
		"mode": "form", "message": message, "requestedSchema": schema,
	}}
}

// field asks for one required value of a JSON type.
func field(key, message, name, kind string) tools.Question {
	return form(key, message, map[string]any{name: map[string]any{"type": kind}}, name)
}

// sample asks the client's model.
func sample(key, prompt string) tools.Question {
	return tools.Question{Key: key, Method: "sampling/createMessage", Params: map[string]any{
		"messages":  []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": prompt}}},
		"maxTokens": 100,
	}}
}

// roots asks for the client's roots.
func roots(key string) tools.Question { return tools.Question{Key: key, Method: "roots/list"} }

// filled is a person's answer to a form.
type filled struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content"`
}

// answered returns the answer to a form, whatever it says.
func answered(ex tools.Exchange, key string) (f filled, ok bool) {
	a := ex.Answers[key]
	return f, a != nil && a.Decode(&f) == nil && f.Action != ""
}

// accepted returns one value of a form that was filled in and accepted. A value of
// another type does not count.
func accepted[T any](ex tools.Exchange, key, name string) (v T, ok bool) {
	if f, answered := answered(ex, key); answered && f.Action == "accept" {
		v, ok = f.Content[name].(T)
	}
	return v, ok
}

// sampled returns the text that the client's model wrote.
func sampled(ex tools.Exchange, key string) (string, bool) {
	var got struct {
		Content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	a := ex.Answers[key]
	ok := a != nil && a.Decode(&got) == nil && got.Content.Type == "text"
	return got.Content.Text, ok
}

// rooted returns how many roots the client has.
func rooted(ex tools.Exchange, key string) (int, bool) {
	var got struct {
		Roots []struct {
			URI string `json:"uri"`
		} `json:"roots"`
	}
	a := ex.Answers[key]
	ok := a != nil && a.Decode(&got) == nil && got.Roots != nil
	return len(got.Roots), ok
}
