package group

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/notify"
	"agentsite/device"
)

// values holds the latest values of a site since it was last reached, by their addresses in the group.
type values struct {
	readings  map[string]told
	approvals []agents.Approval
	asked     time.Time // when the approvals came
	stopped   *bool     // nil where the site does not tell
}

// told is a reading, and when it came.
type told struct {
	agents.Reading
	at time.Time
}

// now returns the reading as it is now.
func (t told) now() agents.Reading { return t.Reading.After(time.Since(t.at)) }

// take keeps what the site tells, and tells the watchers.
func (m *member) take(u agents.Update) {
	g, now := m.group, time.Now()
	// Cleaned before the lock, which a stop of other sites needs, too.
	u.Readings, u.Approvals = cleanList(m.name, u.Readings, cleanReading), cleanList(m.name, u.Approvals, cleanApproval)
	var changed []string
	g.mu.Lock()
	if m.values == nil || u.Offer {
		if m.values != nil { // what is not told again is no value any more
			changed = slices.Collect(maps.Keys(m.values.readings))
		}
		m.values = &values{readings: make(map[string]told)}
	}
	v := m.values
	for _, r := range u.Readings {
		before, known := v.readings[r.Point]
		if !known && len(v.readings) >= maxList {
			continue
		}
		if r.Detail == nil {
			r.Detail = before.now().Detail
		}
		v.readings[r.Point] = told{r, now}
		changed = append(changed, r.Point)
	}
	if u.Approvals != nil {
		v.approvals, v.asked = u.Approvals, now
	}
	if len(u.Stops) == 1 {
		v.stopped = &u.Stops[0].Stopped
	}
	g.mu.Unlock()
	for _, address := range changed {
		g.watchers.Announce(agents.Change{URI: agents.PointURI(address)})
	}
	if u.Offer || u.Approvals != nil || u.Stops != nil {
		g.watchers.Announce(agents.Change{Approvals: true})
	}
}

// want watches the sites with values until done is called.
func (g *Group) want() (done func()) {
	add := func(n int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		before := g.watching
		if g.watching += n; before != 0 && g.watching != 0 {
			return
		}
		for _, m := range g.sites {
			m.renew(errRenewed)
		}
	}
	add(1)
	return func() { add(-1) }
}

// Notify tells about changes until ctx ends: of the offers that which names, and of the
// points with these URIs. It calls emit from one goroutine, first with the zero Change once
// nothing can be missed any more.
func (g *Group) Notify(ctx context.Context, _ agents.Principal, which agents.Change, uris []string, emit func(agents.Change) error) error {
	if len(uris) > 0 {
		defer g.want()()
	}
	return g.watchers.Notify(ctx, which, uris, emit)
}

// Watch tells of the points of all sites. The readings of one that does not answer are
// stale. An approval has neither caller nor arguments.
func (g *Group) Watch(ctx context.Context, _ agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	if err := agents.CheckNumber("every", &r.Every); err != nil {
		return err
	}
	g.list()
	for i, here := range r.Points {
		if _, _, err := g.find("points", here); err != nil {
			return err
		}
		if slices.Contains(r.Points[:i], here) {
			return device.Faultf(device.Invalid, "points: name each point once; %s comes twice", here)
		}
	}
	if !r.OfferOnly {
		defer g.want()()
		g.awaitValues(ctx)
	}
	w := g.watchers.Join(agents.Change{Tools: true, Approvals: !r.OfferOnly}, nil)
	defer w.Leave()
	for first := true; ; first = false { // each round begins with a snapshot
		points := r.Points
		if len(points) == 0 && !r.OfferOnly {
			o, _ := g.Offer(ctx, agents.Principal{})
			points = o.Read
		}
		var uris []string
		for _, address := range points {
			uris = append(uris, agents.PointURI(address))
		}
		w.Replace(uris)
		if err := g.tell(ctx, w, points, agents.Update{Offer: !first}, r, emit); err != nil {
			return err
		}
	}
}

// awaitValues waits until each site that is there has told its values, or for a short time.
func (g *Group) awaitValues(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reachOfMany)
	defer cancel()
	w := g.watchers.Join(agents.Change{Tools: true, Approvals: true}, nil)
	defer w.Leave()
	for slices.ContainsFunc(g.all(), (*member).expected) {
		select {
		case <-ctx.Done():
			return
		case <-w.C:
		}
	}
}

// expected reports whether the site is there and has not told its values yet.
func (m *member) expected() bool {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	return m.offer != nil && m.values == nil
}

// tell completes u to a snapshot, and emits it and what changes, until the offer has changed.
func (g *Group) tell(ctx context.Context, w *notify.Watcher, points []string, u agents.Update, r agents.WatchRequest, emit func(agents.Update) error) error {
	if !r.OfferOnly {
		u.Readings = g.readings(points)
		u.Approvals, u.Stops = g.state()
		u.Missed = g.missing()
	}
	for {
		if err := emit(u); err != nil {
			return err
		}
		if err := device.Sleep(ctx, time.Duration(r.Every*float64(time.Second))); err != nil {
			return err
		}
		for u = (agents.Update{}); u.Readings == nil && u.Approvals == nil; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-w.C: // perhaps of what was taken with the changes before
			}
			var changed []string
			for _, c := range w.Take() {
				switch {
				case c.Tools:
					return nil
				case c.Approvals:
					u.Approvals, u.Stops = g.state()
				default:
					address, _ := c.Point()
					changed = append(changed, address)
				}
			}
			u.Readings = g.readings(changed)
		}
	}
}

// readings returns the latest readings of points.
func (g *Group) readings(points []string) (all []agents.Reading) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, address := range points {
		site, _, _ := strings.Cut(address, "/")
		r := agents.Reading{Point: address, Quality: device.Stale, Why: "its site does not answer"}
		if m := g.sites[site]; m != nil && m.values != nil {
			if t, told := m.values.readings[address]; told {
				r = t.now()
			} else {
				r.Why = "no reading yet"
			}
		}
		all = append(all, r)
	}
	return all
}

// state returns which calls wait at all sites, and which sites are stopped.
func (g *Group) state() (approvals []agents.Approval, stops []agents.StopState) {
	approvals = []agents.Approval{}
	for _, m := range g.all() {
		g.mu.Lock()
		if v := m.values; v != nil {
			for _, a := range v.approvals {
				approvals = append(approvals, a.After(time.Since(v.asked)))
			}
			if v.stopped != nil {
				stops = append(stops, agents.StopState{Site: m.name, Stopped: *v.stopped})
			}
		}
		g.mu.Unlock()
	}
	return approvals, stops
}

// missing returns the sites that are away.
func (g *Group) missing() []agents.Missed {
	missed := []agents.Missed{}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.ordered() {
		if m.offer == nil {
			missed = append(missed, agents.Missed{Site: m.name, Why: m.awayLocked(nil).Error()})
		}
	}
	return missed
}
