package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/node/identity"
)

// Claimed reports whether the site has an owner.
func (s *Store) Claimed() bool { return len(s.Owners()) > 0 }

// Owners lists the owners.
func (s *Store) Owners() []Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.file.Owners)
}

// Owns reports whether a principal's ID is that of a current owner.
func (s *Store) Owns(principal string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownsLocked(principal)
}

// NameOf returns the name of the owner that a principal is, or AgentName; "" for neither.
func (s *Store) NameOf(principal string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.file.Owners {
		if o.ID.String() == principal {
			return o.Name
		}
	}
	return s.agentName(principal)
}

// AgentName returns the name of a key in a grant that it has: what the owner calls it, or another site its agent to
// which it delegated the grant. It returns "" for any other principal, and for a name that an owner here has.
func (s *Store) AgentName(principal string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agentName(principal)
}

func (s *Store) agentName(principal string) string {
	for _, c := range s.credentials[principal] {
		name := c.grant.Blocks[len(c.grant.Blocks)-1].Name
		isOwners := slices.ContainsFunc(s.file.Owners, func(o Owner) bool { return strings.EqualFold(o.Name, name) })
		if name != "" && !isOwners && !s.invalid(c) {
			return name
		}
	}
	return ""
}

// Called returns what owners call a principal: an owner, or a key to which one gave a permission. A key to which that
// was passed on is called by its giver, who is named, too: "frost of shed". It returns "" for any other.
func (s *Store) Called(who string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.file.Owners {
		if o.ID.String() == who {
			return o.Name
		}
	}
	given := func(who string) string {
		for _, c := range s.credentials[who] {
			if name := c.grant.HolderName(); name != "" && !s.invalid(c) {
				return name
			}
		}
		return ""
	}
	if name := given(who); name != "" {
		return name
	}
	if name := s.agentName(who); name != "" {
		return name + " of " + cmp.Or(given(s.root(agents.Principal{ID: who})), "another key")
	}
	return ""
}

func (s *Store) ownsLocked(principal string) bool {
	return slices.ContainsFunc(s.file.Owners, func(o Owner) bool { return o.ID.String() == principal })
}

// isOwner reports whether p is an owner. For a key the stored owners decide, because p may be
// from an earlier session.
func (s *Store) isOwner(p agents.Principal) bool {
	return p.Owner && (p.Kind == principal.Local || s.ownsLocked(p.ID))
}

// ClaimSecret returns the secret of the claim, and creates it where there is none. It stays
// the same until the site has an owner.
func (s *Store) ClaimSecret() (secret ClaimSecret, err error) {
	s.mu.Lock()
	stored := s.file.Secret
	s.mu.Unlock()
	if len(stored) == len(secret) { // not stored again: a start needs no room on the disk
		return ClaimSecret(stored), nil
	}
	err = s.change(func(f *storeFile) error {
		if len(f.Owners) > 0 {
			return errors.New("this site has an owner already")
		}
		if len(f.Secret) != len(secret) {
			rand.Read(secret[:])
			f.Secret = secret[:]
		}
		secret = ClaimSecret(f.Secret)
		return nil
	})
	return secret, err
}

// Claim adds the first owner and removes the secret.
func (s *Store) Claim(o Owner) error {
	return s.change(func(f *storeFile) error {
		if len(f.Owners) > 0 {
			return errors.New("this site has an owner already; only an owner can add another")
		}
		f.Secret = nil
		return f.addOwner(o)
	})
}

// AddOwner adds an owner at the request of another. It does nothing for a present owner.
func (s *Store) AddOwner(o Owner) error {
	return s.change(func(f *storeFile) error { return f.addOwner(o) })
}

func (f *storeFile) addOwner(o Owner) error {
	if !o.ID.Valid() {
		return errors.New("anybody can sign with this key: its owner must create another")
	}
	if len(o.Name) > maxName {
		return fmt.Errorf("a name has at most %d letters", maxName)
	}
	if f.owns(o.ID) {
		return nil
	}
	if len(f.Owners) == maxOwners {
		return fmt.Errorf("there are %d owners, which is the maximum: remove one first", maxOwners)
	}
	f.Owners = append(f.Owners, o)
	return nil
}

// RemoveOwner removes an owner, except the last one, and revokes its key. Its grants, issued and
// received, end permanently, also if it becomes an owner again.
func (s *Store) RemoveOwner(id identity.ID) error {
	defer s.OnEnd()
	return s.change(func(f *storeFile) error {
		left := slices.DeleteFunc(f.Owners, func(o Owner) bool { return o.ID == id })
		if len(left) == len(s.file.Owners) {
			return fmt.Errorf("%v is not an owner here", id)
		}
		if len(left) == 0 {
			return errors.New("this is the last owner: add another first, or run agentsite reset --erase at the site")
		}
		f.Owners = left
		f.revoke(Revocation{Key: id})
		return nil
	})
}

// NewRecovery creates the code by which a person who lost every owner's key becomes the only owner.
// It has 128 bits in groups of hexadecimal digits. Only its hash is stored, and it replaces an
// earlier code. A site without an owner has no code, because the person who created it could take
// the site from the first owner.
func (s *Store) NewRecovery() (code string, err error) {
	var secret [16]byte
	rand.Read(secret[:])
	hash := sha256.Sum256(secret[:])
	err = s.change(func(f *storeFile) error {
		if len(f.Owners) == 0 {
			return errors.New("this site has no owner yet, so there is nothing to recover")
		}
		f.Recovery = hash[:]
		return nil
	})
	digits := slices.Chunk([]byte(hex.EncodeToString(secret[:])), 4)
	return string(bytes.Join(slices.Collect(digits), []byte("-"))), err
}

// IsRecovery reports whether a text has the form of a code of NewRecovery.
func IsRecovery(code string) bool {
	secret, err := hex.DecodeString(strings.ReplaceAll(code, "-", ""))
	return err == nil && len(secret) == 16 && len(code) == 39
}

var errCode = denied("wrong recovery code, or it was used, or replaced by a newer one")

// Recover takes the code, once, and makes o the only owner; it revokes the others' keys. A
// wrong code is answered a second after the previous wrong one, or when ctx ends, as in
// Claim.Accept; the right one never waits. A site without a code answers at once, because the
// proofs of claimants wait there.
func (s *Store) Recover(ctx context.Context, code string, o Owner) error {
	secret, err := hex.DecodeString(strings.ReplaceAll(code, "-", ""))
	if err != nil {
		secret = nil // its hash is never stored
	}
	hash := sha256.Sum256(secret)
	guess := false
	err = s.change(func(f *storeFile) error {
		guess = len(f.Recovery) > 0
		if !guess || subtle.ConstantTimeCompare(hash[:], f.Recovery) != 1 {
			return errCode
		}
		for _, other := range f.Owners {
			if other.ID != o.ID {
				f.revoke(Revocation{Key: other.ID})
			}
		}
		f.Owners, f.Recovery = nil, nil
		return f.addOwner(o)
	})
	switch {
	case err == nil:
		s.OnEnd()
	case err == errCode && guess:
		s.guesses.wait(ctx)
	}
	return err
}

// needsPermission reports whether a holder of outputs keeps them by a permission that is stored here.
// Callers by a local socket or the site's token do not.
func needsPermission(holder string) bool {
	switch principal.Parse(holder).Kind {
	case principal.Local, principal.LocalAgent, principal.SiteToken:
		return false
	}
	return holder != ""
}
