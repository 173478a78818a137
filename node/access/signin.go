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
	"agentsite/device"
)

// SignIn belongs to the token of a client that signed in by OAuth, beside its grant. The client gets
// access tokens and refresh tokens in pairs. Only hashes are stored. The Token's own hash is of nothing
// that anybody has, and stays when they change.
type SignIn struct {
	Client string   `cbor:"1,keyasint"` // as it calls itself
	Host   string   `cbor:"2,keyasint"` // to which its user was sent back
	ID     Hash     `cbor:"3,keyasint"` // of its client identifier
	Family [16]byte `cbor:"4,keyasint"` // begins each of its refresh tokens
	Pair
	// Last is of the code or the refresh token that the pair was given for. Until a token of the pair
	// is used, the client may have lost the answer, and asks again with Last.
	Last   Hash `cbor:"8,keyasint"`
	Unused bool `cbor:"9,keyasint,omitempty"`
	// At is the time of the pair in seconds since 1970.
	At int64 `cbor:"10,keyasint,omitempty"`
	// Of is the hash of the token whose sign-in this replaces, by CheckSignIn; zero for none. It is not stored.
	Of Hash `cbor:"-"`
}

// Pair are the hashes of an access token and of the refresh token that came with it.
type Pair struct {
	Access  Hash  `cbor:"5,keyasint"`
	Refresh Hash  `cbor:"6,keyasint"`
	Until   int64 `cbor:"7,keyasint"` // of the access token, in seconds since 1970
}

// SignInPrefix begins the access tokens of SignIns. 64 hexadecimal digits follow.
const SignInPrefix = "asa_"

// ErrNoTime refuses what cannot be decided before the site knows the time. Unlike a Denied fault it does
// not end a client's sign-in.
var ErrNoTime = device.Faultf(device.Unavailable,
	"this site does not know the time yet, and your access ends at a time: try again soon. %s", setTimeHint)

// SetSignInURL sets the URL at which clients sign in. The tokens of those that did so at another do not count.
func (s *Store) SetSignInURL(url string) { s.signIn.Store(url) }

// SignInURL returns the URL at which clients sign in, "" for none.
func (s *Store) SignInURL() string {
	url, _ := s.signIn.Load().(string)
	return url
}

// CheckSignIn reports why AddSignIn would refuse, without storing anything, and which token it would replace.
func (s *Store) CheckSignIn(name string, grant []byte, in SignIn) (of Hash, err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	f := s.file.clone()
	if i := f.tokenOf(name); i >= 0 {
		of = f.Tokens[i].Hash
	}
	_, _, err = s.addSignIn(&f, name, grant, in)
	return of, err
}

// AddSignIn stores a grant for a client that signed in. If the same client has a sign-in of that name, the
// grant replaces its grant, and the client stays the same principal; one that was to be replaced and has ended
// meanwhile does not begin anew. The access token ends life from now,
// and not after the grant; AddSignIn returns how long that is. Its error is
// a fault that is Denied or Invalid, unless the time is not known or the disk fails.
func (s *Store) AddSignIn(name string, grant []byte, in SignIn, life time.Duration) (left time.Duration, err error) {
	now, err := s.sureTime()
	if err != nil {
		return 0, err
	}
	var old, g *Grant
	err = s.change(func(f *storeFile) (err error) {
		if g, err = ParseGrant(grant); err != nil {
			return device.Faultf(device.Invalid, "%w", err)
		}
		in.Until, left = ends(now, life, g.Until())
		if left <= 0 {
			return denied("the grant has ended")
		}
		if old, g, err = s.addSignIn(f, name, grant, in); err != nil {
			return device.Faultf(device.Invalid, "%w", err)
		}
		return nil
	})
	if err == nil && old != nil {
		s.replaced(old, g)
	}
	return left, err
}

// ends returns when an access token ends, in seconds since 1970, and how long that is.
func ends(now time.Time, life time.Duration, grant time.Time) (until int64, left time.Duration) {
	end := now.Add(life).Truncate(time.Second)
	if !grant.IsZero() && grant.Before(end) {
		end = grant
	}
	return end.Unix(), end.Sub(now)
}

// addSignIn is AddSignIn on a file. It returns the grant that it replaced, nil for none.
func (s *Store) addSignIn(f *storeFile, name string, grant []byte, in SignIn) (old, g *Grant, err error) {
	if err := device.CheckName(name); err != nil {
		return nil, nil, err
	}
	i := f.tokenOf(name)
	switch {
	case i < 0 && in.Of != (Hash{}):
		return nil, nil, denied("an owner has ended your former sign-in meanwhile: begin again")
	case i < 0:
		t := Token{Name: name, URL: s.SignInURL(), SignIn: &in}
		var nothing [32]byte
		rand.Read(nothing[:])
		t.Hash = sha256.Sum256(nothing[:])
		return nil, nil, s.addToken(f, t, grant)
	case f.Tokens[i].SignIn == nil || !f.Tokens[i].SignIn.sameClient(in):
		return nil, nil, fmt.Errorf("there is a token %s already, and it is not this client's: choose another name", name)
	}
	old, g, err = s.setGrant(f, i, grant)
	f.Tokens[i].SignIn, f.Tokens[i].URL = &in, s.SignInURL()
	return old, g, err
}

