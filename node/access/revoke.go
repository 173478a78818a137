package access

import (
	"fmt"
	"slices"

	"agentsite/node/identity"
)

// Revocation names a token, a block of a grant with all its delegations, or a key with all grants
// that it holds, issued and delegated.
//
// It is permanent: no earlier grant of a revoked key is valid again, whether the site saw it
// or not. A grant that an owner adds for the key afterwards is.
type Revocation struct {
	Token string
	Block Hash
	Key   identity.ID
}

var errRevoked = denied("your permission was revoked; an owner can grant you another")

func (r Revocation) covers(c credential) bool {
	return r.Token != "" && r.Token == c.token || slices.Contains(c.grant.ids, r.Block) || c.grant.Issuer == r.Key ||
		slices.ContainsFunc(c.grant.Blocks, func(b Block) bool { return b.Audience == r.Key })
}

// revoke records a revocation and removes the grants and tokens that it covers.
func (f *storeFile) revoke(r Revocation) {
	if r.Block != (Hash{}) && !slices.Contains(f.Blocks, r.Block) {
		f.Blocks = append(f.Blocks, r.Block)
	}
	if r.Key != (identity.ID{}) && !slices.Contains(f.Keys, r.Key) {
		f.Keys = append(f.Keys, r.Key)
	}
	covered := func(raw []byte, token string) bool {
		g, err := ParseGrant(raw)
		return err == nil && r.covers(credential{grant: g, token: token})
	}
	f.Grants = slices.DeleteFunc(f.Grants, func(raw []byte) bool { return covered(raw, "") })
	f.Tokens = slices.DeleteFunc(f.Tokens, func(t Token) bool { return covered(t.Grant, t.Name) })
}

// Revoke ends permissions at once, before it stores that and also where that fails; then the
// error says that a restart would undo it. It refuses an owner's key, which RemoveOwner
// revokes, because its holder would still own the site.
func (s *Store) Revoke(r Revocation) error {
	s.mu.Lock()
	if s.file.owns(r.Key) {
		s.mu.Unlock()
		return fmt.Errorf("%v is an owner of this site: agentsite owners remove removes it, and ends all its grants", r.Key)
	}
	s.revoking = append(s.revoking, r)
	s.mu.Unlock()
	s.OnEnd()
	if err := s.storeRevoked(); err != nil {
		return fmt.Errorf("it is revoked, but a restart would undo that: check the disk of the data folder, then revoke it again (%w)", err)
	}
	return nil
}

// storeRevoked stores the revocations that are not stored yet, as each change does.
func (s *Store) storeRevoked() error {
	s.mu.Lock()
	all := len(s.revoking)
	s.mu.Unlock()
	if all == 0 {
		return nil
	}
	return s.change(func(*storeFile) error { return nil })
}
