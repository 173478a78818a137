package access

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node/identity"
)

// Peer returns the principal of a proven key, a peer ID or did:key, that belongs to an owner
// or has a permission.
func (s *Store) Peer(text string) (agents.Principal, error) {
	id, err := identity.Parse(text)
	if err != nil {
		return agents.Principal{}, denied("%v", err)
	}
	account := s.Account(id)
	if account == "" {
		return agents.Principal{}, denied("your key, %v, has no permission here: an owner can grant one", id)
	}
	return agents.Principal{Kind: principal.Key, ID: id.String(), Owner: s.Owns(id.String()), Account: account}, nil
}

// May decides about an ask of p. It counts nothing and waits for no disk.
func (s *Store) May(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, l, _, err := s.decide(p, ask)
	return l, err
}

// Take decides as May does, just before the call is made, and charges the grant that decided. Both
// happen under one lock, so that the returned limits are that grant's. If the grant requires an
// owner's confirmation and confirmed is false, it charges nothing, and the limits say so. The
// caller asks the owner and calls Take again. A call that acts is counted durably before Take
// returns; where that fails, the error is Unavailable.
func (s *Store) Take(p agents.Principal, ask agents.Ask, confirmed bool) (agents.Limits, error) {
	s.mu.Lock()
	c, l, charges, err := s.decide(p, ask)
	switch {
	case err != nil:
	case l.Confirm && !confirmed:
		charges = nil
	default:
		s.counter.take(s.uptime(), charges)
		s.recordMove(c, ask)
	}
	s.mu.Unlock()
	if err != nil || len(charges) == 0 || ask.Effect != agents.Acts {
		return l, err // losing the count of a read in a crash does no harm
	}
	if err := s.Save(); err != nil {
		slog.Error("call not counted", "err", err)
		return agents.Limits{}, device.Faultf(device.Unavailable, "this call counts against a rate, and the site's disk does not store that, so the call is not made; ask an owner to check the disk. A return to safe and the emergency stop work")
	}
	return l, nil
}

// MayRenew decides whether p may extend its lease, and charges nothing. Only the grants by which p
// moved that output count, and the end of any of them ends the lease. Another grant's longest lease
// is not available without its charge. Rates do not count.
func (s *Store) MayRenew(p agents.Principal, ask agents.Ask) (l agents.Limits, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOwner(p) {
		return l, nil
	}
	err = missingPermission(ask.Name(), "")
	for _, point := range ask.Points {
		for _, c := range s.leases[lease{p.ID, point}] {
			if err = s.checkValid(c, ask.Effect); err == nil {
				l, _, err = c.grant.allow(ask)
			}
			if err == nil {
				return l, nil
			}
		}
	}
	return agents.Limits{}, err
}

// CanSee reports whether p has a permission for an ask, regardless of limits and rates. It
// decides what p is shown.
func (s *Store) CanSee(p agents.Principal, ask agents.Ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isOwner(p) || slices.ContainsFunc(s.credentialsOf(p), func(c credential) bool {
		if s.invalid(c) {
			return false
		}
		var few [8]partIndex
		_, _, ok := c.grant.findParts(ask, few[:0])
		return ok
	})
}

// lease is an output that a principal moved away from safe.
type lease struct{ principal, output string }

// maxLeases is how many are recorded before those without a valid permission are dropped.
const maxLeases = 1024

// recordMove records which grants a principal moved an output by. Earlier grants that are
// still valid stay, because the call may yet fail.
func (s *Store) recordMove(c credential, ask agents.Ask) {
	if c.grant == nil || ask.Effect != agents.Acts {
		return
	}
	if len(s.leases) >= maxLeases {
		maps.DeleteFunc(s.leases, func(_ lease, by []credential) bool { return slices.ContainsFunc(by, s.invalid) })
	}
	for _, point := range ask.Points {
		l := lease{c.principal, point}
		by := slices.DeleteFunc(s.leases[l], func(have credential) bool { return have.grant == c.grant || s.invalid(have) })
		s.leases[l] = append(by, c)
	}
}

