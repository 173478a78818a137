package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
)

// principal returns the ID of the token's bearer: its name, and a part of its hash, so that a later
// token of the same name is another principal.
func (t Token) principal() string {
	return fmt.Sprintf("%s%s.%x", principal.TokenPrefix, t.Name, t.Hash[:4])
}

// AddToken creates a token that stands for a grant under this site's URL. It ends at until or, for
// the zero Time, with the grant. AddToken returns the token, 64 hexadecimal digits, which are not
// stored. The grant's audience is the site itself, which holds it for the bearer.
func (s *Store) AddToken(name string, grant []byte, until time.Time) (token string, err error) {
	if err := device.CheckName(name); err != nil {
		return "", err
	}
	now := s.bound()
	end := EndSecond(until)
	if s.URL == "" || end != 0 && end <= now.Unix() {
		return "", errors.New("a token needs the site's URL, and an end in the future")
	}
	var secret [32]byte
	rand.Read(secret[:])
	err = s.change(func(f *storeFile) error {
		return s.addToken(f, Token{Name: name, Hash: sha256.Sum256(secret[:]), URL: s.URL, Until: end}, grant)
	})
	return hex.EncodeToString(secret[:]), err
}

// addToken adds a token with its grant to a file.
func (s *Store) addToken(f *storeFile, t Token, grant []byte) error {
	g, err := s.tokenGrant(f, grant)
	if err != nil {
		return err
	}
	now := s.bound()
	f.Tokens = slices.DeleteFunc(f.Tokens, func(t Token) bool { return t.Until != 0 && t.Until <= now.Unix() })
	if slices.ContainsFunc(f.Tokens, func(have Token) bool { return have.Name == t.Name }) {
		return fmt.Errorf("there is a token %s already: revoke it first, or choose another name", t.Name)
	}
	if len(f.Tokens) == maxTokens {
		return fmt.Errorf("there are %d tokens, which is the maximum: revoke one first", maxTokens)
	}
	if t.Grant = g.Bytes(); t.SignIn != nil {
		t.Until = EndSecond(g.Until())
	}
	f.Tokens = append(f.Tokens, t)
	return nil
}

// tokenGrant returns a grant that a token may stand for.
func (s *Store) tokenGrant(f *storeFile, grant []byte) (*Grant, error) {
	g, err := ParseGrant(grant)
	if err != nil {
		return nil, err
	}
	if g.Audience() != s.Site {
		return nil, errors.New("the audience of a token's grant must be the site itself")
	}
	return g, s.accepts(f, g, g.ID())
}

// Bearer returns the principal of a token. May decides about its permissions and their end. The error is
// ErrNoTime for a token whose end cannot be judged yet.
func (s *Store) Bearer(token string) (agents.Principal, error) {
	if strings.HasPrefix(token, SignInPrefix) {
		return s.signedIn(token)
	}
	var text [64]byte // on the stack: this comes before every request
	var secret [32]byte
	copy(text[:], token)
	_, err := hex.Decode(secret[:], text[:])
	hash := sha256.Sum256(secret[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	found := -1
	for i, t := range s.file.Tokens { // all of them, in constant time
		if subtle.ConstantTimeCompare(hash[:], t.Hash[:]) == 1 {
			found = i
		}
	}
	now, _ := s.now()
	switch {
	case err != nil || len(token) != len(text) || found < 0:
		return agents.Principal{}, denied("unknown or revoked token: ask an owner for a new one")
	case s.file.Tokens[found].URL != s.URL:
		return agents.Principal{}, denied(
			"this token is for another address of this site: use that address, or ask an owner for a new token")
	case s.file.Tokens[found].Until != 0 && s.file.Tokens[found].Until <= now.Unix():
		return agents.Principal{}, denied("this token has ended: ask an owner for another")
	}
	return s.bearer(s.file.Tokens[found]), nil
}

// bearer returns the principal of a token whose bearer calls. The lock is held.
func (s *Store) bearer(t Token) agents.Principal {
	p := agents.Principal{Kind: principal.Token, ID: s.credentials[t.principal()][0].principal}
	p.Account = s.root(p)
	s.called[p.ID] = time.Now()
	return p
}

// Caller returns the principal that the bearer of a token is, and how long ago it last called, 0 for not since the
// site's start.
func (s *Store) Caller(t Token) (id string, ago time.Duration) {
	id = t.principal()
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.called[id]; ok {
		ago = max(time.Since(at), 1)
	}
	return id, ago
}

// Tokens lists the tokens, with their hashes only.
func (s *Store) Tokens() []Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.file.Tokens)
}
