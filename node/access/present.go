package access

import (
	"maps"
	"slices"

	"agentsite/agents"
	"agentsite/node/identity"
)

// Presented grants are kept in memory alone, since their holders bring them along again:
// whoever may pass a grant on can make as many as they like. So many are kept of those
// that were passed on from one whom an owner granted something, and of all. There one that
// was passed on more often gives way to one that was less, and what is held by it ends.
const (
	maxPresented      = 8
	maxPresentedOfAll = 256
)

// Present keeps a grant that its holder brings along, until it ends or the process does.
func (b *Store) Present(holder identity.ID, raw []byte) (*Grant, error) {
	g, err := ParseGrant(raw)
	switch {
	case err != nil:
		return nil, err
	case g.Audience() != holder:
		return nil, denied("this grant is for %v, and you are %v", g.Audience(), holder)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := newHolding(g)
	if find(b.held[h.who], g) >= 0 {
		return g, nil
	}
	if err := b.counts(h, agents.Returns); err != nil {
		return nil, err
	}
	all := b.presented()
	ofRoot, last := 0, h // the one of these that was passed on most often
	for _, have := range all {
		if have.root == h.root {
			ofRoot++
			if len(have.grant.Blocks) > len(last.grant.Blocks) {
				last = have
			}
		}
	}
	full := ofRoot >= maxPresented || len(all) >= maxPresentedOfAll
	switch {
	case full && last != h: // nobody is shut out by those to whom it passed its grant on
		isLast := func(have credential) bool { return have == last }
		b.held[last.who] = slices.DeleteFunc(slices.Clone(b.held[last.who]), isLast)
		maps.DeleteFunc(b.leases, func(_ lease, by []credential) bool { return slices.ContainsFunc(by, isLast) })
		b.dropped = true
	case full:
		return nil, denied("%d grants that others brought along are in use here, %d of them passed on by the same one as yours, which is as many as there can be: wait until one ends, or have the owner grant it to you", len(all), ofRoot)
	}
	h.presented = true
	b.held[h.who] = append(b.held[h.who], h)
	b.poke()
	return g, nil
}

// presented are the grants that their holders brought along and that still count; the
// others are dropped, of which Keep is told. The lock is held.
func (b *Store) presented() (all []credential) {
	for who, held := range b.held {
		held = slices.DeleteFunc(slices.Clone(held), func(h credential) bool {
			over := h.presented && b.over(h)
			b.dropped = b.dropped || over
			return over
		})
		if b.held[who] = held; len(held) == 0 {
			delete(b.held, who)
		}
		for _, h := range held {
			if h.presented {
				all = append(all, h)
			}
		}
	}
	return all
}

// Root is the ID of whom p has its permission from, after the owner: its own, or that of
// who passed on to it what an owner granted. Where p has several, its own goes before
// others', and these in their order.
func (b *Store) Root(p agents.Principal) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	root := ""
	for _, h := range b.held[p.ID] {
		if b.over(h) {
			continue
		}
		if h.root == p.ID {
			return p.ID
		}
		if root == "" || h.root < root {
			root = h.root
		}
	}
	if root == "" {
		return p.ID
	}
	return root
}

// Account is whom a key is counted for wherever something is bounded: an owner's its own,
// others with their Root, and "" is for a key that has no permission here.
func (b *Store) Account(id identity.ID) string {
	p := agents.Principal{ID: id.String()}
	switch {
	case slices.ContainsFunc(b.Owners(), func(o Owner) bool { return o.ID == id }):
		return p.ID
	case b.Standing(p) == 0:
		return ""
	}
	return b.Root(p)
}
