package node

import (
	"context"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/device/guard"
)

// OtherSites are other sites as one hosted agent has them: one Site whose points are called
// site/device/point. Offer does not block, and Watch tells that a site does not answer.
type OtherSites interface {
	agents.Site
	// Away returns why a site does not answer now, and nil where it may.
	Away(site string) error
}

// otherSites is how the node finds them.
type otherSites struct {
	kind string
	of   func(principal string) OtherSites
}

// SetOtherSites lets hosted agents ask other sites; of returns those of an agent, by its principal,
// nil for none. The permission of the principal kind:site bounds all agents together on a site. It
// is called before the first caller.
func (n *Node) SetOtherSites(kind string, of func(principal string) OtherSites) {
	n.elsewhere = &otherSites{kind, of}
}

// sitesOf returns the other sites of p; nil for none.
func (n *Node) sitesOf(p agents.Principal) OtherSites {
	if n.elsewhere == nil || n.free(p) {
		return nil
	}
	return n.elsewhere.of(p.ID)
}

// isElsewhere reports whether an address is that of another site's point.
func isElsewhere(address string) bool { return strings.Count(address, "/") > 1 }

// split separates the points of this site from those of others.
func split(points []string) (here, there []string) {
	for _, address := range points {
		if isElsewhere(address) {
			there = append(there, address)
		} else {
			here = append(here, address)
		}
	}
	return here, there
}

// forSites calls do for the part of an ask for each site that it names, as the principal of all
// agents there.
func (n *Node) forSites(ask agents.Ask, do func(agents.Principal, agents.Ask) error) error {
	by := make(map[string][]string)
	for _, address := range ask.Points {
		site, _, _ := strings.Cut(address, "/")
		by[site] = append(by[site], address)
	}
	for site, points := range by {
		of := ask
		of.Points = points
		if err := do(principal.Agent(n.elsewhere.kind, site), of); err != nil {
			return err
		}
	}
	return nil
}

// mayThere narrows the limits of a call on other sites by those of all agents together there.
func (n *Node) mayThere(c *call) error {
	err := n.forSites(c.ask, func(all agents.Principal, ask agents.Ask) error {
		limits, err := n.may(all, ask)
		if err != nil && c.renewal && device.AsFault(err).Kind == device.Busy {
			err = nil // a renewal is not charged
		}
		c.confirm = c.confirm || limits.Confirm
		if limits.Lease > 0 && (c.limits.Lease == 0 || limits.Lease < c.limits.Lease) {
			c.limits.Lease = limits.Lease
		}
		return err
	})
	c.confirm = c.confirm || c.limits.Confirm || c.terms.Confirm
	if err == nil && c.renewal && c.confirm {
		err = device.Faultf(device.Expired, "an owner confirms each time that %s is held", c.ask.Points[0])
	}
	return err
}

// takeThere charges the permission of all agents together for a call on other sites. mayThere has
// found out whether an owner is to be asked.
func (n *Node) takeThere(c *call) error {
	return n.forSites(c.ask, func(all agents.Principal, ask agents.Ask) error {
		_, err := n.take(all, ask, true)
		return err
	})
}

// beginElsewhere is begin for a call on other sites.
func (n *Node) beginElsewhere(c *call) error {
	c.far = true
	n.enter(c)
	return n.begin(c, nil)
}

// termsElsewhere are those of a call that the other site is told: an approval that was taken here is
// no word there.
func (c *call) termsElsewhere() agents.Terms {
	t := c.terms
	if c.confirm {
		t.Approval = ""
	}
	return t
}

// moveElsewhere is Move for an output of another site, whose guard decides. The request is also
// journalled here.
func (n *Node) moveElsewhere(
	ctx context.Context, p agents.Principal, o OtherSites, r agents.MoveRequest,
) (out agents.Output, err error) {
	c := moveOf(p, r)
	c.far, c.renewal = true, r.Held && !r.Value.IsZero()
	if r.Value.IsZero() {
		c.ask.Effect = agents.Returns
	}
	n.enter(&c)
	if err := n.admit(&c, agents.CheckNumber("for_seconds", r.For)); err != nil {
		return out, err
	}
	defer c.end()
	if r.For == nil && c.limits.Lease > 0 { // the other site's own length may be longer
		r.For = new(min(c.limits.Lease, guard.DefaultFor).Seconds())
	}
	if r.Value.IsZero() {
		if err := n.permitReturn(&c); err != nil {
			return out, err
		}
		r.Approval = "" // of this site's owner
	}
	if r.Value.IsZero() || c.renewal {
		out, err = o.Move(ctx, p, r)
		if c.renewal {
			n.noteBehalf(&c, out, err)
		}
		n.journal.Add(c.asked, outcome(out, err))
		return out, err
	}
	if earlier, err := n.earlier(&c); earlier != nil || err != nil {
		return replayed[agents.Output](earlier, err)
	}
	site, _, _ := strings.Cut(r.Output, "/")
	if err := o.Away(site); err != nil { // rather than an entry for each try
		return out, n.refuse(c.asked, err)
	}
	if err := n.permit(&c); err != nil {
		return out, err
	}
	if earlier, err := n.intend(ctx, &c); earlier != nil || err != nil {
		return replayed[agents.Output](earlier, err)
	}
	r.Terms = c.termsElsewhere()
	out, err = o.Move(ctx, p, r) // the other site completes what it has begun
	n.noteBehalf(&c, out, err)
	n.recall() // what ended meanwhile
	return out, c.done(out, err)
}

