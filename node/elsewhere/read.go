package elsewhere

import (
	"context"
	"slices"

	"agentsite/agents"
	"agentsite/device"
)

// Points implements agents.Site. It adds the points of other sites that p sees.
func (s *Site) Points(
	ctx context.Context, p agents.Principal, r agents.SiteRequest,
) (out agents.PointList, err error) {
	out, err = s.node.Points(ctx, p, r)
	others := s.of(p.ID)
	if err != nil || others == nil {
		return out, err
	}
	there, err := others.Points(ctx, p, agents.SiteRequest{Terms: r.Terms})
	if err != nil {
		return out, nil
	}
	out.Points, out.Missed = slices.Clip(out.Points), there.Missed
	for _, q := range there.Points {
		if s.sees(p, agents.OpPoints, q.Point, device.Value{}) == nil {
			out.Points = append(out.Points, q)
		}
	}
	return out, nil
}

// othersOf returns the other sites of p, if some of the points are there; no points are all. It returns nil
// otherwise.
func (s *Site) othersOf(p agents.Principal, points []string) Others {
	if len(points) > 0 && !slices.ContainsFunc(points, isFar) {
		return nil
	}
	return s.of(p.ID)
}

// split separates the points of this site from those of others.
func split(points []string) (here, there []string) {
	for _, address := range points {
		if isFar(address) {
			there = append(there, address)
		} else {
			here = append(here, address)
		}
	}
	return here, there
}

// Read implements agents.Site, in the order of the request. Points that another site does not answer for
// are stale, without a value.
func (s *Site) Read(ctx context.Context, p agents.Principal, r agents.ReadRequest) (out agents.Readings, err error) {
	others := s.othersOf(p, r.Points)
	if others == nil {
		return s.node.Read(ctx, p, r)
	}
	here, there := split(r.Points)
	order := r.Points
	if len(order) == 0 {
		all, err := s.Offer(ctx, p)
		if err != nil {
			return out, err
		}
		order = all.Read
		_, there = split(order)
	}
	found := make(map[string]agents.Reading, len(order))
	if len(here) > 0 || len(r.Points) == 0 {
		q := r
		q.Points = here
		answer, err := s.node.Read(ctx, p, q)
		if err != nil {
			return out, err
		}
		for _, reading := range answer.Readings {
			found[reading.Point] = reading
		}
	}
	if len(there) > 0 {
		q := r
		q.Points = there
		if out.Missed, err = s.readThere(ctx, p, others, q, found); err != nil {
			return out, err
		}
	}
	out.Readings = make([]agents.Reading, 0, len(order))
	for _, address := range order {
		if reading, ok := found[address]; ok {
			out.Readings = append(out.Readings, reading)
		}
	}
	return out, nil
}

// readThere adds readings of other sites to those that were found.
func (s *Site) readThere(
	ctx context.Context, p agents.Principal, others Others, r agents.ReadRequest, found map[string]agents.Reading,
) (missed []agents.Missed, err error) {
	c := s.call(agents.Ask{Op: agents.OpRead, Points: r.Points, Effect: agents.Reads}, r.Terms, struct{}{})
	if _, err := s.node.Begin(ctx, p, &c); err != nil {
		return nil, err
	}
	defer c.End()
	why := "its site does not answer"
	r.Terms = c.There()
	answer, err := others.Read(ctx, p, r)
	if err != nil {
		why = device.AsFault(err).Msg
	}
	for _, address := range r.Points {
		found[address] = agents.Reading{Point: address, Quality: device.Stale, Why: why}
	}
	for _, reading := range answer.Readings {
		if _, asked := found[reading.Point]; asked {
			found[reading.Point] = reading
		}
	}
	return answer.Missed, nil
}
