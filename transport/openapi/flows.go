package openapi

import (
	"context"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/transport/adapter"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	flowsPath = "/.well-known/agents.json"
	// source is the name of the OpenAPI document in the flows.
	source = "site"
)

// agentsJSON is a document of agents.json 0.1.0 (wild-card-ai/agents-json, agentsJson.schema.json).
type agentsJSON struct {
	Version   string   `json:"agentsJson"`
	Info      object   `json:"info"`
	Sources   []object `json:"sources"`
	Overrides []object `json:"overrides"`
	Flows     []flow   `json:"flows"`
}

type flow struct {
	ID          string   `json:"id"` // in snake case, as of its actions
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Actions     []object `json:"actions"`
	Links       []link   `json:"links"`
	Fields      fields   `json:"fields"`
}

// link passes a value from the fields of the flow to an action, from one action to another, or
// back.
type link struct {
	Origin end `json:"origin"`
	Target end `json:"target"`
}

type end struct {
	Action string `json:"actionId"`
	Path   string `json:"fieldPath"`
}

type fields struct {
	Parameters []object `json:"parameters"`
	Body       object   `json:"requestBody,omitzero"`
	Responses  object   `json:"responses"`
}

// flows returns the agents.json of the operations that its reader may use: one flow for each
// operation that is answered in JSON, and those of several steps.
func (a api) flows(ctx context.Context, c *adapter.Call) (any, error) {
	r, err := a.reader(ctx, c)
	if err != nil {
		return nil, err
	}
	made, err := schemas()
	if err != nil {
		return nil, err
	}
	out := agentsJSON{
		Version: "0.1.0",
		Info:    object{"title": title(r, a.Name), "version": version, "description": "What can be asked of a physical site, by the operations of its OpenAPI document."},
		Sources: []object{{"id": source, "path": c.Base() + documentPath}}, Overrides: []object{}, Flows: []flow{},
	}
	uses := r.uses()
	byID := make(map[string]*operation, len(uses))
	for _, o := range uses {
		byID[o.id] = o
		if o.media == "" {
			out.Flows = append(out.Flows, single(o, r, made))
		}
	}
	if read, move := byID["readPoint"], byID["moveOutput"]; read != nil && move != nil {
		both := slices.DeleteFunc(movable(r.Offer), func(output string) bool { return !slices.Contains(r.Read, output) })
		if len(both) > 0 {
			out.Flows = append(out.Flows, keep(read, move, both))
		}
	}
	if ask, get := byID["askAgent"], byID["getTask"]; ask != nil && get != nil {
		out.Flows = append(out.Flows, askAndWait(ask, get, r, made))
	}
	return out, nil
}

// snake returns the ID of an operation in snake case.
func snake(id string) string {
	var b strings.Builder
	for _, c := range id {
		if 'A' <= c && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// step returns an operation as an action.
func step(o *operation) object {
	return object{"id": stepID(o), "sourceId": source, "operationId": o.id}
}

func stepID(o *operation) string { return snake(o.id) + "_action" }

// inputs returns an operation's parameters as those of a flow.
func inputs(o *operation, r *reader) []object {
	all := []object{}
	for _, p := range o.parameters(r) {
		kind := "string"
		switch {
		case p.number:
			kind = "number"
		case p.many:
			kind = "array"
		}
		in := object{"name": p.name, "required": p.needed, "type": kind}
		describe := p.describe
		if p.names != nil {
			describe = strings.TrimPrefix(describe+"; one of "+strings.Join(p.names, ", "), "; ")
		}
		if describe != "" {
			in["description"] = describe
		}
		all = append(all, in)
	}
	return all
}

func inputBody(o *operation, schema jsontext.Value) object {
	return object{"required": o.needs, "content": object{"application/json": object{"schema": schema}}}
}

func outcome(o *operation) object {
	return object{"success": object{"type": "object", "description": "as operation " + o.id + " answers"}}
}

// single is the flow of one operation.
func single(o *operation, r *reader, made map[string]jsontext.Value) flow {
	f := flow{
		ID: snake(o.id), Title: o.summary, Description: strings.TrimSpace(o.summary + ". " + o.describe),
		Actions: []object{step(o)}, Links: []link{}, Fields: fields{Parameters: inputs(o, r), Responses: outcome(o)},
	}
	if len(f.Fields.Parameters) > 0 {
		f.Links = append(f.Links, link{end{f.ID, "parameters"}, end{stepID(o), "parameters"}})
	}
	if o.body != "" {
		f.Fields.Body = inputBody(o, made[o.body])
		f.Links = append(f.Links, link{end{f.ID, "requestBody"}, end{stepID(o), "requestBody"}})
	}
	f.Links = append(f.Links, link{end{stepID(o), "responses.success"}, end{f.ID, "responses.success"}})
	return f
}

// keep is the flow that keeps one of some outputs as it is: it reads the output, and moves it to that value.
func keep(read, move *operation, outputs []string) flow {
	const id = "keep_output"
	kept := *move
	kept.names = func(*agents.Offer) []string { return outputs }
	return flow{
		ID: id, Title: "Keep an output as it is for longer",
		Description: "Reads an output and moves it to the value that it has, which keeps it there for another time, within the owner's limits. One at its safe value stays there.",
		Actions:     []object{step(read), step(move)},
		Links: []link{
			{end{id, "parameters"}, end{stepID(read), "parameters"}},
			{end{id, "parameters"}, end{stepID(move), "parameters"}},
			{end{stepID(read), "responses.success.value"}, end{stepID(move), "requestBody.value"}},
			{end{id, "requestBody.for"}, end{stepID(move), "requestBody.for"}},
			{end{stepID(move), "responses.success"}, end{id, "responses.success"}},
		},
		Fields: fields{
			Parameters: inputs(&kept, &reader{}),
			Body: object{"required": false, "content": object{"application/json": object{"schema": object{
				"type": "object", "properties": object{"for": object{"type": "number", "description": "seconds"}},
			}}}},
			Responses: outcome(move),
		},
	}
}

// askAndWait is the flow that asks an agent and waits for the end of the task.
func askAndWait(ask, get *operation, r *reader, made map[string]jsontext.Value) flow {
	const id = "ask_and_wait"
	return flow{
		ID: id, Title: "Ask an agent and wait for the end of the task",
		Description: "Asks an agent for a task, and answers with it when it has ended, when it asks something, or after wait_seconds.",
		Actions:     []object{step(ask), step(get)},
		Links: []link{
			{end{id, "parameters.agent"}, end{stepID(ask), "parameters.agent"}},
			{end{id, "requestBody"}, end{stepID(ask), "requestBody"}},
			{end{stepID(ask), "responses.success.id"}, end{stepID(get), "parameters.task"}},
			{end{id, "parameters.wait_seconds"}, end{stepID(get), "parameters.wait_seconds"}},
			{end{stepID(get), "responses.success"}, end{id, "responses.success"}},
		},
		Fields: fields{
			Parameters: append(inputs(ask, r), slices.DeleteFunc(inputs(get, r), func(p object) bool { return p["name"] == "task" })...),
			Body:       inputBody(ask, made[ask.body]), Responses: outcome(get),
		},
	}
}
