package a2a

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentsite/transport/adapter"
	"agentsite/transport/rpc"
)

// httpMethod serves a request of the HTTP+JSON binding.
type httpMethod func(context.Context, *call, *adapter.Call) (any, error)

// overHTTP serves the HTTP+JSON binding (section 11) of 1.0, or of 0.3.
func (s *server) overHTTP(legacy bool, do httpMethod) func(context.Context, *adapter.Call) (any, error) {
	render := func(err error) *adapter.Answer { return failureOf(err).http(legacy) }
	return func(ctx context.Context, a *adapter.Call) (any, error) {
		c, err := s.begin(a)
		if err == nil && c.form.legacy != legacy {
			err = failf(errVersion, "over HTTP with JSON, paths below /v1 are 0.3, and others are 1.0: "+
				"send the header A2A-Version: 1.0 for those")
		}
		var v any
		if err == nil {
			c.form.proto = legacy
			c.emit = func(r reply) error { return c.send(a, r) }
			v, err = do(ctx, c, a)
		}
		if c != nil && c.events != nil {
			defer c.events.Close()
			if err != nil && ctx.Err() == nil {
				adapter.Emit(c.events, "error", render(err).Value) // the answer ends with it
			}
			return adapter.Answered, nil
		}
		if err != nil {
			return render(err), nil
		}
		if legacy {
			return v, nil
		}
		return &adapter.Answer{Type: mediaType, Value: v}, nil
	}
}

// body decodes a body that may not be empty.
func body[P any](a *adapter.Call) (*P, error) {
	if len(a.Body()) == 0 {
		return nil, failf(errParams, "the body is empty")
	}
	raw, err := rpc.ParseJSON(a.Body())
	if err != nil {
		return nil, invalid("", err)
	}
	p := new(P)
	return p, decode(raw, p)
}

// inBody returns a method whose parameters are in the body.
func inBody[P any](do func(context.Context, *call, *P) (any, error)) httpMethod {
	return func(ctx context.Context, c *call, a *adapter.Call) (any, error) {
		p, err := body[P](a)
		if err != nil {
			return nil, err
		}
		return do(ctx, c, p)
	}
}

// httpTask serves a task, and the actions that a verb after its ID names.
func (s *server) httpTask(ctx context.Context, c *call, a *adapter.Call) (any, error) {
	id, verb, _ := strings.Cut(a.Request.PathValue("task"), ":")
	method := a.Request.Method
	if method == http.MethodHead && verb == "" { // HEAD begins no stream
		method = http.MethodGet
	}
	switch method + " " + verb {
	case "GET ":
		q := query{values: a.Request.URL.Query()}
		p := taskParams{ID: id, History: q.integer("historyLength")}
		if q.err != nil {
			return nil, q.err
		}
		return s.get(ctx, c, &p)
	case "POST cancel":
		return s.cancel(ctx, c, &taskParams{ID: id})
	case "POST subscribe", "GET subscribe": // the specification has POST, and its protocol buffers GET
		return s.subscribe(ctx, c, &taskParams{ID: id})
	}
	return nil, failf(errUnsupported,
		"a task is read by GET, and canceled or subscribed to by POST with :cancel or :subscribe after its ID")
}

func (s *server) httpList(ctx context.Context, c *call, a *adapter.Call) (any, error) {
	q := query{values: a.Request.URL.Query()}
	p := listParams{
		Context: q.values.Get("contextId"), Status: q.values.Get("status"), Token: q.values.Get("pageToken"),
		After: q.values.Get("statusTimestampAfter"), Size: q.integer("pageSize"), History: q.integer("historyLength"),
		Artifacts: q.boolean("includeArtifacts"),
	}
	if q.err != nil {
		return nil, q.err
	}
	return s.list(ctx, c, &p)
}

func (s *server) httpCard(ctx context.Context, c *call, _ *adapter.Call) (any, error) {
	return s.extendedCard(ctx, c)
}

func (s *server) httpCreatePush(ctx context.Context, c *call, a *adapter.Call) (any, error) {
	p, err := body[pushParams](a)
	if err != nil {
		return nil, err
	}
	if p.Task = a.Request.PathValue("task"); p.Proto != nil {
		p.Old = p.Proto.Config
	}
	return s.pushes.create(ctx, c, p)
}

// inPath returns a method of push notification configurations whose parameters are in the path.
func inPath(do func(context.Context, *call, *pushParams) (any, error)) httpMethod {
	return func(ctx context.Context, c *call, a *adapter.Call) (any, error) {
		p := new(pushParams)
		if p.Task, p.ID = a.Request.PathValue("task"), a.Request.PathValue("push"); c.form.legacy {
			p.ID, p.OldID = p.Task, p.ID
		}
		return do(ctx, c, p)
	}
}

// query reads parameters of a URL. It keeps the first error.
type query struct {
	values url.Values
	err    error
}

func (q *query) integer(name string) *int {
	text := q.values.Get(name)
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		q.err = cmp.Or(q.err, invalid(name, errors.New("is a whole number")))
		return nil
	}
	return &n
}

func (q *query) boolean(name string) bool {
	text := q.values.Get(name)
	if text != "" && text != "true" && text != "false" {
		q.err = cmp.Or(q.err, invalid(name, errors.New("is true or false")))
	}
	return text == "true"
}
