package access

import (
	"bytes"
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
	"agentsite/node/identity"
)

// Claimed reports whether there is an owner.
func (b *Store) Claimed() bool { return len(b.Owners()) > 0 }

// Owners lists the owners.
func (b *Store) Owners() []Owner {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kept.Owners)
}

// Owns reports whether a principal's ID is an owner's now.
func (b *Store) Owns(who string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owned(who)
}

func (b *Store) owned(who string) bool {
	return slices.ContainsFunc(b.kept.Owners, func(o Owner) bool { return o.ID.String() == who })
}

// isOwner reports whether p is an owner: of a key it counts what is kept, since p may be of
// before. Others are who they are by the carrier's word.
func (b *Store) isOwner(p agents.Principal) bool {
	return p.Owner && (b.owned(p.ID) || !strings.HasPrefix(p.ID, didPrefix))
}

// Secret is that of the claim, made where there is none. It stays the same until
// there is an owner.
func (b *Store) Secret() (secret ClaimSecret, err error) {
	b.mu.Lock()
	kept := b.kept.Secret
	b.mu.Unlock()
	if len(kept) == len(secret) { // it is not kept once more: a start needs no room on the disk
		return ClaimSecret(kept), nil
	}
	err = b.change(func(k *storeFile) error {
		if len(k.Owners) > 0 {
			return errors.New("this site has an owner already")
		}
		if len(k.Secret) != len(secret) {
			rand.Read(secret[:])
			k.Secret = secret[:]
		}
		secret = ClaimSecret(k.Secret)
		return nil
	})
	return secret, err
}

// Claim makes the first owner, and the secret is used up.
func (b *Store) Claim(o Owner) error {
	return b.change(func(k *storeFile) error {
		if len(k.Owners) > 0 {
			return errors.New("this site has an owner already; only an owner can add another")
		}
		k.Secret = nil
		return k.add(o)
	})
}

// AddOwner adds an owner, at the word of another. One that is there is not added again.
func (b *Store) AddOwner(o Owner) error {
	return b.change(func(k *storeFile) error { return k.add(o) })
}

func (k *storeFile) add(o Owner) error {
	if !o.ID.Valid() {
		return errors.New("with this key anybody can sign: its owner has to make another")
	}
	if len(o.Name) > maxName {
		return fmt.Errorf("a name has at most %d letters", maxName)
	}
	if k.owns(o.ID) {
		return nil
	}
	if len(k.Owners) == maxOwners {
		return fmt.Errorf("there are %d owners, which is as many as there can be: remove one first", maxOwners)
	}
	k.Owners = append(k.Owners, o)
	return nil
}

// RemoveOwner removes an owner, but the last one, and revokes its key: what it granted and
// held ends for good, also if it becomes an owner again.
func (b *Store) RemoveOwner(id identity.ID) error {
	defer b.OnEnd()
	return b.change(func(k *storeFile) error {
		left := slices.DeleteFunc(k.Owners, func(o Owner) bool { return o.ID == id })
		if len(left) == len(b.kept.Owners) {
			return fmt.Errorf("%v is no owner here", id)
		}
		if len(left) == 0 {
			return errors.New("this is the last owner: add another first, or run agentsite reset --erase at the site")
		}
		k.Owners = left
		k.revoke(Revocation{Key: id})
		return nil
	})
}

// NewRecovery makes the code by which somebody who lost every owner's key becomes the
// only owner: 128 bits in hexadecimal digits, in groups to be written down. It is shown
// once; only its hash is kept, and a code before it is void. A site that nobody owns has
// none, or whoever made it would take the site from its first owner.
func (b *Store) NewRecovery() (code string, err error) {
	var secret [16]byte
	rand.Read(secret[:])
	hash := sha256.Sum256(secret[:])
	err = b.change(func(k *storeFile) error {
		if len(k.Owners) == 0 {
			return errors.New("nobody owns this site yet, so that there is nothing to recover")
		}
		k.Recovery = hash[:]
		return nil
	})
	digits := slices.Chunk([]byte(hex.EncodeToString(secret[:])), 4)
	return string(bytes.Join(slices.Collect(digits), []byte("-"))), err
}

// IsRecovery reports whether a text has the form of a code that NewRecovery makes.
func IsRecovery(code string) bool {
	secret, err := hex.DecodeString(strings.ReplaceAll(code, "-", ""))
	return err == nil && len(secret) == 16 && len(code) == 39
}

var errCode = denied("this is not the recovery code of this site, or it was used, or another was made since")

// Recover takes the code, once, and makes o the only owner; the others' keys are revoked. A
// wrong code is answered as a wrong proof of a claim is: a second after the one before,
// or when ctx ends. The right one never waits for those. Where there is no code, nobody
// waits: what waits there are the proofs of those who claim the site.
func (b *Store) Recover(ctx context.Context, code string, o Owner) error {
	secret, err := hex.DecodeString(strings.ReplaceAll(code, "-", ""))
	if err != nil {
		secret = nil // what nobody's hash is of
	}
	hash := sha256.Sum256(secret)
	guess := false
	err = b.change(func(k *storeFile) error {
		guess = len(k.Recovery) > 0
		if !guess || subtle.ConstantTimeCompare(hash[:], k.Recovery) != 1 {
			return errCode
		}
		for _, other := range k.Owners {
			if other.ID != o.ID {
				k.revoke(Revocation{Key: other.ID})
			}
		}
		k.Owners, k.Recovery = nil, nil
		return k.add(o)
	})
	switch {
	case err == nil:
		b.OnEnd()
	case err == errCode && guess:
		b.guesses.wait(ctx)
	}
	return err
}

// ByGrant reports whether a principal with that ID has its permissions from a grant, or is an
// owner by a key: not by a socket of the site's own machine.
func ByGrant(id string) bool {
	return strings.HasPrefix(id, tokenPrefix) || strings.HasPrefix(id, didPrefix)
}
