package access

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"agentsite/agents"
)

// May decides: what p may do of what it asks, or why not, as a *Denied. It holds the
// ask against what is kept for p and against the grants that p brought along, and
// counts nothing.
func (b *Store) May(p agents.Principal, ask agents.Ask, brought ...*Grant) (agents.Limits, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, l, _, err := b.may(p, ask, brought)
	return l, err
}

// Take decides as May does, just before the call is made, and charges the grant that
// decided: both under one lock, so that the limits returned are that grant's. Where it
// has an owner confirm the call and nobody did yet, it charges nothing; the limits say
// so, and the caller asks the owner and then calls Take again. What acts is counted for
// good before Take returns; where that cannot be kept, the error is no *Denied.
func (b *Store) Take(p agents.Principal, ask agents.Ask, confirmed bool, brought ...*Grant) (agents.Limits, error) {
	b.mu.Lock()
	h, l, charges, err := b.may(p, ask, brought)
	switch {
	case err != nil:
	case l.Confirm && !confirmed:
		charges = nil
	default:
		b.meter.take(b.ran(), charges)
		b.note(h, ask)
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
// leave of that: it is for what p is shown.
func (b *Store) Sees(p agents.Principal, ask agents.Ask, brought ...*Grant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOwner(p) || slices.ContainsFunc(b.holds(p, brought), func(h credential) bool {
		if b.over(h) {
			return false
		}
		var few [8]part
		_, err := h.grant.deciding(ask, few[:0])
		return err == nil
	})
}

// lease is an output that somebody moved away from safe.
type lease struct{ who, output string }

// maxLeases is how many are noted before those are looked for whose permission has ended.
const maxLeases = 1024

// note keeps by which grants something was moved: also by those of before that still count,
// since nothing may come of the call.
func (b *Store) note(h credential, ask agents.Ask) {
	if h.grant == nil || ask.Effect != agents.Acts {
		return
	}
	if len(b.leases) >= maxLeases {
		maps.DeleteFunc(b.leases, func(_ lease, by []credential) bool { return slices.ContainsFunc(by, b.over) })
	}
	for _, point := range ask.Points {
		l := lease{h.who, point}
		by := slices.DeleteFunc(b.leases[l], func(have credential) bool { return have.grant == h.grant || b.over(have) })
		b.leases[l] = append(by, h)
	}
}

// Holds reports whether a principal may go on holding an output away from safe: an owner
// may, and whoever moved it by grants that all still count. Another grant does not do, whose
// conditions were not held against the move.
func (b *Store) Holds(who, output string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owned(who) {
		return true
	}
	by := b.leases[lease{who, output}]
	return by != nil && !slices.ContainsFunc(by, b.over)
}

// holds lists all that p has.
func (b *Store) holds(p agents.Principal, brought []*Grant) []credential {
	all := slices.Clip(b.held[p.ID])
	for _, g := range brought {
		if g.Audience().String() == p.ID {
			all = append(all, credential{who: p.ID, grant: g})
		}
	}
	return all
}

func (b *Store) may(p agents.Principal, ask agents.Ask, brought []*Grant) (decided credential, l agents.Limits, charges []charge, err error) {
	if b.isOwner(p) {
		return credential{}, agents.Limits{}, nil, nil
	}
	var why *Denied
	for _, h := range b.holds(p, brought) {
		l, charges, err := b.grants(h, ask)
		if err == nil {
			return h, l, charges, nil
		}
		if d, ok := err.(*Denied); ok && (why == nil || why.Retry == 0) {
			why = d // what to wait for is worth more than what is missing
		}
	}
	if why == nil {
		why = lacks(ask.Tool, first(ask.Points))
	}
	return credential{}, agents.Limits{}, nil, why
}

func first(points []string) string {
	if len(points) == 0 {
		return ""
	}
	return points[0]
}

// grants decides by one grant.
func (b *Store) grants(h credential, ask agents.Ask) (l agents.Limits, charges []charge, err error) {
	if err := b.counts(h, ask.Effect); err != nil {
		return l, nil, err
	}
	if l, charges, err = h.grant.allow(ask); err != nil {
		return l, nil, err
	}
	return l, charges, b.meter.fits(b.ran(), charges)
}

// counts reports why a grant does not count here and now.
func (b *Store) counts(h credential, effect agents.Effect) error {
	if err := b.accepts(&b.kept, h.grant, Hash{}); err != nil {
		return err
	}
	if slices.ContainsFunc(b.ended, func(r Revocation) bool { return r.covers(h) }) {
		return errRevoked
	}
	return b.inTime(h, effect)
}

// over reports whether a grant counts for nothing, not even for a return to safe.
func (b *Store) over(h credential) bool { return b.counts(h, agents.Returns) != nil }

// inTime holds a grant against the time. Where only the earliest that it can be is
// known, what acts is refused until a time, since that may be past.
func (b *Store) inTime(h credential, effect agents.Effect) error {
	now, sure := b.now()
	for _, block := range h.grant.Blocks {
		if block.From != 0 && block.From > now.Unix() {
			return denied("your grant begins at %s; it is %s here", when(block.From), when(now.Unix()))
		}
	}
	switch until := h.ends(); {
	case until == 0:
		return nil
	case until <= now.Unix():
		return denied("your permission ended at %s: ask an owner for another", when(until))
	case sure || b.LastKnown || effect != agents.Acts:
		return nil
	case b.clock.off != 0:
		return denied("your permission ends at %s, and this site does not know the time: its machine's clock is at %s, too far from %s, when it last knew it, to be believed. %s", when(until), when(now.Add(b.clock.off).Unix()), when(now.Unix()), tellTime)
	default:
		return denied("your permission ends at %s, and this site does not know the time yet: connect it to a network. %s", when(until), tellTime)
	}
}

const tellTime = "Or have an owner run any agentsite command for it with --site, or agentsite clock --set on its own machine, or write clock: last-known in its configuration"

func when(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }
