package mcp

import (
	"context"

	"agentsite/agents"
	"agentsite/device"
)

// watch sends values instead of resources/updated, as the operation watch brings them: first all,
// then the changes. The lists that the filter names are announced, too. The site counts the
// subscription.
func (s *Server) watch(ctx context.Context, r request, agreed filter, begin func()) error {
	req := agents.WatchRequest{Every: *r.meta.Values}
	for _, uri := range agreed.URIs {
		address, ok := agents.Change{URI: uri}.Point()
		if !ok {
			return device.Faultf(device.Invalid, "notifications: %.80q is no URI of a point; resources/list has them", uri)
		}
		req.Points = append(req.Points, address)
	}
	w := valuesWriter{}
	return s.catalog.Watch(ctx, r.who, req, func(u agents.Update) error {
		if w.index == nil {
			p := subscriptionParams{Notifications: &agreed}
			p.Meta.Values = r.meta.Values
			if err := s.tell(r, acknowledged, p); err != nil {
				return err
			}
			begin()
		}
		p, err := w.params(u)
		if err != nil {
			return err
		}
		p.Meta.Subscription = r.ID
		if err := r.Notify("notifications/agentsite/values", p); err != nil || !u.Offer {
			return err
		}
		return s.changed(r, agents.Change{Tools: agreed.Tools, Prompts: agreed.Prompts, Resources: agreed.Resources})
	})
}

// valuesWriter renders updates. Each snapshot numbers the points anew.
type valuesWriter struct {
	index map[string]int // of points in the table; nil before the first update
}

func (w *valuesWriter) params(u agents.Update) (p valuesParams, err error) {
	if w.index == nil || u.Offer {
		w.index = make(map[string]int, len(u.Readings))
		p.Points = make([]tablePoint, len(u.Readings))
		for i, reading := range u.Readings {
			w.index[reading.Point] = i
			p.Points[i] = tablePoint{reading.Point, reading.Unit}
		}
	}
	if len(u.Readings) > 0 {
		p.Readings = make([]tableReading, len(u.Readings))
	}
	for i, reading := range u.Readings {
		at, ok := w.index[reading.Point]
		if !ok {
			return p, device.Faultf(device.Internal, "%s was not in the snapshot", reading.Point)
		}
		t := tableReading{Index: at, Value: reading.Value, Age: reading.Age, Why: reading.Why}
		if reading.Quality != device.Good {
			t.Quality = reading.Quality
		}
		if d := reading.Detail; d != nil {
			t.Output = d.Doing()
		}
		p.Readings[i] = t
	}
	p.Approvals, p.Missed = u.Approvals, u.Missed
	if len(u.Stops) == 1 && u.Stops[0].Site == "" {
		p.Stopped = &u.Stops[0].Stopped
	} else {
		p.Sites = u.Stops
	}
	return p, nil
}
