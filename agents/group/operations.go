package group

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

const (
	// patience is how long a site may take to answer, and reach how long one that is away
	// is waited for before.
	patience = 30 * time.Second
	reach    = 5 * time.Second
	// The same for a call to many sites.
	patienceOfMany = 10 * time.Second
	reachOfMany    = 1500 * time.Millisecond
)

// The methods of agents.Site. What goes wrong at a site is a fault with a kind; of a call
// to many sites it stands in Missed, beside the results of the others.

func (g *Group) Points(ctx context.Context, _ agents.Principal, r agents.SiteRequest) (out agents.PointList, err error) {
	out.Points = []agents.Point{}
	out.Missed, err = whole(ctx, g, call{op: agents.OpPoints, terms: r.Terms}, r.Site, agents.Site.Points, func(m *member, answer agents.PointList) error {
		out.Points = append(out.Points, cleanList(m.name, answer.Points, cleanPoint)...)
		return nil
	})
	return out, err
}

func (g *Group) Status(ctx context.Context, _ agents.Principal, r agents.SiteRequest) (out agents.Answers[agents.Status], err error) {
	out.Sites = []agents.Status{}
	out.Missed, err = whole(ctx, g, call{op: agents.OpStatus, terms: r.Terms}, r.Site, agents.Site.Status, func(m *member, answer agents.Answers[agents.Status]) error {
		if len(answer.Sites) != 1 {
			return m.unexpected(call{op: agents.OpStatus})
		}
		out.Sites = append(out.Sites, cleanStatus(m.name, answer.Sites[0]))
		return nil
	})
	return out, err
}

func (g *Group) Stop(ctx context.Context, _ agents.Principal, r agents.SiteRequest) (out agents.Answers[agents.Stopped], err error) {
	out.Sites = []agents.Stopped{}
	out.Missed, err = whole(ctx, g, call{op: agents.OpStop, terms: r.Terms}, r.Site, agents.Site.Stop, func(m *member, answer agents.Answers[agents.Stopped]) error {
		if len(answer.Sites) != 1 || !answer.Sites[0].Stopped { // a site answers once it is stopped
			return m.unexpected(call{op: agents.OpStop})
		}
		out.Sites = append(out.Sites, agents.Stopped{
			Site: m.name, Stopped: true, Outputs: cleanList(m.name, answer.Sites[0].Outputs, cleanProof),
		})
		return nil
	})
	return out, err
}

// Read asks the sites of the points that are named, or all sites, for their readings.
func (g *Group) Read(ctx context.Context, _ agents.Principal, r agents.ReadRequest) (out agents.Readings, err error) {
	g.list()
	out.Readings = []agents.Reading{}
	if len(r.Points) > maxList {
		return out, device.Faultf(device.Invalid, "points: at most %d points in one call", maxList)
	}
	to := g.everywhere(agents.OpRead)
	order := make(map[string]int)
	if len(r.Points) > 0 {
		to = nil
		for i, here := range r.Points {
			m, there, err := g.find("points", here)
			if err != nil {
				return out, err
			}
			if _, twice := order[here]; twice {
				continue
			}
			order[here] = i
			at := slices.IndexFunc(to, func(e part) bool { return e.to == m })
			if at < 0 {
				at, to = len(to), append(to, part{to: m})
			}
			to[at].points = append(to[at].points, there)
		}
	}
	c := call{op: agents.OpRead, terms: r.Terms}
	out.Missed, err = together(ctx, c, to, len(r.Points) > 0 && len(to) == 1, func(ctx context.Context, s agents.Site, c call) (agents.Readings, error) {
		return s.Read(ctx, agents.Principal{}, agents.ReadRequest{Points: c.points, Terms: c.terms})
	}, func(m *member, answer agents.Readings) error {
		out.Readings = append(out.Readings, cleanList(m.name, answer.Readings, cleanReading)...)
		return nil
	})
	if len(r.Points) > 0 {
		out.Readings = slices.DeleteFunc(out.Readings, func(r agents.Reading) bool { _, asked := order[r.Point]; return !asked })
		slices.SortStableFunc(out.Readings, func(a, b agents.Reading) int { return order[a.Point] - order[b.Point] })
	}
	return out, err
}

func (g *Group) History(ctx context.Context, _ agents.Principal, r agents.HistoryRequest) (agents.History, error) {
	return one(ctx, g, call{op: agents.OpHistory, terms: r.Terms}, "point", r.Point, func(ctx context.Context, s agents.Site, c call) (agents.History, error) {
		r.Point, r.Terms = c.points[0], c.terms
		return s.History(ctx, agents.Principal{}, r)
	}, cleanHistory)
}

