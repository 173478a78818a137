package access

import (
	"maps"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/node/identity"
)

// Presented grants are only in memory, because their holders present them again. A holder that may
// delegate a grant can make any number of them. These are the limits for those that descend from
// one grantee of an owner, and for all. At the first limit, the holder's own oldest grant is
// evicted for its newer one. A grant that was delegated more often is evicted for one delegated
// less. The leases of an evicted grant end.
const (
	maxPresentedPerRoot = 8
	maxPresented        = 256
)

// maxAheadIssued limits the time by which a signer's clock is ahead. Until its time of signature comes, no
// newer grant would replace a grant.
const maxAheadIssued = 24 * time.Hour

// Present adds a grant that its holder presents, until it expires or the process ends. It takes the
// place of those that the same keys passed on to the holder before, which are refused from then on.
func (s *Store) Present(holder identity.ID, raw []byte) (*Grant, error) {
	g, err := ParseGrant(raw)
	switch {
	case err != nil:
		return nil, err
	case g.Audience() != holder:
		return nil, denied("this grant is for %v, and you are %v", g.Audience(), holder)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := newCredential(g)
	if err := s.checkValid(c, agents.Returns); err != nil {
		return nil, err
	}
	now, sure := s.now()
	for _, b := range g.Blocks {
		if sure && b.Issued > now.Add(maxAheadIssued).UnixNano() {
			return nil, denied("your grant was signed at %s, and it is %s here: have its issuer set their clock and give another",
				formatTime(b.Issued/1e9), formatTime(now.Unix()))
		}
	}
	if find(s.credentials[c.principal], g) >= 0 {
		return g, nil
	}
	c.presented = true
	for _, old := range s.credentials[c.principal] {
		if old.presented && old.replacedBy(g) {
			s.passLeases(old, c)
			s.evict(old)
		}
	}
	if s.mark(g, g.Blocks[len(g.Blocks)-1].Issued) {
		s.dropped = true // for Run to save it soon
	}
	all := s.presented()
	ofRoot, longest := 0, c // of the same root; the grant that was delegated most often
	for _, have := range all {
		if have.root == c.root {
			ofRoot++
			if len(have.grant.Blocks) > len(longest.grant.Blocks) {
				longest = have
			}
		}
	}
	full := ofRoot >= maxPresentedPerRoot || len(all) >= maxPresented
	own := slices.IndexFunc(s.credentials[c.principal], func(have credential) bool { return have.presented && have.root == c.root })
	switch {
	case full && own >= 0: // the newer one is for the older
		s.evict(s.credentials[c.principal][own])
	case full && longest != c: // no holder is shut out by those that it passed its grant on to
		s.evict(longest)
	case full:
		return nil, denied("%d presented grants are in use here, %d of them passed on by the same holder as yours, which is the maximum: wait until one expires, or have the owner grant it to you", len(all), ofRoot)
	}
	s.credentials[c.principal] = append(s.credentials[c.principal], c)
	s.wake()
	return g, nil
}

// Withdraw ends all grants that their holder presented, for good, and reports whether there were any.
func (s *Store) Withdraw(holder identity.ID) (any bool) {
	s.mu.Lock()
	for _, c := range s.credentials[holder.String()] {
		if c.presented {
			s.evict(c)
			s.mark(c.grant, c.grant.Blocks[len(c.grant.Blocks)-1].Issued+1)
			any = true
		}
	}
	s.mu.Unlock()
	if any {
		s.OnEnd()
	}
	return any
}

// evict drops a presented grant, and the leases held by it, for Run to notice. The caller holds the
// lock.
func (s *Store) evict(c credential) {
	evicted := func(have credential) bool { return have == c }
	s.credentials[c.principal] = slices.DeleteFunc(slices.Clone(s.credentials[c.principal]), evicted)
	maps.DeleteFunc(s.leases, func(_ lease, by []credential) bool { return slices.ContainsFunc(by, evicted) })
	s.dropped = true
}

// presented returns the presented credentials that are still valid, and drops the others, for
// Run to notice. The caller holds the lock.
func (s *Store) presented() (all []credential) {
	for principal, have := range s.credentials {
		have = slices.DeleteFunc(slices.Clone(have), func(c credential) bool {
			drop := c.presented && s.invalid(c)
			s.dropped = s.dropped || drop
			return drop
		})
		if s.credentials[principal] = have; len(have) == 0 {
			delete(s.credentials, principal)
		}
		for _, c := range have {
			if c.presented {
				all = append(all, c)
			}
		}
	}
	return all
}

// Root returns the ID of the owner's grantee from which the permission of p descends: p itself, or
// the principal that delegated it to p. Of several, p itself comes first, and the others in their
// order.
func (s *Store) Root(p agents.Principal) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.root(p)
}

func (s *Store) root(p agents.Principal) string {
	root := ""
	for _, c := range s.credentialsOf(p) {
		if s.invalid(c) {
			continue
		}
		if c.root == p.ID {
			return p.ID
		}
		if root == "" || c.root < root {
			root = c.root
		}
	}
	if root == "" {
		return p.ID
	}
	return root
}

// PassedOn reports whether a principal has a permission that another one passed on to it, also by others.
func (s *Store) PassedOn(from, to string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.credentialsOf(agents.Principal{ID: to}), func(c credential) bool {
		passed := c.grant.Blocks[:len(c.grant.Blocks)-1]
		return !s.invalid(c) && slices.ContainsFunc(passed, func(b Block) bool { return b.Audience.String() == from })
	})
}

// Account returns the account that a key's quotas are counted under: an owner's own, the Root of
// another, and "" for a key without a permission.
func (s *Store) Account(id identity.ID) string {
	p := agents.Principal{Kind: principal.Key, ID: id.String()}
	switch {
	case s.Owns(p.ID):
		return p.ID
	case s.Version(p) == 0:
		return ""
	}
	return s.Root(p)
}
