package anp

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/transport/anp/did"
	"agentsite/transport/httpsig"
	"agentsite/transport/web"
)

const (
	maxNonces  = 1024 // of a key, in httpsig.Window
	maxSigners = 64   // keys that signed in that time
	// purgeEvery is how seldom the nonces of signatures that have expired are forgotten.
	purgeEvery = 30 * time.Second
)

// The kinds of errors beside those of httpsig (ANP-02, 3.2.4.1).
var (
	errDID   = errors.New("invalid_did")
	errNonce = errors.New("invalid_nonce")
)

// signatures are the requests' signatures of ANP-02. Each counts once, and none that was made
// before the process began, which knows no nonce of then.
type signatures struct {
	keys  *did.Resolver
	now   func() (t time.Time, sure bool)
	began time.Time // by the monotonic clock

	mu     sync.Mutex
	purged time.Time
	used   map[string]map[nonce]time.Time // until when, by the peer ID of the key
}

type nonce [16]byte

func newSignatures(keys *did.Resolver, now func() (time.Time, bool)) *signatures {
	return &signatures{keys: keys, now: now, began: time.Now(), used: make(map[string]map[nonce]time.Time)}
}

// Read implements web.Signatures.
func (s *signatures) Read(r *http.Request) (*web.Signed, error) {
	if !httpsig.Present(r) {
		return nil, nil
	}
	sig, err := httpsig.Parse(r)
	if err != nil {
		return nil, err
	}
	now, sure := s.now()
	if !sure {
		return nil, fmt.Errorf("%w: the time of this site is not set: send a token, or have its owner set it (agentsite clock --set)", httpsig.ErrTimestamp)
	}
	if err := sig.CheckTime(now); err != nil {
		return nil, err
	}
	if sig.Created.Unix() <= now.Add(-time.Since(s.began)).Unix() {
		return nil, fmt.Errorf("%w: this site started after the signature was made: sign again", httpsig.ErrTimestamp)
	}
	key, err := s.keys.Key(r.Context(), sig.KeyID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDID, err)
	}
	if !sig.Verify(key[:]) {
		return nil, fmt.Errorf("%w: the signature is not of this request by this key", httpsig.ErrSignature)
	}
	peer := key.PeerID()
	return &web.Signed{Peer: peer, CheckBody: sig.CheckBody, Use: func() error { return s.use(peer, sig, now) }}, nil
}

// use takes a nonce of a key, which is known here, and refuses one that was taken.
func (s *signatures) use(peer string, sig *httpsig.Signature, now time.Time) error {
	sum := sha256.Sum256([]byte(sig.Nonce))
	n := nonce(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.purged).Abs() > purgeEvery {
		s.purge(now)
	}
	used := s.used[peer]
	if _, again := used[n]; again {
		return fmt.Errorf("%w: this nonce was used before: sign again with another", errNonce)
	}
	if len(used) >= maxNonces || used == nil && len(s.used) >= maxSigners {
		return fmt.Errorf("%w: too many signatures in a short time: let them expire sooner, or send a token", errNonce)
	}
	if used == nil {
		used = make(map[nonce]time.Time)
		s.used[peer] = used
	}
	used[n] = sig.Expires
	return nil
}

// purge forgets the nonces of signatures that have expired.
func (s *signatures) purge(now time.Time) {
	s.purged = now
	for peer, used := range s.used {
		for n, until := range used {
			if !now.Before(until) {
				delete(used, n)
			}
		}
		if len(used) == 0 {
			delete(s.used, peer)
		}
	}
}

// Challenge implements web.Signatures.
func (s *signatures) Challenge(h http.Header, err error) {
	text := `DIDWba realm="agentsite"`
	for _, kind := range []error{httpsig.ErrRequest, httpsig.ErrTimestamp, httpsig.ErrDigest, httpsig.ErrSignature, errDID, errNonce} {
		if errors.Is(err, kind) {
			says := strings.Map(func(c rune) rune {
				if c < ' ' || c > '~' || c == '"' || c == '\\' {
					return '\''
				}
				return c
			}, strings.TrimPrefix(err.Error(), kind.Error()+": "))
			text += fmt.Sprintf(`, error="%v", error_description="%.200s"`, kind, says)
		}
	}
	h.Add("WWW-Authenticate", text)
	h.Set("Accept-Signature", httpsig.Accept)
}