func (g *Group) Why(ctx context.Context, _ agents.Principal, r agents.WhyRequest) (agents.Why, error) {
	return one(ctx, g, call{op: agents.OpWhy, terms: r.Terms}, "point", r.Point, func(ctx context.Context, s agents.Site, c call) (agents.Why, error) {
		r.Point, r.Terms = c.points[0], c.terms
		return s.Why(ctx, agents.Principal{}, r)
	}, cleanWhy)
}

func (g *Group) Move(ctx context.Context, _ agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	return one(ctx, g, call{op: agents.OpMove, value: r.Value, terms: r.Terms}, "output", r.Output, func(ctx context.Context, s agents.Site, c call) (agents.Output, error) {
		r.Output, r.Terms = c.points[0], c.terms
		return s.Move(ctx, agents.Principal{}, r)
	}, cleanOutput)
}

func (g *Group) Show(ctx context.Context, _ agents.Principal, r agents.ShowRequest) error {
	_, err := one(ctx, g, call{op: agents.OpShow, terms: r.Terms}, "display", r.Display, func(ctx context.Context, s agents.Site, c call) (struct{}, error) {
		r.Display, r.Terms = c.points[0], c.terms
		return struct{}{}, s.Show(ctx, agents.Principal{}, r)
	}, func(string, *struct{}) bool { return true })
	return err
}

func (g *Group) Capture(ctx context.Context, _ agents.Principal, r agents.CaptureRequest) (agents.Picture, error) {
	return one(ctx, g, call{op: agents.OpCapture, terms: r.Terms}, "camera", r.Camera, func(ctx context.Context, s agents.Site, c call) (agents.Picture, error) {
		r.Camera, r.Terms = c.points[0], c.terms
		return s.Capture(ctx, agents.Principal{}, r)
	}, cleanPicture)
}

// call is one operation on its way to a site.
type call struct {
	op     agents.Operation
	effect agents.Effect // of OpAsk: of a new task, or of a call about an existing one
	value  device.Value  // of OpMove
	points []string      // there; nil for all, or for a call about the whole site; of OpAsk the agent
	terms  agents.Terms
}

func (c call) ask() agents.Ask {
	a := agents.Ask{Op: c.op, Value: c.value, Effect: c.op.Effect()}
	if c.op == agents.OpAsk {
		a.Effect = c.effect
	}
	return a
}
func (c call) tool() string { return c.ask().Name() }

// returns reports whether the call goes to safe and nowhere else. It waits for no place.
func (c call) returns() bool { return c.ask().ReturnsToSafe() }

// reads reports whether the call changes nothing.
func (c call) reads() bool { return c.ask().Effect == agents.Reads }

// part is one site's part of a call to many.
type part struct {
	to     *member
	points []string
}

// find finds the site of an address.
func (g *Group) find(field, here string) (m *member, there string, err error) {
	if here == "" {
		return nil, "", device.Faultf(device.Invalid, "%s is missing; list_points names what there is", field)
	}
	site, there, ok := strings.Cut(here, "/")
	if !ok || !isAddress(there) {
		return nil, "", device.Faultf(device.Invalid, "%s: %.60q is no point here: write site/device/point, as list_points names them", field, here)
	}
	m, err = g.named(site)
	return m, there, err
}

// everywhere returns the sites that offer an operation, or may: nobody knows of one that
// was never reached. A stop is for all that have outputs, also where this caller may not
// stop them: it is told of those.
func (g *Group) everywhere(op agents.Operation) (all []part) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.ordered() {
		o := m.had
		if o == nil || (wholes[op] == nil && len(o.Read) > 0) || (wholes[op] != nil && *wholes[op](o)) ||
			(op == agents.OpStop && len(o.Switch)+len(o.Level) > 0) {
			all = append(all, part{to: m})
		}
	}
	return all
}

// one calls the site of one point, and cleans its answer.
func one[T any](ctx context.Context, g *Group, c call, field, here string, do func(context.Context, agents.Site, call) (T, error), clean func(site string, answer *T) bool) (answer T, err error) {
	g.list()
	m, there, err := g.find(field, here)
	if err != nil {
		return answer, err
	}
	c.points = []string{there}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if answer, err = ask(ctx, m, c, reach, do); err != nil {
		return answer, err
	}
	if !clean(m.name, &answer) {
		return *new(T), m.unexpected(c)
	}
	return answer, nil
}

