// Package agora renders the site's tools in Agora 0.2.0: a JSON envelope whose body follows a
// Protocol Document, which is named by its hash. The site has a fixed document for each of its
// operations, and needs no language model. It accepts the Python implementation's deviations from
// the specification.
package agora

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Routes returns the routes.
func Routes(s *adapter.Site) []web.Route {
	a := &server{Site: s, byHash: make(map[string]document), talks: adapter.Handles[talk]{
		What: "conversation", Life: 10 * time.Minute, Each: 8, All: 64,
	}}
	for _, d := range documents() {
		a.documents = append(a.documents, d)
		a.byHash[d.hex], a.byHash[d.b64] = d, d
	}
	return []web.Route{
		s.Route("POST /agora", web.Principals, a.begin),
		s.Route("POST /agora/conversations/{id}", web.Principals, a.goOn),
		s.Route("DELETE /agora/conversations/{id}", web.Principals, a.end),
		s.Document("/agora/wellknown", "application/json", a.wellknown),
		s.Route("GET /agora/documents/{hash}", web.Principals, a.document),
	}
}

type server struct {
	*adapter.Site
	documents []document
	byHash    map[string]document
	talks     adapter.Handles[talk]
}

// talk is a conversation: about one task, by one document.
type talk struct {
	task string
	by   document
}

// envelope is a request. The terms of the call are among the fields that Agora leaves to others.
type envelope struct {
	Hash       jsontext.Value `json:"protocolHash"`
	Body       jsontext.Value `json:"body"`
	Multiround bool           `json:"multiround"`
	Approval   string         `json:"agentsite/approval"`
	agents.Terms
}

// parse decodes a request, whose terms are t where it does not have others. Fields that it does
// not know are ignored, as the specification says.
func parse(body []byte, t agents.Terms) (e envelope, hash string, err error) {
	e.Terms, e.Approval = t, t.Approval
	raw, err := rpc.ParseJSON(body)
	if err == nil {
		err = raw.Decode(&e)
	}
	if err == nil && e.Hash != nil && e.Hash.Kind() != 'n' {
		if err = json.Unmarshal(e.Hash, &hash); err != nil {
			err = errors.New("protocolHash is a text or null")
		}
	}
	if err != nil {
		return e, "", device.Faultf(device.Invalid, "the body: %w", err)
	}
	if len(hash) == 40 {
		hash = strings.ToLower(hash)
	}
	e.Terms.Approval = e.Approval
	return e, hash, nil
}

func request(c *adapter.Call) (e envelope, hash string, err error) {
	t, err := c.Terms()
	if err != nil {
		return e, "", err
	}
	return parse(c.Body(), t)
}

// arguments returns the object in a request's body, and whether it was in a text.
func (e envelope) arguments() (args []byte, inText bool, err error) {
	switch e.Body.Kind() {
	case '{':
		return e.Body, false, nil
	case '"':
		var text string
		if err := json.Unmarshal(e.Body, &text); err != nil {
			return nil, true, err
		}
		if text = strings.TrimSpace(text); text == "" {
			text = "{}"
		}
		if !strings.HasPrefix(text, "{") {
			return nil, true, device.Faultf(device.Invalid, "body: this document takes a JSON object, or a text that holds one")
		}
		return []byte(text), true, nil
	}
	return nil, false, device.Faultf(device.Invalid, "body: this document takes a JSON object, or a text that holds one")
}

// reply is an answer. A failure has its reason in every field in which one of the
// implementations looks for it.
type reply struct {
	Status   string `json:"status"`
	Body     any    `json:"body"`
	Error    string `json:"error,omitzero"`
	Message  string `json:"message,omitzero"`
	ID       string `json:"conversationId,omitzero"`
	Expires  int64  `json:"conversationExpires,omitzero"`
	Approval string `json:"agentsite/approval,omitzero"` // to send with the same request, once an owner has approved it
}

// errorBody is the body of an answer in place of a result.
type errorBody struct {
	Error string           `json:"error"`
	Fault device.FaultKind `json:"fault,omitzero"`
}

func failure(why string, kind device.FaultKind) *reply {
	return &reply{Status: "failure", Error: why, Message: why, Body: errorBody{why, kind}}
}

// failed renders an error. A violation of a document's rules is in the body of a success, as the
// specification says (10.3); any other error is a failure.
func failed(err error) *reply {
	var needs *agents.ApprovalNeeded
	if errors.As(err, &needs) {
		r := failure(needs.Says, device.Unavailable)
		r.Approval = needs.State
		return r
	}
	switch f := device.AsFault(err); f.Kind {
	case device.Invalid:
		return &reply{Status: "success", Body: errorBody{f.Msg, f.Kind}}
	case device.Internal:
		if !errors.Is(err, context.Canceled) { // a caller that left is no defect
			slog.Error("a request failed", "protocol", "agora", "err", err)
		}
		return failure("the site failed at this; its log says more", f.Kind)
	default:
		return failure(f.Msg, f.Kind)
	}
}

const unsupported = "Unsupported protocol"

