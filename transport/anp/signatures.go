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
	maxNonces   = 1024 // of a key, in httpsig.Window
	maxPassedOn = 8    // keys that signed in that time by grants that one holder passed on
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

	mu      sync.Mutex
	purged  time.Time
	signers map[string]*signer // by the DID of the key
}

// signer is a key that signed. Its account is the key's own, or that of the holder that passed its
// grant on to the key.
type signer struct {
	account string
	used    map[nonce]time.Time // until when
}

type nonce [16]byte

func newSignatures(keys *did.Resolver, now func() (time.Time, bool)) *signatures {
	return &signatures{keys: keys, now: now, began: time.Now(), signers: make(map[string]*signer)}
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
	return &web.Signed{Peer: key.PeerID(), CheckBody: sig.CheckBody, Use: func(account string) error { return s.use(key.String(), account, sig, now) }}, nil
}

// use records the nonce of an admitted key, and refuses a replay. All keys that a holder delegated
// its grant to share one limit, and use up neither the holder's slots nor those of others.
func (s *signatures) use(key, account string, sig *httpsig.Signature, now time.Time) error {
	sum := sha256.Sum256([]byte(sig.Nonce))
	n := nonce(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.purged).Abs() > purgeEvery {
		s.purge(now)
	}
	k := s.signers[key]
	if k == nil {
		passedOn := 0
		for other, of := range s.signers {
			if of.account == account && other != account {
				passedOn++
			}
		}
		if passedOn >= maxPassedOn && key != account {
			return fmt.Errorf("%w: too many keys sign by grants that the same holder passed on: try again in some minutes, or send a token", errNonce)
		}
		k = &signer{used: make(map[nonce]time.Time)}
		s.signers[key] = k
	}
	k.account = account
	if _, again := k.used[n]; again {
		return fmt.Errorf("%w: this nonce was used before: sign again with another", errNonce)
	}
	if len(k.used) >= maxNonces {
		return fmt.Errorf("%w: too many signatures in a short time: let them expire sooner, or send a token", errNonce)
	}
	k.used[n] = sig.Expires
	return nil
}

// purge forgets the nonces of signatures that have expired.
func (s *signatures) purge(now time.Time) {
	s.purged = now
	for key, k := range s.signers {
		for n, until := range k.used {
			if !now.Before(until) {
				delete(k.used, n)
			}
		}
		if len(k.used) == 0 {
			delete(s.signers, key)
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