// whole calls a site that is named, or all.
func whole[T any](ctx context.Context, g *Group, c call, site string, do func(agents.Site, context.Context, agents.Principal, agents.SiteRequest) (T, error), take func(*member, T) error) ([]agents.Missed, error) {
	g.list()
	to := g.everywhere(c.op)
	if site != "" {
		m, err := g.named(site)
		if err != nil {
			return nil, err
		}
		to = []part{{to: m}}
	}
	return together(ctx, c, to, site != "", func(ctx context.Context, s agents.Site, c call) (T, error) {
		return do(s, ctx, agents.Principal{}, agents.SiteRequest{Terms: c.terms})
	}, take)
}

// together calls sites all at once and has take keep each answer, in the order of the sites.
// Sites that did not answer are returned; where the call is about one site alone, what goes
// wrong there is the call's error.
func together[T any](ctx context.Context, c call, to []part, alone bool, do func(context.Context, agents.Site, call) (T, error), take func(*member, T) error) (missed []agents.Missed, err error) {
	within, soon := patienceOfMany, reachOfMany
	if alone {
		within, soon = patience, reach
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answers, faults := make([]T, len(to)), make([]error, len(to))
	var asked sync.WaitGroup
	for i, e := range to {
		its := c
		its.points = e.points
		asked.Go(func() { answers[i], faults[i] = ask(ctx, e.to, its, soon, do) })
	}
	asked.Wait()
	for i, e := range to {
		err := faults[i]
		if err == nil {
			err = take(e.to, answers[i])
		}
		switch needs, approval := err.(*agents.ApprovalNeeded); {
		case err == nil:
		case alone:
			return nil, err
		case approval:
			missed = append(missed, agents.Missed{Site: e.to.name, Why: needs.Says + "; name it in a call for itself"})
		default:
			missed = append(missed, agents.Missed{Site: e.to.name, Why: err.Error()})
		}
	}
	return missed, nil
}

// ask calls one site. One that is away is waited for until soon. A call that moves nothing
// away from safe is made all the same then, and may take as long again: a site that cannot
// be watched may answer.
func ask[T any](ctx context.Context, m *member, c call, soon time.Duration, do func(context.Context, agents.Site, call) (T, error)) (answer T, err error) {
	came := time.Now()
	if !c.returns() {
		select {
		case m.running <- struct{}{}:
			defer func() { <-m.running }()
		default:
			return answer, device.Faultf(device.Busy, "%d calls to %s are running: wait for one to end", maxRunning, m.name)
		}
	}
	reaching, cancel := context.WithTimeout(ctx, soon)
	o, err := m.reached(reaching)
	cancel()
	if err != nil {
		if !c.reads() && !c.returns() {
			return answer, err
		}
		o = m.last()
		ctx, cancel = context.WithTimeout(ctx, soon)
		defer cancel()
	}
	if err := m.offers(o, c); err != nil {
		return answer, err
	}
	if c.terms, err = remaining(c.terms, came); err != nil {
		return answer, err
	}
	if answer, err = do(ctx, m.site, c); err == nil {
		return answer, nil
	}
	m.doubt(err)
	return *new(T), m.failed(c, err)
}

// offers refuses a call that is not in the site's offer; nil is an unknown offer.
func (m *member) offers(o *agents.Offer, c call) error {
	if o == nil {
		return nil
	}
	tool, names := c.tool(), offered(o, c)
	if c.op == agents.OpAsk {
		if c.points == nil { // a task may outlive the permission to ask for another
			return nil
		}
		for _, a := range m.taking() {
			names = append(names, a.Name)
		}
	}
	for _, there := range c.points {
		if err := o.Unfit(c.op, there, m.name+"/"+there, c.value); err != nil {
			return err
		}
	}
	if has := wholes[c.op]; has != nil && !*has(o) || has == nil && len(names) == 0 {
		return device.Faultf(device.Denied, "%s does not offer %s to you", m.name, tool)
	}
	for _, there := range c.points {
		if !slices.Contains(names, there) {
			return agents.CheckName(tool, m.name+"/"+there, m.prefixed(names))
		}
	}
	return nil
}

// remaining returns the caller's terms, less the time that has passed here.
func remaining(t agents.Terms, came time.Time) (agents.Terms, error) {
	if t.Within != nil {
		left := *t.Within - time.Since(came).Seconds()
		if left <= 0 && *t.Within > 0 {
			return t, device.Faultf(device.Expired, "the site was not reached within %v seconds, and nothing was moved; call again", *t.Within)
		}
		t.Within = &left
	}
	return t, nil
}

// isPicture reports whether data begins as a picture of a type does.
func isPicture(mime string, data []byte) bool {
	begins := map[string]string{"image/jpeg": "\xff\xd8\xff", "image/png": "\x89PNG\r\n\x1a\n"}[mime]
	return begins != "" && bytes.HasPrefix(data, []byte(begins))
}
