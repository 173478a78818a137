package access

import (
	"fmt"
	"slices"

	"agentsite/node/identity"
)

// Revocation says what is revoked: a token by its name, a block of a grant with all
// that was passed on from it, or a key with all that it holds, issued and passed on.
//
// It is for good: no grant of a revoked key from before counts again, whether the site saw
// it or not. What an owner deposits for the key afterwards does.
type Revocation struct {
	Token string
	Block Hash
	Key   identity.ID
}

var errRevoked = denied("your permission was revoked; an owner can grant you another")

func (r Revocation) covers(h credential) bool {
	return r.Token != "" && r.Token == h.token || slices.Contains(h.grant.ids, r.Block) || h.grant.Issuer == r.Key ||
		slices.ContainsFunc(h.grant.Blocks, func(b Block) bool { return b.Audience == r.Key })
}

// revoke notes a revocation, and forgets what it covers.
func (k *storeFile) revoke(r Revocation) {
	if r.Block != (Hash{}) && !slices.Contains(k.Blocks, r.Block) {
		k.Blocks = append(k.Blocks, r.Block)
	}
	if r.Key != (identity.ID{}) && !slices.Contains(k.Keys, r.Key) {
		k.Keys = append(k.Keys, r.Key)
	}
	gone := func(raw []byte, token string) bool {
		g, err := ParseGrant(raw)
		return err == nil && r.covers(credential{grant: g, token: token})
	}
	k.Grants = slices.DeleteFunc(k.Grants, func(raw []byte) bool { return gone(raw, "") })
	k.Tokens = slices.DeleteFunc(k.Tokens, func(t Token) bool { return gone(t.Grant, t.Name) })
}

// Revoke ends permissions at once, before anything is kept and also where that fails;
// then the error says that a start would forget it. An owner's key is not revoked but
// removed, or its holder would go on owning the site.
func (b *Store) Revoke(r Revocation) error {
	b.mu.Lock()
	if b.kept.owns(r.Key) {
		b.mu.Unlock()
		return fmt.Errorf("%v is an owner of this site: agentsite owners remove ends that, and all that it granted", r.Key)
	}
	b.ended = append(b.ended, r)
	b.mu.Unlock()
	b.OnEnd()
	err := b.change(func(k *storeFile) error {
		k.revoke(r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("it is revoked, but a start would forget that: look after the data folder, then revoke it again (%w)", err)
	}
	b.mu.Lock()
	b.ended = slices.DeleteFunc(b.ended, func(e Revocation) bool { return e == r })
	b.mu.Unlock()
	return nil
}