// seesElsewhere reports whether p and all agents together have a permission for an operation on
// another site's point.
func (n *Node) seesElsewhere(p agents.Principal, op agents.Operation, address string, v device.Value) bool {
	ask := agents.Ask{Op: op, Points: []string{address}, Effect: agents.Reads, Value: v}
	return n.access.CanSee(p, ask) && n.forSites(ask, func(all agents.Principal, ask agents.Ask) error {
		if !n.access.CanSee(all, ask) {
			return errRevoked
		}
		return nil
	}) == nil
}

// joinedOffer is an offer of this site and of others together.
type joinedOffer struct {
	here, there *agents.Offer
	version     [2]uint64
	offer       *agents.Offer
}

// joinOffers adds the offers of other sites to that of p here.
func (n *Node) joinOffers(p agents.Principal, here, there *agents.Offer) *agents.Offer {
	version := [2]uint64{n.access.Version(p)}
	for _, address := range there.Read { // of the sites that there are
		_ = n.forSites(agents.Ask{Points: []string{address}}, func(all agents.Principal, _ agents.Ask) error {
			version[1] = version[1]*31 + n.access.Version(all)
			return nil
		})
	}
	if have, ok := n.joined.Load(p.ID); ok {
		if j := have.(*joinedOffer); j.here == here && j.there == there && j.version == version {
			return j.offer
		}
	}
	o := *here
	add := func(of agents.Operation, v device.Value, list, more []string) []string {
		list = slices.Clip(list)
		for _, address := range more {
			if n.seesElsewhere(p, of, address, v) {
				list = append(list, address)
			}
		}
		return list
	}
	for _, t := range op.Tools {
		if t.Points != nil {
			*t.Points(&o) = add(t.Op, t.Value, *t.Points(here), *t.Points(there))
		}
	}
	n.joined.Store(p.ID, &joinedOffer{here, there, version, &o})
	return &o
}

// addPoints adds to the points of this site those of others that p sees.
func (n *Node) addPoints(ctx context.Context, p agents.Principal, o OtherSites, terms agents.Terms, here agents.PointList) agents.PointList {
	there, err := o.Points(ctx, p, agents.SiteRequest{Terms: terms})
	if err != nil {
		return here
	}
	out := agents.PointList{Points: slices.Clip(here.Points), Missed: there.Missed}
	for _, q := range there.Points {
		if n.seesElsewhere(p, agents.OpPoints, q.Point, device.Value{}) {
			out.Points = append(out.Points, q)
		}
	}
	return out
}

// readBoth is Read for points of this site and of others, in the order of the request. Points that
// another site does not answer for are stale, without a value.
func (n *Node) readBoth(ctx context.Context, p agents.Principal, o OtherSites, r agents.ReadRequest) (out agents.Readings, err error) {
	here, there := split(r.Points)
	order := r.Points
	if len(order) == 0 {
		all, err := n.Offer(ctx, p)
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
		answer, err := n.readHere(p, q)
		if err != nil {
			return out, err
		}
		for _, reading := range answer.Readings {
			found[reading.Point] = reading
		}
	}
	if len(there) > 0 {
		c := call{who: p, ask: agents.Ask{Op: agents.OpRead, Points: there, Effect: agents.Reads}, terms: r.Terms, args: none}
		if err := n.beginElsewhere(&c); err != nil {
			return out, err
		}
		defer c.end()
		why := "its site does not answer"
		answer, err := o.Read(ctx, p, agents.ReadRequest{Points: there, Terms: c.termsElsewhere(), Detail: r.Detail})
		if err != nil {
			why = device.AsFault(err).Msg
		}
		out.Missed = answer.Missed
		for _, address := range there {
			found[address] = agents.Reading{Point: address, Quality: device.Stale, Why: why}
		}
		for _, reading := range answer.Readings {
			if _, asked := found[reading.Point]; asked {
				found[reading.Point] = reading
			}
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
