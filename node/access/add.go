package access

import (
	"fmt"
	"reflect"
	"slices"
)

// AddGrant stores a grant at an owner's request, so that its audience need not present it.
// For a revoked key, a grant that is added afterwards is valid.
func (s *Store) AddGrant(raw []byte) (*Grant, error) { return s.addGrant(raw, false) }

// ReplaceGrant is AddGrant, and revokes all other grants that the same keys passed on to the same
// audience, also older ones that the site never saw. Leases moved by one with the same permissions stay, so that a renewal ends none.
func (s *Store) ReplaceGrant(raw []byte) (*Grant, error) { return s.addGrant(raw, true) }

func (s *Store) addGrant(raw []byte, replace bool) (*Grant, error) {
	g, err := ParseGrant(raw)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	have := slices.Clone(s.credentials[g.Audience().String()])
	s.mu.Unlock()
	i := find(have, g)
	stored := i >= 0 && !have[i].presented
	if stored && !replace {
		return g, nil
	}
	have = slices.DeleteFunc(have, func(c credential) bool { return !replace || !c.replacedBy(g) })
	err = s.change(func(f *storeFile) error {
		if err := s.accepts(f, g, g.ID()); err != nil {
			return err
		}
		for _, c := range have {
			f.revoke(Revocation{Block: c.grant.ID()})
		}
		now := s.bound()
		f.Grants = slices.DeleteFunc(f.Grants, func(raw []byte) bool {
			have, err := ParseGrant(raw)
			return err != nil || have.Expired(now)
		})
		if stored {
			return nil
		}
		if len(f.Grants) >= maxGrants {
			return denied("%d grants are stored here, which is the maximum: revoke one first", len(f.Grants))
		}
		f.Grants = append(f.Grants, g.Bytes())
		return nil
	})
	if err != nil || !replace {
		return g, err
	}
	s.mu.Lock()
	marked := s.mark(g, g.Blocks[len(g.Blocks)-1].Issued)
	for _, c := range have {
		s.passLeases(c, newCredential(g))
	}
	s.mu.Unlock()
	if len(have) > 0 || marked {
		s.OnEnd()
	}
	if !marked {
		return g, nil
	}
	if err := s.Save(); err != nil {
		return g, fmt.Errorf("it is replaced, but a restart could undo that: check the disk of the data folder, then give it again (%w)", err)
	}
	return g, nil
}

// replacedBy reports whether g is another grant along the same keys to the same audience as c's,
// which is no token's.
func (c credential) replacedBy(g *Grant) bool {
	return c.token == "" && !c.hosted && c.grant.ID() != g.ID() && c.grant.Issuer == g.Issuer &&
		slices.EqualFunc(c.grant.Blocks, g.Blocks, func(a, b Block) bool { return a.Audience == b.Audience })
}

// passLeases has the leases moved by old depend on c, if both permit the same. The caller holds the
// lock.
func (s *Store) passLeases(old, c credential) {
	if !slices.EqualFunc(old.grant.Blocks, c.grant.Blocks, func(a, b Block) bool { return reflect.DeepEqual(a.Permissions, b.Permissions) }) {
		return
	}
	for _, by := range s.leases {
		for i := range by {
			if by[i].grant.ID() == old.grant.ID() {
				by[i] = c
			}
		}
	}
}
