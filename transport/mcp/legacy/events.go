package legacy

import (
	"bytes"
	"context"
	stdjson "encoding/json"

	"agentsite/transport/mcp/events"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// eventParams are the parameters of a method of events, which are decoded as the newest revision decodes them.
type eventParams struct {
	sdk.ParamsBase
	raw rpc.Raw
}

func (p *eventParams) UnmarshalJSON(text []byte) (err error) {
	p.raw, err = rpc.ParseJSON(bytes.Clone(text))
	return err
}

// eventResult is a result of a method of events.
type eventResult struct {
	sdk.ResultBase
	value any
}

func (r *eventResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(r.value, json.Deterministic(true))
}

// addEvents serves events/list and its like. There is no stream: the SDK's sessions send only its own notifications.
func (h *host) addEvents(e *events.Server) {
	if e == nil {
		return
	}
	addEvent(h, "events/list", func(ctx context.Context, _ *struct{}, _ bool) (any, error) { return e.List(ctx, h.who) })
	addEvent(h, "events/poll", func(ctx context.Context, p *events.Asked, _ bool) (any, error) {
		return e.Poll(ctx, h.who, p)
	})
	if e.Hooks == nil {
		return
	}
	addEvent(h, "events/subscribe", func(ctx context.Context, p *events.Subscribed, declared bool) (any, error) {
		return e.Hooks.Subscribe(ctx, h.who, p, declared)
	})
	addEvent(h, "events/unsubscribe", func(ctx context.Context, p *events.Subscribed, declared bool) (any, error) {
		return struct{}{}, e.Hooks.Unsubscribe(ctx, h.who, p, declared)
	})
}

// addEvent adds a method. do is told whether the client declared the extension.
func addEvent[P any](h *host, method string, do func(ctx context.Context, p *P, declared bool) (any, error)) {
	err := sdk.AddReceivingCustomMethod(h.sdk, method,
		func(ctx context.Context, ss *sdk.ServerSession, raw *eventParams) (*eventResult, error) {
			var p P
			if raw != nil {
				if err := raw.raw.Decode(&p); err != nil {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params: " + err.Error()}
				}
			}
			declared := declares(ss)
			v, err := do(ctx, &p, declared)
			if err != nil {
				return nil, eventError(err, declared)
			}
			return &eventResult{value: v}, nil
		})
	if err != nil {
		panic(err) // the SDK has a method of that name now
	}
}

// declares reports whether a session's client declared the extension.
func declares(ss *sdk.ServerSession) bool {
	p := ss.InitializeParams()
	if p == nil || p.Capabilities == nil {
		return false
	}
	_, ok := p.Capabilities.Extensions[events.Extension]
	return ok
}

func eventError(err error, declared bool) error {
	e := events.Refuse(err, declared)
	if e == nil {
		return asError(err)
	}
	out := &jsonrpc.Error{Code: int64(e.Code), Message: e.Message}
	if e.Data != nil {
		if text, err := json.Marshal(e.Data); err == nil {
			out.Data = text
		}
	}
	return out
}

// initialized is a result of initialize with the capability where the extension's draft had it.
type initialized struct{ *sdk.InitializeResult }

func (r initialized) MarshalJSON() ([]byte, error) {
	text, err := stdjson.Marshal(r.InitializeResult)
	if err != nil {
		return nil, err
	}
	var all map[string]stdjson.RawMessage
	var own map[string]stdjson.RawMessage
	if err := stdjson.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	if err := stdjson.Unmarshal(all["capabilities"], &own); err != nil {
		return nil, err
	}
	own["events"] = stdjson.RawMessage("{}")
	if all["capabilities"], err = stdjson.Marshal(own); err != nil {
		return nil, err
	}
	return stdjson.Marshal(all)
}