// MayHold reports whether a principal may keep an output away from safe. Owners and principals that
// need no permission may. Any other principal may while all grants by which it moved the output are
// valid. A later grant does not help, because the move was not checked against its conditions.
func (s *Store) MayHold(holder, output string) bool {
	if !needsPermission(holder) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ownsLocked(holder) {
		return true
	}
	by := s.leases[lease{holder, output}]
	return by != nil && !slices.ContainsFunc(by, s.invalid)
}

// decide finds the first credential of p that permits the ask. Its error is a Denied fault,
// or Busy where waiting helps. The caller holds the lock.
func (s *Store) decide(p agents.Principal, ask agents.Ask) (by credential, l agents.Limits, charges []charge, err error) {
	if s.isOwner(p) {
		return credential{}, agents.Limits{}, nil, nil
	}
	var why error
	for _, c := range s.credentialsOf(p) {
		l, charges, err := s.check(c, ask)
		if err == nil {
			return c, l, charges, nil
		}
		if why == nil || device.AsFault(why).Kind != device.Busy {
			why = err // a rate limit to wait for helps more than a missing permission
		}
	}
	if why == nil {
		point := ""
		if len(ask.Points) > 0 {
			point = ask.Points[0]
		}
		why = missingPermission(ask.Name(), point)
	}
	return credential{}, agents.Limits{}, nil, why
}

// check decides by one credential.
func (s *Store) check(c credential, ask agents.Ask) (l agents.Limits, charges []charge, err error) {
	if err := s.checkValid(c, ask.Effect); err != nil {
		return l, nil, err
	}
	if l, charges, err = c.grant.allow(ask); err != nil {
		return l, nil, err
	}
	return l, charges, s.counter.check(s.uptime(), charges)
}

// checkValid refuses a credential that is not valid here and now.
func (s *Store) checkValid(c credential, effect agents.Effect) error {
	if c.hosted {
		return s.checkHosted(c)
	}
	if err := s.accepts(&s.file, c.grant, Hash{}); err != nil {
		return err
	}
	if err := s.checkMarks(c.grant); err != nil {
		return err
	}
	if slices.ContainsFunc(s.revoking, func(r Revocation) bool { return r.covers(c) }) {
		return errRevoked
	}
	return s.checkTime(c, effect)
}

// invalid reports whether a credential permits nothing, not even a return to safe.
func (s *Store) invalid(c credential) bool { return s.checkValid(c, agents.Returns) != nil }

// checkTime refuses a credential outside its time. While only a lower bound of the time is
// known, a grant that expires permits no call that acts, because it may have expired.
func (s *Store) checkTime(c credential, effect agents.Effect) error {
	now, sure := s.now()
	for _, block := range c.grant.Blocks {
		if block.From != 0 && block.From > now.Unix() {
			return denied("your grant begins at %s; it is %s here", formatTime(block.From), formatTime(now.Unix()))
		}
	}
	switch until := c.expires(); {
	case until == 0:
		return nil
	case until <= now.Unix():
		return denied("your permission ended at %s: ask an owner for another", formatTime(until))
	case sure || s.LastKnown || effect != agents.Acts:
		return nil
	case s.clock.skew != 0:
		return denied("your permission ends at %s, and this site's time is not set: its machine's clock, %s, is too far from the last known time, %s. %s", formatTime(until), formatTime(now.Add(s.clock.skew).Unix()), formatTime(now.Unix()), setTimeHint)
	default:
		return denied("your permission ends at %s, and this site's time is not set: connect it to a network. %s", formatTime(until), setTimeHint)
	}
}

const setTimeHint = "Or have an owner run agentsite clock --set, or write clock: last-known in its configuration"

func formatTime(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }
