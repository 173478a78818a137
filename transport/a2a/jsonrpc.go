package a2a

import (
	"context"

	"agentsite/transport/adapter"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json/jsontext"
)

// method serves a method of JSON-RPC. A stream has no result: it calls call.emit.
type method func(ctx context.Context, c *call, params rpc.Raw) (any, error)

// newMethods returns the methods of 1.0 and of 0.3, by their names.
func (s *server) newMethods() (now, legacy map[string]method) {
	now, legacy = make(map[string]method), make(map[string]method)
	add := func(name, old string, do method) { now[name], legacy[old] = do, do }
	add("SendMessage", "message/send", decoded(s.send))
	add("SendStreamingMessage", "message/stream", decoded(s.stream))
	add("GetTask", "tasks/get", decoded(s.get))
	add("ListTasks", "tasks/list", decoded(s.list))
	add("CancelTask", "tasks/cancel", decoded(s.cancel))
	add("SubscribeToTask", "tasks/resubscribe", decoded(s.subscribe))
	add("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set", decoded(s.pushes.create))
	add("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get", decoded(s.pushes.get))
	add("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list", decoded(s.pushes.list))
	add("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete", decoded(s.pushes.delete))
	card := func(ctx context.Context, c *call, _ rpc.Raw) (any, error) { return s.extendedCard(ctx, c) }
	add("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", card)
	return now, legacy
}

// decoded returns a method that decodes its parameters.
func decoded[P, R any](do func(context.Context, *call, *P) (R, error)) method {
	return func(ctx context.Context, c *call, params rpc.Raw) (any, error) {
		p := new(P)
		if err := decode(params, p); err != nil {
			return nil, err
		}
		return do(ctx, c, p)
	}
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

// jsonRPC serves the JSON-RPC binding (section 9). The error of a stream that has begun is its last
// event.
func (s *server) jsonRPC(ctx context.Context, a *adapter.Call) (any, error) {
	e, err := readEnvelope(a.Body())
	out := response{Version: "2.0", ID: e.ID}
	var c *call
	if err == nil {
		c, err = s.begin(a)
	}
	if err == nil {
		c.emit = func(r reply) error { return c.send(a, response{Version: "2.0", ID: e.ID, Result: c.form.wire(r)}) }
		out.Result, err = s.callMethod(ctx, c, e)
	}
	if err != nil {
		out.Result, out.Error = nil, failureOf(err).rpc()
	}
	if c == nil || c.events == nil {
		return out, nil
	}
	defer c.events.Close()
	if err != nil && ctx.Err() == nil {
		adapter.Emit(c.events, "", out) // the answer ends with it
	}
	return adapter.Answered, nil
}

// callMethod calls the method that a request names.
func (s *server) callMethod(ctx context.Context, c *call, e envelope) (any, error) {
	methods, text := s.methods, "there is no such method in A2A 1.0"
	if c.form.legacy {
		methods, text = s.legacyMethods, "there is no such method in A2A 0.3; send the header A2A-Version: 1.0 to speak 1.0"
	}
	if do := methods[e.Method]; do != nil {
		return do(ctx, c, e.Params)
	}
	return nil, &failure{&problem{code: rpc.CodeMethodNotFound, reason: "METHOD_NOT_FOUND"}, text}
}
