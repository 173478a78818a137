package access

import (
	"agentsite/agents"
)

// bring adds grants that a principal has to a store, until undo.
func bring(b *Store, p agents.Principal, grants []*Grant) (undo func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.credentials[p.ID]
	all := before[:len(before):len(before)]
	for _, g := range grants {
		if g.Audience().String() == p.ID {
			all = append(all, newCredential(g))
		}
	}
	b.credentials[p.ID] = all
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.credentials[p.ID] = before
	}
}

func may(b *Store, p agents.Principal, ask agents.Ask, grants ...*Grant) (agents.Limits, error) {
	defer bring(b, p, grants)()
	return b.May(p, ask)
}

func take(b *Store, p agents.Principal, ask agents.Ask, grants ...*Grant) (agents.Limits, error) {
	defer bring(b, p, grants)()
	return b.Take(p, ask, false)
}

func sees(b *Store, p agents.Principal, ask agents.Ask, grants ...*Grant) bool {
	defer bring(b, p, grants)()
	return b.CanSee(p, ask)
}