// begin answers a request, and begins a conversation where one was asked for.
func (a *server) begin(ctx context.Context, c *adapter.Call) (any, error) {
	e, hash, err := request(c)
	if err != nil {
		return nil, err
	}
	d, known := a.byHash[hash]
	switch {
	case e.Body == nil:
		return failure("Missing field 'body'", ""), nil
	case hash == "":
		return failure("this site does not understand plain language: choose a protocolHash from "+c.Base()+"/agora/wellknown", ""), nil
	case !known:
		return failure(unsupported, ""), nil
	}
	args, inText, err := e.arguments()
	if err != nil {
		return answer(failed(err), inText)
	}
	return a.call(ctx, c, d, e, args, inText)
}

// call calls a document's tool. A task that goes on gets a conversation where e asks for one.
func (a *server) call(ctx context.Context, c *adapter.Call, d document, e envelope, args []byte, inText bool) (any, error) {
	v, err := a.Tool(ctx, c.Who, d.tool, args, e.Terms)
	var none adapter.ErrNotFound
	if errors.As(err, &none) {
		return failure(unsupported, ""), nil
	} else if err != nil {
		return answer(failed(err), inText)
	}
	r := &reply{Status: "success", Body: v}
	if e.Multiround && d.tool == tools.AskAgent {
		id, err := goesOn(v)
		if err != nil {
			return nil, err
		}
		if id != "" {
			var ends time.Time
			r.ID, ends = a.talks.Add(c.Who, c.Who.Account, talk{id, d})
			r.Expires = ends.Unix()
		}
	}
	return answer(r, inText)
}

// goesOn returns the ID of the task in an answer that has one which has not ended.
func goesOn(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var task struct {
		ID    string `json:"id"`
		State string `json:"state"`
	}
	if err := json.Unmarshal(text, &task); err != nil {
		return "", err
	}
	switch task.State {
	case "submitted", "working", "input_required", "auth_required":
		return task.ID, nil
	}
	return "", nil
}

// answer returns r, with its body as a text for a caller that sent one.
func answer(r *reply, inText bool) (any, error) {
	if inText {
		text, err := json.Marshal(r.Body, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		r.Body = string(text)
	}
	return r, nil
}

// goOn answers a message of a conversation, which is about its task.
func (a *server) goOn(ctx context.Context, c *adapter.Call) (any, error) {
	e, hash, err := request(c)
	if err != nil {
		return nil, err
	}
	t, err := a.talks.Get(c.Who, c.Request.PathValue("id"))
	var none adapter.ErrNotFound
	switch {
	case errors.As(err, &none):
		return nil, err
	case err != nil:
		return failure("Conversation expired", device.Expired), nil
	case hash != "" && hash != t.by.hex && hash != t.by.b64:
		return nil, device.Faultf(device.Invalid, "protocolHash: a conversation keeps the protocol that it began with")
	case e.Body == nil:
		return failure("Missing field 'body'", ""), nil
	}
	e.Multiround = false // it has its conversation
	args, inText, err := e.arguments()
	if err == nil {
		args, err = about(t.task, args)
	}
	if err != nil {
		return answer(failed(err), inText)
	}
	return a.call(ctx, c, t.by, e, args, inText)
}

// message is a caller's request about a task.
type message struct {
	Task     string         `json:"task"`
	Answer   jsontext.Value `json:"answer,omitzero"`
	Question jsontext.Value `json:"question,omitzero"`
	Cancel   jsontext.Value `json:"cancel,omitzero"`
	Wait     jsontext.Value `json:"wait_seconds,omitzero"`
}

// about returns the arguments of a message about the task.
func about(task string, args []byte) ([]byte, error) {
	raw, err := rpc.ParseJSON(args)
	var m message
	if err == nil {
		err = raw.DecodeStrict(&m)
	}
	switch {
	case err != nil:
		return nil, device.Faultf(device.Invalid, "body: %w", err)
	case m.Task != "" && m.Task != task:
		return nil, device.Faultf(device.Invalid, "body: task is another one: this conversation is about %s", task)
	}
	m.Task = task
	return json.Marshal(m)
}

// end drops a conversation. It succeeds for an unknown one, as in Python.
func (a *server) end(_ context.Context, c *adapter.Call) (any, error) {
	a.talks.Drop(c.Who, c.Request.PathValue("id"))
	return map[string]string{"status": "success"}, nil
}

// wellknown lists the documents that the reader may use, with their sources.
func (a *server) wellknown(ctx context.Context, c *adapter.Call) (any, error) {
	all := make(map[string][]string)
	if c.Who == (agents.Principal{}) {
		return all, nil
	}
	offered, err := a.Tools.Tools(ctx, c.Who)
	if err != nil {
		return nil, err
	}
	for _, tool := range offered {
		for _, d := range a.documents {
			if d.tool == tool.Name {
				all[d.hex] = []string{d.source(), c.Base() + "/agora/documents/" + d.hex}
			}
		}
	}
	return all, nil
}

// document returns the text of a document. It is the same on every site.
func (a *server) document(_ context.Context, c *adapter.Call) (any, error) {
	d, ok := a.byHash[strings.ToLower(c.Request.PathValue("hash"))]
	if !ok {
		return nil, adapter.ErrNotFound("there is no such document")
	}
	c.Writer.Header().Set("Cache-Control", "private, max-age=86400")
	return &adapter.Answer{Type: "text/plain; charset=utf-8", Value: []byte(d.text)}, nil
}
