package access

import (
	"fmt"
	"slices"
	"time"

	"agentsite/agents"
)

// May decides: what p may do of what it asks, or why not, as a *Denied. It holds the
// ask against what is kept for p and against the grants that p brought along, and
// counts nothing.
func (b *Book) May(p agents.Principal, ask agents.Ask, brought ...*Grant) (agents.Limits, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, _, err := b.may(p, ask, brought)
	return l, err
}

// Take is May just before the call is made, and counts it. What acts is counted for
// good before Take returns; where that cannot be kept, the error is no *Denied.
func (b *Book) Take(p agents.Principal, ask agents.Ask, brought ...*Grant) (agents.Limits, error) {
	b.mu.Lock()
	l, charges, err := b.may(p, ask, brought)
	if err == nil {
		b.meter.take(b.ran(), charges)
	}
	b.mu.Unlock()
	if err != nil || len(charges) == 0 || ask.Effect != agents.Acts {
		return l, err // a read that a crash forgets harms nobody
	}
	if err := b.Save(); err != nil {
		return agents.Limits{}, fmt.Errorf("this call could not be counted, and so is not made: %w", err)
	}
	return l, nil
}

// Sees reports whether p has a permission for what it asks, whatever limits and rates
// leave of that: it is for what p is shown, and for what p may go on holding.
func (b *Book) Sees(p agents.Principal, ask agents.Ask, brought ...*Grant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return p.Owner || slices.ContainsFunc(b.holds(p, brought), func(h holding) bool {
		if b.counts(h, agents.Returns) != nil {
			return false
		}
		var few [8]part
		_, err := h.grant.deciding(ask, few[:0])
		return err == nil
	})
}

// holds lists all that p has.
func (b *Book) holds(p agents.Principal, brought []*Grant) []holding {
	all := slices.Clip(b.held[p.ID])
	for _, g := range brought {
		if g.Audience().String() == p.ID {
			all = append(all, holding{grant: g})
		}
	}
	return all
}

func (b *Book) may(p agents.Principal, ask agents.Ask, brought []*Grant) (agents.Limits, []charge, error) {
	if p.Owner {
		return agents.Limits{}, nil, nil
	}
	var why *Denied
	for _, h := range b.holds(p, brought) {
		l, charges, err := b.grants(h, ask)
		if err == nil {
			return l, charges, nil
		}
		if d, ok := err.(*Denied); ok && (why == nil || why.Retry == 0) {
			why = d // what to wait for is worth more than what is missing
		}
	}
	if why == nil {
		why = lacks(ask.Tool, first(ask.Points))
	}
	return agents.Limits{}, nil, why
}

func first(points []string) string {
	if len(points) == 0 {
		return ""
	}
	return points[0]
}

// grants decides by one grant.
func (b *Book) grants(h holding, ask agents.Ask) (l agents.Limits, charges []charge, err error) {
	if err := b.counts(h, ask.Effect); err != nil {
		return l, nil, err
	}
	if l, charges, err = h.grant.allow(ask); err != nil {
		return l, nil, err
	}
	return l, charges, b.meter.fits(b.ran(), charges)
}

// counts reports why a grant does not count here and now.
func (b *Book) counts(h holding, effect agents.Effect) error {
	if err := b.kept.accepts(b.Site, h.grant); err != nil {
		return err
	}
	if slices.ContainsFunc(b.ended, func(r Revocation) bool { return r.covers(h) }) {
		return errRevoked
	}
	return b.inTime(h, effect)
}

// inTime holds a grant against the time. Where only the earliest that it can be is
// known, what acts is refused until a time, since that may be past.
func (b *Book) inTime(h holding, effect agents.Effect) error {
	now, sure := b.now()
	until := h.until
	for _, block := range h.grant.Blocks {
		if block.From != 0 && block.From > now.Unix() {
			return denied("your grant begins at %s; it is %s here", when(block.From), when(now.Unix()))
		}
		if block.Until != 0 && (until == 0 || block.Until < until) {
			until = block.Until
		}
	}
	switch {
	case until == 0:
		return nil
	case until <= now.Unix():
		return denied("your permission ended at %s: ask an owner for another", when(until))
	case !sure && (effect == agents.Acts || effect == agents.Reads && b.StrictReads):
		return denied("your permission ends at %s, and this site does not know the time yet: connect it to a network, or have an owner run any agentsite command for it with --site, or agentsite clock --set on its own machine", when(until))
	}
	return nil
}

func when(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }
