package node

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// Sample is a point with its latest reading, for metrics.
type Sample struct {
	Address string
	Point   *device.Point // not to be changed
	Value   device.Value  // zero where nothing is known
	Quality device.Quality
	Good    time.Time     // of the last good reading of a point that is read at an interval, by the site's clock
	Away    bool          // an output that is not known to be at its safe value
	Left    time.Duration // of its lease
}

// Samples returns the points that p may read without an owner's confirmation, in the order of the
// configuration. It is decided and charged as Read that names all of them, or each, where no grant of p
// allows all.
func (n *Node) Samples(_ context.Context, p agents.Principal) (all []Sample, err error) {
	if err := known(p); err != nil {
		return nil, err
	}
	v, _ := n.seenBy(p)
	points := v.offer().Read
	ask := agents.Ask{Op: agents.OpRead, Points: points, Effect: agents.Reads}
	if err := n.May(p, ask); err != nil && device.AsFault(err).Kind == device.Denied {
		for i := range points {
			if ask.Points = points[i : i+1]; n.May(p, ask) == nil {
				if all, err = n.sample(p, ask, all); err != nil {
					return nil, err
				}
			}
		}
		if len(all) > 0 {
			return all, nil
		}
		ask.Points = points // refused below
	}
	return n.sample(p, ask, make([]Sample, 0, len(points)))
}

// sample appends the points that p asks for.
func (n *Node) sample(p agents.Principal, ask agents.Ask, all []Sample) ([]Sample, error) {
	c := Call{who: p, Ask: ask, Terms: agents.Terms{NoApproval: true}, Args: none}
	v := n.enter(&c)
	if err := n.begin(&c, nil); err != nil {
		return nil, err
	}
	defer c.End()
	now := v.now()
	for _, address := range ask.Points {
		of, e := v.point(address), n.hub.entry(address)
		r := of.reading(e.Reading)
		s := Sample{Address: address, Point: &of.Point, Value: r.Value, Quality: r.Quality}
		if e.period > 0 && !e.good.IsZero() {
			s.Good = now.Add(-time.Since(e.good))
		}
		if of.Kind.Output() {
			status, _ := v.Outputs.StatusOf(address)
			s.Away, s.Left = !status.Safe, status.Left
		}
		all = append(all, s)
	}
	return all, nil
}

// operations is the number of operations, and faultKinds are those by which refusals are counted.
const operations = agents.OpAsk + 1

var faultKinds = [...]device.FaultKind{
	device.Invalid, device.Denied, device.Unsafe, device.Busy, device.Offline, device.Expired,
	device.UnknownOutcome, device.Unavailable, device.Internal,
}

// Counts are the calls of a node since it was made.
type Counts struct {
	Calls           [operations]uint64 // by agents.Operation, also those that were refused
	Refused         [len(faultKinds)]Refused
	Unauthenticated uint64 // requests whose token or key is not known
	Approvals       int    // calls that wait for an owner now
}

// Refused counts the calls that were refused by a kind of fault.
type Refused struct {
	Kind  device.FaultKind
	Count uint64
}

// counts are Counts as they are counted.
type counts struct {
	calls           [operations]atomic.Uint64
	refused         [len(faultKinds)]atomic.Uint64
	unauthenticated atomic.Uint64
}

func (c *counts) refuse(kind device.FaultKind) {
	if i := slices.Index(faultKinds[:], kind); i >= 0 {
		c.refused[i].Add(1)
	}
}

// Counts returns what was asked of the site, of a principal that may read all of it.
func (n *Node) Counts(p agents.Principal) (out Counts, err error) {
	// not agents.Reads, which would do for one point
	if err := n.May(p, agents.Ask{Op: agents.OpStatus}); err != nil {
		return out, err
	}
	for op := range out.Calls {
		out.Calls[op] = n.counts.calls[op].Load()
	}
	for i, kind := range faultKinds {
		out.Refused[i] = Refused{kind, n.counts.refused[i].Load()}
	}
	out.Approvals = len(n.requests.waiting(""))
	out.Unauthenticated = n.counts.unauthenticated.Load()
	return out, nil
}
