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
		s.Route("POST /api/outputs/{device}/{point}", web.Principals, a.move),
	}
}

type api struct{ *adapter.Site }

func (a api) points(ctx context.Context, c *adapter.Call) (any, error) {
	return a.Node.Points(ctx, c.Who, agents.SiteRequest{})
}

// address returns the point that a path names, if its caller may name it.
func (a api) address(ctx context.Context, c *adapter.Call, of func(*agents.Offer) []string) (string, error) {
	o, err := a.Node.Offer(ctx, c.Who)
	if err != nil {
		return "", err
	}
	address := device.Address(c.Request.PathValue("device"), c.Request.PathValue("point"))
	if err := agents.CheckName("the path", address, of(o)); err != nil {
		return "", adapter.ErrNotFound(err.Error())
	}
	return address, nil
}

func (a api) read(ctx context.Context, c *adapter.Call) (any, error) {
	address, err := a.address(ctx, c, func(o *agents.Offer) []string { return o.Read })
	if err != nil {
		return nil, err
	}
	got, err := a.Node.Read(ctx, c.Who, agents.ReadRequest{Points: []string{address}})
	if err != nil {
		return nil, err
	}
	return got.Readings[0], nil
}

// moveBody asks to move an output. Without a value it is released.
type moveBody struct {
	Value device.Value `json:"value"`
	For   *float64     `json:"for,omitzero"` // seconds
}

func (a api) move(ctx context.Context, c *adapter.Call) (any, error) {
	address, err := a.address(ctx, c, func(o *agents.Offer) []string { return slices.Concat(o.Switch, o.Level, o.Release) })
	if err != nil {
		return nil, err
	}
	var body moveBody
	if err := c.Decode(&body); err != nil {
		return nil, err
	}
	terms, err := c.Terms()
	if err != nil {
		return nil, err
	}
	return a.Node.Move(ctx, c.Who, agents.MoveRequest{Output: address, Value: body.Value, For: body.For, Terms: terms})
}