// tokenOf returns the index of the token with a name, -1 for none.
func (f *storeFile) tokenOf(name string) int {
	return slices.IndexFunc(f.Tokens, func(t Token) bool { return t.Name == name })
}

// sameClient reports whether two sign-ins are by the same client: by its identifier, or, as some register
// anew each time, by its name and host.
func (in *SignIn) sameClient(other SignIn) bool {
	return in.ID == other.ID || in.Client == other.Client && in.Host == other.Host
}

// SignInOf returns the name under which a client is signed in, "" for none.
func (s *Store) SignInOf(in SignIn) string {
	for _, t := range s.Tokens() {
		if t.SignIn != nil && t.SignIn.sameClient(in) {
			return t.Name
		}
	}
	return ""
}

// ReplaceTokenGrant gives a token another grant, which is valid at once; the former one is revoked.
func (s *Store) ReplaceTokenGrant(name string, grant []byte) error {
	var old, g *Grant
	err := s.change(func(f *storeFile) (err error) {
		i := f.tokenOf(name)
		if i < 0 {
			return fmt.Errorf("there is no token %.40q", name)
		}
		old, g, err = s.setGrant(f, i, grant)
		return err
	})
	if err == nil {
		s.replaced(old, g)
	}
	return err
}

// setGrant replaces the grant of a token in a file.
func (s *Store) setGrant(f *storeFile, i int, grant []byte) (old, g *Grant, err error) {
	if g, err = s.tokenGrant(f, grant); err != nil {
		return nil, nil, err
	}
	if old, err = ParseGrant(f.Tokens[i].Grant); err != nil {
		return nil, nil, err
	}
	f.Tokens[i].Grant, f.Tokens[i].Until = g.Bytes(), EndSecond(g.Until())
	if old.ID() != g.ID() {
		f.revoke(Revocation{Block: old.ID()})
	}
	return old, g, nil
}

// replaced ends what depended on a token's former grant, or lets it depend on the new one if that permits
// the same.
func (s *Store) replaced(old, g *Grant) {
	s.mu.Lock()
	for _, all := range s.credentials {
		for _, c := range all {
			if c.grant.ID() == g.ID() {
				s.passLeases(credential{grant: old}, c)
			}
		}
	}
	s.mu.Unlock()
	s.OnEnd()
}

// ErrReplayed is the error of a refresh token that was used before. Its sign-in has ended.
var ErrReplayed = errors.New("this refresh token was used before, so that somebody else may have it: sign in again")

var errSignIn = denied("unknown or ended sign-in: sign in again")

// errAgain ends a change that needs not be stored.
var errAgain = errors.New("nothing changes")

// For samePair a client that asks again gets the same pair: it may ask twice at once, by a refresh token also after one of
// its processes has used the pair. After that it gets another one, and the first is void, so that of two clients with
// the same refresh token one is refused.
const samePair = 10 * time.Second

// Refresh exchanges a refresh token of a client, or the code of its sign-in, for another pair, whose access token ends
// life from now. pair makes the pair of the token for a time in seconds since 1970, which Refresh returns.
func (s *Store) Refresh(
	family [16]byte, client, token Hash, isCode bool, pair func(at int64) Pair, life time.Duration,
) (at int64, left time.Duration, err error) {
	now, err := s.sureTime()
	if err != nil {
		return 0, 0, err
	}
	var replayed Hash
	err = s.change(func(f *storeFile) error {
		i := slices.IndexFunc(f.Tokens, func(t Token) bool {
			return t.SignIn != nil && subtle.ConstantTimeCompare(t.SignIn.Family[:], family[:]) == 1
		})
		if i < 0 || f.Tokens[i].URL != s.SignInURL() || f.Tokens[i].SignIn.ID != client {
			return errSignIn
		}
		t := &f.Tokens[i]
		g, err := ParseGrant(t.Grant)
		if err == nil {
			err = s.accepts(f, g, Hash{})
		}
		if err != nil {
			return err
		}
		in := *t.SignIn
		var until int64
		until, left = ends(now, life, g.Until())
		switch ago := now.Sub(time.Unix(in.At, 0)); {
		case left <= 0:
			return denied("your permission ended at %s: sign in again", formatTime(g.Until().Unix()))
		case token == in.Refresh:
			in.Last, in.Unused = token, true
		case token == in.Last && (in.Unused || !isCode) && ago >= 0 && ago < samePair:
			at, left = in.At, time.Unix(in.Until, 0).Sub(now)
			return errAgain
		case token != in.Last || !in.Unused:
			replayed = g.ID()
			return ErrReplayed
		}
		at = now.Unix()
		in.Pair, in.At = pair(at), at
		in.Until = until
		t.SignIn = &in
		return nil
	})
	switch err {
	case errAgain:
		return at, left, nil
	case ErrReplayed:
		return 0, 0, errors.Join(ErrReplayed, s.Revoke(Revocation{Block: replayed}))
	}
	return at, left, err
}

