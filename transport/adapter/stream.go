package adapter

import (
	"context"
	"net/http"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Emit sends v as an event in JSON.
func Emit(e *web.Events, event string, v any) error {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.Multiline(false))
	if err != nil {
		return err
	}
	return e.Send(event, text)
}

// Stream answers a call with server-sent events. The context of run ends with the request and
// when the site begins to end. send sends v as an event in JSON; the answer begins with the first.
// An error of run before that is answered as a Problem; a later one is sent as the last event,
// "error", with the Problem. A HEAD request is answered with the header of a stream.
func (s *Site) Stream(ctx context.Context, c *Call, run func(ctx context.Context, send func(event string, v any) error) error) (any, error) {
	if c.Request.Method == http.MethodHead {
		return &Answer{Type: "text/event-stream", Value: []byte{}}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.Ending, cancel)()
	var events *web.Events
	err := run(ctx, func(event string, v any) error {
		if events == nil {
			events = web.NewEvents(c.Writer)
		}
		return Emit(events, event, v)
	})
	if events == nil {
		return nil, err
	}
	defer events.Close()
	if err != nil && ctx.Err() == nil {
		Emit(events, "error", problem(c.Request, err).Value) // the connection may have broken, which is why it ended
	}
	return Answered, nil
}

// While calls do with a context that ends with ctx, with the caller's permission and with the
// site. It takes a place of the caller's subscriptions.
func (s *Site) While(ctx context.Context, who agents.Principal, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.Ending, func() {
		cancel(device.Faultf(device.Unavailable, "the site is being stopped"))
	})()
	admitted, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		first := true
		cancel(s.Node.Watch(ctx, who, agents.WatchRequest{OfferOnly: true}, func(agents.Update) error {
			if first {
				close(admitted)
			}
			first = false
			return nil
		}))
	}()
	defer func() { cancel(nil); <-gone }()
	select {
	case <-admitted:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := do(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
