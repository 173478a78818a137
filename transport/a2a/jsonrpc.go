package a2a

import (
	"context"

	"agentsite/transport/adapter"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json/jsontext"
)

// method is a method of JSON-RPC, in either version.
type method uint8

const (
	sendMessage method = iota + 1
	streamMessage
	getTask
	listTasks
	cancelTask
	subscribe
	createPush
	getPush
	listPushes
	deletePush
	extendedCard
)

var methods = map[string]method{
	"SendMessage": sendMessage, "SendStreamingMessage": streamMessage, "GetTask": getTask, "ListTasks": listTasks, "CancelTask": cancelTask,
	"SubscribeToTask": subscribe, "GetExtendedAgentCard": extendedCard,
	"CreateTaskPushNotificationConfig": createPush, "GetTaskPushNotificationConfig": getPush,
	"ListTaskPushNotificationConfigs": listPushes, "DeleteTaskPushNotificationConfig": deletePush,
}

var legacyMethods = map[string]method{
	"message/send": sendMessage, "message/stream": streamMessage, "tasks/get": getTask, "tasks/list": listTasks, "tasks/cancel": cancelTask,
	"tasks/resubscribe": subscribe, "agent/getAuthenticatedExtendedCard": extendedCard,
	"tasks/pushNotificationConfig/set": createPush, "tasks/pushNotificationConfig/get": getPush,
	"tasks/pushNotificationConfig/list": listPushes, "tasks/pushNotificationConfig/delete": deletePush,
}

// envelope is a request of JSON-RPC.
type envelope struct {
	Version string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  string         `json:"method"`
	Params  rpc.Raw        `json:"params"`
}

type response struct {
	Version string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Result  any            `json:"result,omitzero"`
	Error   *rpcError      `json:"error,omitzero"`
}

// maxRequestID bounds the id of a request, which each event of a stream repeats.
const maxRequestID = 128

// readEnvelope decodes a request. Its id is valid, or null.
func readEnvelope(body []byte) (envelope, error) {
	var e envelope
	raw, err := rpc.ParseJSON(body)
	if err == nil {
		err = raw.Decode(&e)
	}
	problem := &problem{code: rpc.CodeInvalidRequest, reason: "INVALID_REQUEST"}
	text := ""
	switch kind := e.ID.Kind(); {
	case err != nil:
		if text = err.Error(); !jsontext.Value(body).IsValid() {
			problem.code, problem.reason = rpc.CodeParse, "PARSE_ERROR"
		}
	case kind != '"' && kind != '0' || len(e.ID) > maxRequestID:
		text = "a request has an id, a text or a number"
	case e.Version != "2.0":
		text = `"jsonrpc" is "2.0"`
	default:
		return e, nil
	}
	return envelope{ID: jsontext.Value("null")}, &failure{problem, text}
}

// jsonRPC serves the JSON-RPC binding (section 9).
func (s *server) jsonRPC(ctx context.Context, a *adapter.Call) (any, error) {
	e, err := readEnvelope(a.Body())
	var result any
	var c *call
	if err == nil {
		c, err = s.begin(a)
	}
	if err == nil {
		result, err = s.callMethod(ctx, c, a, e)
	}
	out := response{Version: "2.0", ID: e.ID, Result: result}
	if err != nil {
		out.Result, out.Error = nil, failureOf(err).rpc()
	}
	if c != nil && c.events != nil {
		defer c.events.Close()
		if err == nil || ctx.Err() != nil {
			return adapter.Answered, nil
		}
		adapter.Emit(c.events, "", out) // the answer ends with it
		return adapter.Answered, nil
	}
	return out, nil
}

// callMethod calls a method. A stream has no result, and an error of a stream that has begun is
// its last event.
func (s *server) callMethod(ctx context.Context, c *call, a *adapter.Call, e envelope) (any, error) {
	table := methods
	if c.form.legacy {
		table = legacyMethods
	}
	emit := func(r reply) error {
		return c.send(a, response{Version: "2.0", ID: e.ID, Result: c.form.wire(r)})
	}
	switch table[e.Method] {
	case sendMessage:
		r, err := params(e.Params, func(p *sendParams) (reply, error) { return s.send(ctx, c, p) })
		return c.form.wire(r), err
	case streamMessage:
		return params(e.Params, func(p *sendParams) (any, error) { return nil, s.stream(ctx, c, p, emit) })
	case getTask:
		return params(e.Params, func(p *taskParams) (any, error) { return s.get(ctx, c, p) })
	case listTasks:
		return params(e.Params, func(p *listParams) (any, error) { return s.list(ctx, c, p) })
	case cancelTask:
		return params(e.Params, func(p *taskParams) (any, error) { return s.cancel(ctx, c, p) })
	case subscribe:
		return params(e.Params, func(p *taskParams) (any, error) { return nil, s.subscribe(ctx, c, p.ID, emit) })
	case createPush:
		return params(e.Params, func(p *pushParams) (any, error) { return s.pushes.create(ctx, c, p) })
	case getPush:
		return params(e.Params, func(p *pushParams) (any, error) { return s.pushes.get(ctx, c, p) })
	case listPushes:
		return params(e.Params, func(p *pushParams) (any, error) { return s.pushes.list(ctx, c, p) })
	case deletePush:
		return params(e.Params, func(p *pushParams) (any, error) { return s.pushes.delete(ctx, c, p) })
	case extendedCard:
		return s.extendedCard(ctx, c)
	}
	text := "there is no such method in A2A 1.0"
	if c.form.legacy {
		text = "there is no such method in A2A 0.3; send the header A2A-Version: 1.0 to speak 1.0"
	}
	return nil, &failure{&problem{code: rpc.CodeMethodNotFound, reason: "METHOD_NOT_FOUND"}, text}
}

var errNoPush = failf(errPush, "this site sends no push notifications: stream or subscribe to the task, or ask for it; its owner can name hosts for them (http: push_hosts)")

// params decodes parameters for a method.
func params[P, R any](raw rpc.Raw, do func(*P) (R, error)) (r R, err error) {
	var p P
	if err := decode(raw, &p); err != nil {
		return r, err
	}
	return do(&p)
}

// send sends an event, and begins the stream with the first one.
func (c *call) send(a *adapter.Call, v any) error {
	if c.events == nil {
		c.events = web.NewEvents(a.Writer)
	}
	return adapter.Emit(c.events, "", v)
}