// RevokeSignIn ends the sign-in that an access token is of or, with isRefresh, a refresh token of a family. It does
// nothing for any other.
func (s *Store) RevokeSignIn(family [16]byte, isRefresh bool, access Hash) error {
	for _, t := range s.Tokens() {
		if in := t.SignIn; in != nil && (in.Access == access || isRefresh && in.Family == family) {
			return s.Revoke(Revocation{Token: t.Name})
		}
	}
	return nil
}

// sureTime returns the time, or ErrNoTime.
func (s *Store) sureTime() (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, sure := s.now()
	if !sure && !s.LastKnown {
		return now, ErrNoTime
	}
	return now, nil
}

// signedIn is Bearer for an access token of a SignIn.
func (s *Store) signedIn(token string) (agents.Principal, error) {
	hash, ok := HashSignIn(token)
	p, unused, err := s.findSignIn(hash, ok)
	if unused {
		s.used(hash)
	}
	return p, err
}

// findSignIn returns the principal of an access token with a hash, if it has the form of one, and whether it is the
// first use of its pair.
func (s *Store) findSignIn(hash Hash, ok bool) (p agents.Principal, unused bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := -1
	for i, t := range s.file.Tokens { // all of them, in constant time
		if t.SignIn != nil && subtle.ConstantTimeCompare(hash[:], t.SignIn.Access[:]) == 1 {
			found = i
		}
	}
	if !ok || found < 0 {
		return p, false, errSignIn
	}
	t := s.file.Tokens[found]
	now, sure := s.now()
	switch {
	case t.URL != s.SignInURL():
		return p, false, denied("this token is for another address of this site: sign in again")
	case t.Until != 0 && t.Until <= now.Unix() || t.SignIn.Until <= now.Unix():
		return p, false, denied("this access token has ended: refresh it, or sign in again")
	case !sure && !s.LastKnown:
		return p, false, ErrNoTime
	}
	return s.bearer(t), t.SignIn.Unused, nil
}

// used stores that a pair of tokens is used, so that the one before does not count any more.
func (s *Store) used(access Hash) {
	s.change(func(f *storeFile) error { // if it fails, the next call tries again
		for i, t := range f.Tokens {
			if t.SignIn != nil && t.SignIn.Access == access && t.SignIn.Unused {
				in := *t.SignIn
				in.Unused = false
				f.Tokens[i].SignIn = &in
				return nil
			}
		}
		return errAgain
	})
}

// HashSignIn returns the hash of an access token of a SignIn. It is not ok for a text of another form.
func HashSignIn(token string) (hash Hash, ok bool) {
	digits, ok := strings.CutPrefix(token, SignInPrefix)
	var text [64]byte // on the stack: this comes before every request
	var secret [32]byte
	ok = ok && len(digits) == len(text)
	copy(text[:], digits)
	_, err := hex.Decode(secret[:], text[:])
	return sha256.Sum256(secret[:]), ok && err == nil
}

// Scopes returns the words of a principal's valid permissions, such as read and set, whatever they are about.
func (s *Store) Scopes(p agents.Principal) (words []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.credentialsOf(p) {
		if !s.invalid(c) {
			words = append(words, ScopesOf(c.grant)...)
		}
	}
	return words
}

// ScopesOf returns the words of a grant's permissions.
func ScopesOf(g *Grant) (words []string) {
	for _, a := range actions {
		for _, p := range g.Blocks[len(g.Blocks)-1].Permissions {
			if !slices.Contains(words, a.word) && slices.ContainsFunc(a.tools, func(t string) bool { return slices.Contains(p.Tools, t) }) {
				words = append(words, a.word)
			}
		}
	}
	return words
}

// ScopeOf returns the word of the permission that a tool needs, "" for one that no word stands for.
func ScopeOf(tool string) string {
	for _, a := range actions {
		if slices.Contains(a.tools, tool) {
			return a.word
		}
	}
	return ""
}

// AllScopes returns the words of permissions, read first.
func AllScopes() (words []string) {
	for _, a := range actions {
		words = append(words, a.word)
	}
	return words
}
