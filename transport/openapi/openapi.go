// Package openapi renders the operations as plain HTTP for people and scripts: JSON under /api.
package openapi

import (
	"context"
	"slices"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/web"
)

// Routes returns the routes.
func Routes(s *adapter.Site) []web.Route {
	a := api{s}
	return []web.Route{
		s.Route("GET /api/points", web.Principals, a.points),
		s.Route("GET /api/points/{device}/{point}", web.Principals, a.read),
		s.Route("GET /api/history", web.Principals, a.history),
		s.Route("POST /api/outputs/{device}/{point}", web.Principals, a.move),
		s.Route("POST /api/stop", web.Principals, a.stop),
	}
}

type api struct{ *adapter.Site }

func (a api) points(ctx context.Context, c *adapter.Call) (any, error) {
	return a.Node.Points(ctx, c.Who, agents.SiteRequest{})
}

// address returns the point that a path names.
func address(c *adapter.Call) string {
	return device.Address(c.Request.PathValue("device"), c.Request.PathValue("point"))
}

// notFound returns err as 404 where the node refused the path's point because its caller knows no
// such point. It is asked after the node, which decides and counts.
func (a api) notFound(ctx context.Context, c *adapter.Call, err error) error {
	if o, none := a.Node.Offer(ctx, c.Who); none == nil && device.AsFault(err).Kind == device.Invalid &&
		!slices.Contains(slices.Concat(o.Read, o.Show, o.Capture), address(c)) {
		return adapter.ErrNotFound(err.Error())
	}
	return err
}

func (a api) read(ctx context.Context, c *adapter.Call) (any, error) {
	got, err := a.Node.Read(ctx, c.Who, agents.ReadRequest{Points: []string{address(c)}})
	if err != nil {
		return nil, a.notFound(ctx, c, err)
	}
	return got.Readings[0], nil
}

// moveBody asks to move an output. Without a value it is released.
type moveBody struct {
	Value device.Value `json:"value"`
	For   *float64     `json:"for,omitzero"` // seconds
}

func (a api) move(ctx context.Context, c *adapter.Call) (any, error) {
	var body moveBody
	if err := c.Decode(&body); err != nil {
		return nil, err
	}
	terms, err := c.Terms()
	if err != nil {
		return nil, err
	}
	out, err := a.Node.Move(ctx, c.Who, agents.MoveRequest{Output: address(c), Value: body.Value, For: body.For, Terms: terms})
	if err != nil {
		return nil, a.notFound(ctx, c, err)
	}
	return out, nil
}

func (a api) history(ctx context.Context, c *adapter.Call) (any, error) {
	return a.Node.History(ctx, c.Who, agents.HistoryRequest{Point: c.Request.URL.Query().Get("point")})
}

func (a api) stop(ctx context.Context, c *adapter.Call) (any, error) {
	return a.Node.Stop(ctx, c.Who, agents.SiteRequest{})
}
