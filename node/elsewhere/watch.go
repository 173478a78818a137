package elsewhere

import (
	"context"
	"slices"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node"
)

// A value that a permission's rate does not allow yet is tried again less and less often.
const (
	chargeRetry    = time.Second
	chargeRetryMax = time.Minute
)

// Watch implements agents.Site. Each side is watched for itself, and emit is called from one goroutine.
func (s *Site) Watch(
	ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error,
) error {
	others := s.othersOf(p, r.Points)
	if others == nil {
		return s.node.Watch(ctx, p, r, emit)
	}
	here, there := r, r
	here.Points, there.Points = split(r.Points)
	here.OfferOnly = r.OfferOnly || len(here.Points) == 0 && len(there.Points) > 0
	if len(there.Points) > 0 {
		ask := agents.Ask{Op: agents.OpWatch, Points: there.Points, Effect: agents.Reads}
		c := s.call(ask, r.Terms, struct{}{})
		if _, err := s.node.Begin(ctx, p, &c); err != nil {
			return err
		}
		c.End() // the watch of this site has a place
	}
	ctx, end := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end(nil)
	updates := make(chan sideUpdate)
	pass := func(side int) func(agents.Update) error {
		return func(u agents.Update) error {
			told := sideUpdate{side, u, time.Now(), make(chan struct{})}
			select {
			case updates <- told:
			case <-ctx.Done():
				return ctx.Err()
			}
			select { // what changes meanwhile is in the side's next update
			case <-told.taken:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	running.Go(func() { end(s.node.Watch(ctx, p, here, pass(0))) })
	running.Go(func() { end(s.watchThere(ctx, p, others, there, pass(1))) })
	var sides [2]side
	for first := true; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case told := <-updates:
			u, waited := told.Update, time.Since(told.made)
			for i, r := range u.Readings { // while another update was told
				u.Readings[i] = r.After(waited)
			}
			snapshot := u.Offer || !sides[told.side].known
			sides[told.side].take(u, snapshot)
			switch {
			case !sides[0].known || !sides[1].known:
				close(told.taken)
				continue
			case snapshot || first:
				u = agents.Update{Offer: !first, Approvals: sides[0].approvals, Stops: sides[0].stops, Missed: sides[1].missed}
				u.Readings = append(sides[0].now(), sides[1].now()...)
				first = false
			}
			if err := emit(u); err != nil {
				return err
			}
			if device.Sleep(ctx, time.Duration(r.Every*float64(time.Second))) != nil {
				return context.Cause(ctx)
			}
			close(told.taken)
		}
	}
}

// sideUpdate is an update of one side, as of the time when it was made; taken is closed when it was
// told.
type sideUpdate struct {
	side int
	agents.Update
	made  time.Time
	taken chan struct{}
}

// side holds the state of one side since its last snapshot.
type side struct {
	known     bool
	readings  []agents.Reading
	at        []time.Time // when each of them came
	index     map[string]int
	approvals []agents.Approval
	stops     []agents.StopState
	missed    []agents.Missed
}

func (s *side) take(u agents.Update, snapshot bool) {
	if snapshot {
		*s = side{known: true, index: make(map[string]int)}
	}
	now := time.Now()
	for _, r := range u.Readings {
		i, ok := s.index[r.Point]
		if !ok {
			i = len(s.readings)
			s.index[r.Point] = i
			s.readings, s.at = append(s.readings, r), append(s.at, now)
		}
		s.readings[i], s.at[i] = r, now
	}
	if u.Approvals != nil {
		s.approvals = u.Approvals
	}
	if u.Stops != nil {
		s.stops = u.Stops
	}
	if u.Missed != nil {
		s.missed = u.Missed
	}
}

// now returns the readings as they are now.
func (s *side) now() []agents.Reading {
	out := make([]agents.Reading, len(s.readings))
	for i, r := range s.readings {
		out[i] = r.After(time.Since(s.at[i]))
	}
	return out
}

// watchThere watches other sites. Both permissions are charged for each value. One whose rate is used up
// is not told: the reading is stale until it may be.
func (s *Site) watchThere(
	ctx context.Context, p agents.Principal, others Others, r agents.WatchRequest, emit func(agents.Update) error,
) error {
	first := true
	return others.Watch(ctx, p, r, func(u agents.Update) error {
		u.Approvals, u.Stops = nil, nil // they are for people of that site
		u.Readings = s.visible(p, u.Readings, len(r.Points) > 0)
		if !first && !u.Offer && u.Readings == nil && u.Missed == nil {
			return nil
		}
		first = false
		for wait := chargeRetry; ; wait = min(2*wait, chargeRetryMax) {
			err := s.charge(p, u.Readings)
			if err == nil {
				return emit(u)
			}
			if device.AsFault(err).Kind != device.Busy {
				return err
			}
			if wait == chargeRetry {
				told := u
				told.Readings = slices.Clone(u.Readings)
				for i, r := range told.Readings {
					told.Readings[i] = unknown(r, node.HeldBack)
				}
				if err := emit(told); err != nil {
					return err
				}
				u.Offer, u.Missed = false, nil
			}
			if err := device.Sleep(ctx, wait); err != nil {
				return err
			}
			for i, r := range u.Readings {
				u.Readings[i] = r.After(wait)
				if away := others.Away(siteOf(r.Point)); away != nil { // which the next update would say, after a value
					u.Readings[i] = unknown(r, device.AsFault(away).Msg)
				}
			}
		}
	})
}

// unknown returns the reading of a point whose value is unknown.
func unknown(r agents.Reading, why string) agents.Reading {
	return agents.Reading{Point: r.Point, Unit: r.Unit, Quality: device.Stale, Why: why}
}

// visible returns the readings without values that p may not see, or, where the points were not named,
// without those points.
func (s *Site) visible(p agents.Principal, all []agents.Reading, named bool) (out []agents.Reading) {
	for _, r := range all {
		err := s.sees(p, agents.OpRead, r.Point, device.Value{})
		switch {
		case err == nil:
			out = append(out, r)
		case named:
			out = append(out, unknown(r, err.Error()))
		}
	}
	return out
}

// charge charges both permissions for the readings that have a value.
func (s *Site) charge(p agents.Principal, readings []agents.Reading) error {
	ask := agents.Ask{Op: agents.OpRead, Effect: agents.Reads}
	for _, r := range readings {
		if !r.Value.IsZero() {
			ask.Points = append(ask.Points, r.Point)
		}
	}
	if ask.Points == nil {
		return nil
	}
	return s.node.Charge(p, ask, s.with(ask))
}
