package openapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/adapter"
)

func (a api) points(ctx context.Context, c *call) (any, error) {
	return boxed(a.Node.Points(ctx, c.Who, agents.SiteRequest{Terms: c.terms}))
}

// boxed is a result without a value where there is an error.
func boxed[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// first returns the answer of the one site that there is.
func first[T any](all agents.Answers[T], err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return all.Sites[0], nil
}

func (a api) read(ctx context.Context, c *call) (any, error) {
	got, err := a.Node.Read(ctx, c.Who, agents.ReadRequest{Points: []string{c.point()}, Terms: c.terms})
	if err != nil {
		return nil, err
	}
	return got.Readings[0], nil
}

func (a api) readMany(ctx context.Context, c *call) (any, error) {
	return boxed(a.Node.Read(ctx, c.Who, agents.ReadRequest{Points: c.query["point"], Terms: c.terms}))
}

func (a api) history(ctx context.Context, c *call) (any, error) {
	return boxed(a.Node.History(ctx, c.Who, agents.HistoryRequest{
		Point: c.point(), From: c.query.Get("from"), To: c.query.Get("to"), Hours: c.numbers["hours"], Steps: c.numbers["steps"], Terms: c.terms,
	}))
}

func (a api) why(ctx context.Context, c *call) (any, error) {
	return boxed(a.Node.Why(ctx, c.Who, agents.WhyRequest{Point: c.point(), Terms: c.terms}))
}

func (a api) status(ctx context.Context, c *call) (any, error) {
	return first(a.Node.Status(ctx, c.Who, agents.SiteRequest{Terms: c.terms}))
}

// moveBody asks to move an output. Without a value it is released.
type moveBody struct {
	Value device.Value `json:"value,omitzero" jsonschema:"true or false for a switch, a number within its range for a level; null returns it to safe"`
	For   *float64     `json:"for,omitzero" jsonschema:"seconds, then back to safe; 60 when left out"`
}

func (a api) move(ctx context.Context, c *call) (any, error) {
	var body moveBody
	if err := a.decode(c, &body); err != nil {
		return nil, err
	}
	return boxed(a.Node.Move(ctx, c.Who, agents.MoveRequest{Output: c.point(), Value: body.Value, For: body.For, Terms: c.terms}))
}

func (a api) release(ctx context.Context, c *call) (any, error) {
	return boxed(a.Node.Move(ctx, c.Who, agents.MoveRequest{Output: c.point(), Terms: c.terms}))
}

// stop looks at nothing but its caller.
func (a api) stop(ctx context.Context, c *call) (any, error) {
	return first(a.Node.Stop(ctx, c.Who, agents.SiteRequest{Terms: c.terms}))
}

// textBody asks to show a text.
type textBody struct {
	Text string `json:"text"`
}

func (a api) show(ctx context.Context, c *call) (any, error) {
	var body textBody
	if err := a.decode(c, &body); err != nil {
		return nil, err
	}
	r := agents.ShowRequest{Display: c.point(), Text: body.Text, Terms: c.terms}
	return r, a.Node.Show(ctx, c.Who, r)
}

func (a api) capture(ctx context.Context, c *call) (any, error) {
	picture, err := a.Node.Capture(ctx, c.Who, agents.CaptureRequest{Camera: c.point(), Terms: c.terms})
	if err != nil {
		return nil, err
	}
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
