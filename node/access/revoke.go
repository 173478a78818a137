package access

import (
	"fmt"
	"slices"

	"agentsite/node/identity"
)

// Revocation says what is revoked: a token by its name, a block of a grant with all
// that was passed on from it, or a key with all that it holds and passed on.
type Revocation struct {
	Token string
	Block Hash
	Key   identity.ID
}

var errRevoked = denied("your permission was revoked")

func (r Revocation) covers(h holding) bool {
	return r.Token != "" && r.Token == h.token || slices.Contains(h.grant.ids, r.Block) ||
		slices.ContainsFunc(h.grant.Blocks, func(b Block) bool { return b.Audience == r.Key })
}

// Revoke ends permissions at once, before anything is kept and also where that fails;
// then the error says that a start would forget it.
func (b *Book) Revoke(r Revocation) error {
	b.mu.Lock()
	b.ended = append(b.ended, r)
	b.mu.Unlock()
	b.Ended()
	err := b.change(func(k *book) error {
		if r.Block != (Hash{}) && !slices.Contains(k.Blocks, r.Block) {
			k.Blocks = append(k.Blocks, r.Block)
		}
		if r.Key != (identity.ID{}) && !slices.Contains(k.Keys, r.Key) {
			k.Keys = append(k.Keys, r.Key)
		}
		gone := func(raw []byte, token string) bool {
			g, err := Open(raw)
			return err == nil && r.covers(holding{grant: g, token: token})
		}
		k.Grants = slices.DeleteFunc(k.Grants, func(raw []byte) bool { return gone(raw, "") })
		k.Tokens = slices.DeleteFunc(k.Tokens, func(t Token) bool { return gone(t.Grant, t.Name) })
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
