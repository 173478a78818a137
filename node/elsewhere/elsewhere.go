// Package elsewhere presents a site and other ones as one Site to the site's hosted agents. The points of
// other sites are called site/device/point. The node decides about each call, and journals it; another
// site decides about those that are for it once more.
package elsewhere

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node"
)

// Others are other sites as one hosted agent has them: one Site whose points are called
// site/device/point. Offer does not block, and Watch tells that a site does not answer.
type Others interface {
	agents.Site
	// Away returns why a site does not answer now, and nil where it may.
	Away(site string) error
}

// Site is a site and others as the site's hosted agents have them. It is safe for concurrent use.
type Site struct {
	node   *node.Node
	kind   string
	of     func(principal string) Others
	joined sync.Map // by principal, *joinedOffer
}

var _ agents.Site = (*Site)(nil)

// New returns a site with others. of returns those of an agent, by its principal; nil for none. The
// permission of the principal kind:site bounds all agents together on a site.
func New(n *node.Node, kind string, of func(principal string) Others) *Site {
	return &Site{node: n, kind: kind, of: of}
}

// isFar reports whether an address is that of another site's point.
func isFar(address string) bool { return strings.Count(address, "/") > 1 }

// others returns the other sites of p, if an address is that of a point there; nil otherwise.
func (s *Site) others(p agents.Principal, address string) Others {
	if !isFar(address) {
		return nil
	}
	return s.of(p.ID)
}

// call returns a call on other sites, for which all agents together there need a permission, too.
func (s *Site) call(ask agents.Ask, terms agents.Terms, args any) node.Call {
	return node.Call{Ask: ask, Terms: terms, Args: args, Outside: node.Outside{With: s.with(ask)}}
}

// with returns the part of an ask for each site that it names, as the principal of all agents there.
func (s *Site) with(ask agents.Ask) (all []node.Part) {
	for _, address := range ask.Points {
		who := principal.Agent(s.kind, siteOf(address))
		i := slices.IndexFunc(all, func(p node.Part) bool { return p.Who == who })
		if i < 0 {
			part := node.Part{Who: who, Ask: ask}
			part.Ask.Points = nil
			i, all = len(all), append(all, part)
		}
		all[i].Ask.Points = append(all[i].Ask.Points, address)
	}
	return all
}

func siteOf(address string) string {
	site, _, _ := strings.Cut(address, "/")
	return site
}

// sees returns why p, or all agents together, have no permission for an operation on another site's point.
func (s *Site) sees(p agents.Principal, of agents.Operation, address string, v device.Value) error {
	ask := agents.Ask{Op: of, Points: []string{address}, Effect: agents.Reads, Value: v}
	return s.node.Sees(p, ask, s.with(ask))
}

// History implements agents.Site.
func (s *Site) History(
	ctx context.Context, p agents.Principal, r agents.HistoryRequest,
) (out agents.History, err error) {
	there := s.others(p, r.Point)
	if there == nil {
		return s.node.History(ctx, p, r)
	}
	ask := agents.Ask{Op: agents.OpHistory, Points: []string{r.Point}, Effect: agents.Reads}
	c := s.call(ask, r.Terms, r)
	if _, err := s.node.Begin(ctx, p, &c); err != nil {
		return out, err
	}
	defer c.End()
	r.Terms = c.There()
	return there.History(ctx, p, r)
}

// Why implements agents.Site.
func (s *Site) Why(ctx context.Context, p agents.Principal, r agents.WhyRequest) (out agents.Why, err error) {
	there := s.others(p, r.Point)
	if there == nil {
		return s.node.Why(ctx, p, r)
	}
	c := s.call(agents.Ask{Op: agents.OpWhy, Points: []string{r.Point}, Effect: agents.Reads}, r.Terms, r)
	if _, err := s.node.Begin(ctx, p, &c); err != nil {
		return out, err
	}
	defer c.End()
	r.Terms = c.There()
	return there.Why(ctx, p, r)
}

// Show implements agents.Site.
func (s *Site) Show(ctx context.Context, p agents.Principal, r agents.ShowRequest) error {
	there := s.others(p, r.Display)
	if there == nil {
		return s.node.Show(ctx, p, r)
	}
	c := s.call(agents.Ask{Op: agents.OpShow, Points: []string{r.Display}}, r.Terms, r)
	if _, err := s.node.Begin(ctx, p, &c); err != nil {
		return err
	}
	defer c.End()
	r.Terms = c.There()
	return there.Show(ctx, p, r)
}

// Capture implements agents.Site.
func (s *Site) Capture(
	ctx context.Context, p agents.Principal, r agents.CaptureRequest,
) (out agents.Picture, err error) {
	there := s.others(p, r.Camera)
	if there == nil {
		return s.node.Capture(ctx, p, r)
	}
	ask := agents.Ask{Op: agents.OpCapture, Points: []string{r.Camera}, Effect: agents.Reads}
	c := s.call(ask, r.Terms, r)
	if _, err := s.node.Begin(ctx, p, &c); err != nil {
		return out, err
	}
	defer c.End()
	r.Terms = c.There()
	return there.Capture(ctx, p, r)
}

