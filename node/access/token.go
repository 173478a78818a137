package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"agentsite/agents"
)

const tokenPrefix = "token:" // of principals

var tokenName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_-]{1,24}$`) })

// CheckName refuses what is no name for a token.
func CheckName(name string) error {
	if !tokenName().MatchString(name) {
		return fmt.Errorf("%q is no name for a token: use a-z, 0-9, _ and -, at most %d of them", name, maxName)
	}
	return nil
}

// AddToken makes a token that stands for a grant under this site's URL until a time, the
// zero one for as long as the grant, and returns it: 64 hexadecimal digits, which are nowhere kept. The grant's audience is the site
// itself, which holds it for whoever brings the token.
func (b *Store) AddToken(name, url string, grant []byte, until time.Time) (token string, err error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	now, _ := b.Now()
	end := EndSecond(until)
	if url == "" || end != 0 && end <= now.Unix() {
		return "", errors.New("a token has the site's URL, and an end that is not past")
	}
	g, err := ParseGrant(grant)
	if err != nil {
		return "", err
	}
	if g.Audience() != b.Site {
		return "", errors.New("a token's grant is for the site itself, which holds it for whoever brings the token")
	}
	var secret [32]byte
	rand.Read(secret[:])
	return hex.EncodeToString(secret[:]), b.change(func(k *storeFile) error {
		if err := b.accepts(k, g, g.ID()); err != nil {
			return err
		}
		k.Tokens = slices.DeleteFunc(k.Tokens, func(t Token) bool { return t.Until != 0 && t.Until <= now.Unix() })
		if slices.ContainsFunc(k.Tokens, func(t Token) bool { return t.Name == name }) {
			return fmt.Errorf("there is a token %s already: revoke it first, or choose another name", name)
		}
		if len(k.Tokens) == maxTokens {
			return fmt.Errorf("there are %d tokens, which is as many as there can be: revoke one first", maxTokens)
		}
		k.Tokens = append(k.Tokens, Token{name, sha256.Sum256(secret[:]), url, end, g.Bytes()})
		return nil
	})
}

// Bearer makes a principal of a token that was brought to a URL of this site. What it
// may do, and until when, is May's to say.
func (b *Store) Bearer(token, url string) (agents.Principal, error) {
	var text [64]byte // on the stack: this comes before every request
	var secret [32]byte
	copy(text[:], token)
	_, err := hex.Decode(secret[:], text[:])
	hash := sha256.Sum256(secret[:])
	b.mu.Lock()
	defer b.mu.Unlock()
	found := -1
	for i, t := range b.kept.Tokens { // all of them: the time says nothing
		if subtle.ConstantTimeCompare(hash[:], t.Hash[:]) == 1 {
			found = i
		}
	}
	now, _ := b.now()
	switch {
	case err != nil || len(token) != len(text) || found < 0:
		return agents.Principal{}, denied("this is no token of this site, or it was revoked: ask an owner for one")
	case b.kept.Tokens[found].URL != url:
		return agents.Principal{}, denied("this token is for another address of this site: use that, or ask an owner for one")
	case b.kept.Tokens[found].Until != 0 && b.kept.Tokens[found].Until <= now.Unix():
		return agents.Principal{}, denied("this token has ended: ask an owner for another")
	}
	return agents.Principal{ID: b.held[tokenPrefix+b.kept.Tokens[found].Name][0].who}, nil
}

// Tokens lists the tokens, without what would let anybody use them.
func (b *Store) Tokens() []Token {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kept.Tokens)
}
