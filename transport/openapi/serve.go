package openapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// do asks the operation of a call.
func (a api) do(ctx context.Context, c *call) (any, error) {
	r, err := c.does.Decode(request{c})
	if err != nil {
		return nil, a.refuse(c, err)
	}
	return c.does.AskOne(ctx, a.Node, c.Who, r, c.terms)
}

// request is the request of a call's operation, in the path, the query and the body.
type request struct{ *call }

// Decode decodes the request.
func (r request) Decode(into any) error {
	members, field := make(map[string]jsontext.Value), r.does.Field
	if r.body != "" {
		if err := r.decode(&members); err != nil {
			return err
		}
		if members[field] != nil {
			return device.Faultf(device.Invalid, "the body: %s: there is no such field", field)
		}
	}
	all := make(map[string]any)
	for name, v := range members {
		all[name] = v
	}
	for _, p := range r.operation.query {
		switch values := r.query[p.name]; {
		case len(values) == 0:
		case p.many:
			all[field] = values
		case p.number:
			all[p.name] = r.numbers[p.name]
		default:
			all[p.name] = values[0]
		}
	}
	if strings.Contains(r.path, "{device}") {
		if all[field] = r.point(); r.does == op.Read {
			all[field] = []string{r.point()}
		}
	}
	text, err := json.Marshal(all, jsontext.AllowInvalidUTF8(true))
	if err == nil {
		err = rpc.RawJSON(text).DecodeStrict(into)
	}
	if err != nil {
		return device.Faultf(device.Invalid, "the body: %w", err)
	}
	return nil
}

// read answers with the one reading of a point.
func (a api) read(ctx context.Context, c *call) (any, error) {
	v, err := a.do(ctx, c)
	if err != nil {
		return nil, err
	}
	return v.(agents.Readings).Readings[0], nil
}

// boxed is a result without a value where there is an error.
func boxed[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (a api) capture(ctx context.Context, c *call) (any, error) {
	v, err := a.do(ctx, c)
	if err != nil {
		return nil, err
	}
	picture := v.(agents.Picture)
	if at, err := time.Parse(time.RFC3339, picture.Time); err == nil {
		c.Writer.Header().Set("Last-Modified", at.UTC().Format(http.TimeFormat))
	}
	media := picture.MIME
	if !strings.HasPrefix(media, "image/") {
		media = "application/octet-stream" // no camera's driver makes a page of this site's
	}
	return &adapter.Answer{Type: media, Value: picture.Data}, nil
}

// update is an agents.Update of one site. Lists that have not changed are left out.
type update struct {
	Offer     bool              `json:"offer_changed,omitzero"`
	Readings  []watched         `json:"readings,omitzero"`
	Approvals []agents.Approval `json:"approvals,omitzero"`
	Stopped   *bool             `json:"emergency_stop,omitzero"`
}

// watched is a reading in a watch, with the state of an output.
type watched struct {
	agents.Reading
	Output *agents.OutputDetail `json:"output,omitzero"`
}

func (a api) watch(ctx context.Context, c *call) (any, error) {
	r := agents.WatchRequest{Points: c.query["point"], Terms: c.terms}
	if every := c.numbers["every"]; every != nil {
		r.Every = *every
	}
	return a.Stream(ctx, c.Call, func(ctx context.Context, send func(string, any) error) error {
		return a.Node.Watch(ctx, c.Who, r, func(u agents.Update) error { return send("", updateOf(u)) })
	})
}

func updateOf(u agents.Update) update {
	out := update{Offer: u.Offer, Approvals: u.Approvals}
	for _, r := range u.Readings {
		w := watched{Reading: r}
		if d := r.Detail; d != nil {
			w.Output = d.Doing()
		}
		out.Readings = append(out.Readings, w)
	}
	if len(u.Stops) > 0 {
		out.Stopped = &u.Stops[0].Stopped
	}
	return out
}