// Move implements agents.Site. The guard of an output's site decides about its move; the request is
// journalled here, too.
func (s *Site) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (out agents.Output, err error) {
	there := s.others(p, r.Output)
	if there == nil {
		return s.node.Move(ctx, p, r)
	}
	c := node.MoveOf(r)
	c.With, c.Back = s.with(c.Ask), direct{of: s}
	c.Wrong, c.Away = agents.CheckNumber("for_seconds", r.For), there.Away(siteOf(r.Output))
	if earlier, err := s.node.Begin(ctx, p, &c); earlier != nil || err != nil {
		return node.Replayed[agents.Output](earlier, err)
	}
	defer c.End()
	r.For, r.Terms = c.For(r.For), c.There()
	out, err = there.Move(ctx, p, r) // the other site completes what it has begun
	return out, c.Done(out, err)
}

// direct moves outputs of other sites that the node itself returns to safe.
type direct struct{ of *Site }

func (d direct) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	there := d.of.others(p, r.Output)
	if there == nil {
		return agents.Output{}, device.Faultf(device.Offline, "the agent has no connection to other sites")
	}
	return there.Move(ctx, p, r)
}

// MovedBefore is node.MovedBefore for an output of another site.
func (s *Site) MovedBefore(
	agent, asker agents.Principal, output string, v device.Value, approved bool, left time.Duration,
) error {
	return s.node.MovedBefore(agent, asker, output, v, approved, left, direct{of: s})
}

// Ask is node.Ask from a hosted agent to an agent of another site, SITE/AGENT. there are the terms for the
// other site. again repeats a request with an unknown outcome: it is charged nothing, and needs no owner;
// of such tries the journal has the one that is answered.
func (s *Site) Ask(
	ctx context.Context, p agents.Principal, agent string, args any, t agents.Terms, again bool,
) (there agents.Terms, end func(result any, err error), err error) {
	others := s.of(p.ID)
	site, _, ok := strings.Cut(agent, "/")
	if others == nil || !ok {
		err := device.Faultf(device.Denied, "%.60q may not be asked by you", agent)
		return t, nil, s.node.Refuse(p, agents.OpAsk.Tool(), err)
	}
	ask := agents.Ask{Op: agents.OpAsk, Points: []string{agent}}
	if again {
		ask.Effect = agents.Reads
	}
	c := s.call(ask, t, args)
	c.Away, c.Again = others.Away(site), again
	if _, err := s.node.Begin(ctx, p, &c); err != nil {
		return t, nil, err
	}
	return c.There(), func(result any, err error) {
		c.Done(result, err)
		c.End()
	}, nil
}

// Stop, Status, Try and Follow are for this site alone.

// Stop implements agents.Site.
func (s *Site) Stop(
	ctx context.Context, p agents.Principal, r agents.SiteRequest,
) (agents.Answers[agents.Stopped], error) {
	return s.node.Stop(ctx, p, r)
}

// Status implements agents.Site.
func (s *Site) Status(
	ctx context.Context, p agents.Principal, r agents.SiteRequest,
) (agents.Answers[agents.Status], error) {
	return s.node.Status(ctx, p, r)
}

// Try is node.Try.
func (s *Site) Try(ctx context.Context, p agents.Principal, r agents.MoveRequest) error {
	return s.node.Try(ctx, p, r)
}

// Follow is node.Follow.
func (s *Site) Follow(
	p agents.Principal, r agents.WatchRequest, wake func(),
) (next func() (u agents.Update, some bool, due time.Time, err error), end func(), err error) {
	return s.node.Follow(p, r, wake)
}

// joinedOffer is an offer of this site and of others together.
type joinedOffer struct {
	here, there *agents.Offer
	version     [2]uint64
	offer       *agents.Offer
}

// Offer implements agents.Site.
func (s *Site) Offer(ctx context.Context, p agents.Principal) (*agents.Offer, error) {
	here, err := s.node.Offer(ctx, p)
	others := s.of(p.ID)
	if err != nil || others == nil {
		return here, err
	}
	there, err := others.Offer(ctx, p)
	if err != nil {
		return here, nil
	}
	return s.join(p, here, there)
}

// join adds the offers of other sites to that of p here.
func (s *Site) join(p agents.Principal, here, there *agents.Offer) (*agents.Offer, error) {
	var version [2]uint64
	var err error
	if version[0], err = s.node.Version(p); err != nil {
		return nil, err
	}
	for _, part := range s.with(agents.Ask{Points: there.Read}) { // of the sites that there are
		its, err := s.node.Version(part.Who)
		if err != nil {
			return nil, err
		}
		version[1] = version[1]*31 + its
	}
	if have, ok := s.joined.Load(p.ID); ok {
		if j := have.(*joinedOffer); j.here == here && j.there == there && j.version == version {
			return j.offer, nil
		}
	}
	o := *here
	for _, t := range op.Tools {
		if t.Points == nil {
			continue
		}
		list := slices.Clip(*t.Points(here))
		for _, address := range *t.Points(there) {
			if s.sees(p, t.Of.Operation, address, t.Value) == nil {
				list = append(list, address)
			}
		}
		*t.Points(&o) = list
	}
	s.joined.Store(p.ID, &joinedOffer{here, there, version, &o})
	return &o, nil
}
