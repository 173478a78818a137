package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"agentsite/node/identity"
)

const (
	ClaimWindow = 15 * time.Minute // after the start
	claimFresh  = 2 * time.Minute  // a challenge counts for one to two of these

	claimPurpose identity.Purpose = "claim"
)

// ClaimSecret is what whoever claims a site knows: 128 bits that the site shows to who
// stands before it. That many nobody guesses, so that it need not be hidden behind a
// password protocol.
type ClaimSecret [16]byte

// ParseSecret reads a secret as Text writes it. The zero Secret is none.
func ParseSecret(text string) (s ClaimSecret, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(s) || ClaimSecret(b) == s {
		return s, errors.New("this is no secret, which is 22 letters, digits, - and _ by chance")
	}
	return ClaimSecret(b), nil
}

// Text is the secret as people copy it. It has no String, so that no log shows it by
// mistake.
func (s ClaimSecret) Text() string { return base64.RawURLEncoding.EncodeToString(s[:]) }

// Claim is a site that can be claimed. It keeps nothing of those who try, so that
// nobody can use up anything. All methods are safe for concurrent use.
type Claim struct {
	key    identity.Key
	secret ClaimSecret
	take   func(identity.ID) error
	mixer  [32]byte // makes challenges
	opened time.Time
	wrong  guessLimiter
}

// NewClaim opens a window of fifteen minutes for the site with that key. take makes
// the first owner and fails where there is one: it decides between two who are right.
func NewClaim(key identity.Key, secret ClaimSecret, take func(identity.ID) error) *Claim {
	c := &Claim{key: key, secret: secret, take: take, opened: time.Now()}
	rand.Read(c.mixer[:])
	return c
}

// Challenge is what a claimant has to answer within two minutes. It is another for
// each claimant, and nothing is remembered of it.
func (c *Claim) Challenge(claimant identity.ID) ([32]byte, error) {
	if time.Since(c.opened) >= ClaimWindow {
		return [32]byte{}, errClosed
	}
	return c.challenge(claimant, 0), nil
}

func (c *Claim) challenge(claimant identity.ID, ago int64) [32]byte {
	epoch := int64(time.Since(c.opened)/claimFresh) - ago
	return [32]byte(mac(c.mixer[:], binary.BigEndian.AppendUint64(claimant[:], uint64(epoch))))
}

var (
	errClosed = denied("this site can be claimed for fifteen minutes after it was switched on: switch it off and on again")
	errWrong  = denied("this is not the secret of this site, or it came too late: take the newest address that the site shows, and try again")
)

// Proof shows that a claimant knows a site's secret, without showing that, and has the
// private key of its ID. It is for one site and one challenge.
type Proof struct {
	Claimant  identity.ID `json:"claimant"`
	Challenge [32]byte    `json:"challenge"`
	Nonce     [16]byte    `json:"nonce"` // the claimant's own
	MAC       [32]byte    `json:"mac"`
	Signature []byte      `json:"signature"`
}

// Answer shows that a site knew the secret of a proof, and has its own private key.
type Answer struct {
	MAC       [32]byte `json:"mac"`
	Signature []byte   `json:"signature"`
}

// transcript is what both sides prove. All of its parts have fixed lengths.
func (p Proof) transcript(side string, site identity.ID) []byte {
	b := append([]byte("agentsite claim 1 "+side+"\x00"), site[:]...)
	b = append(append(b, p.Claimant[:]...), p.Challenge[:]...)
	return append(b, p.Nonce[:]...)
}

const claimant, answering = "claimant", "site"

func mac(key, message []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(message)
	return h.Sum(nil)
}

// Prove answers a site's challenge.
func Prove(key identity.Key, site identity.ID, secret ClaimSecret, challenge [32]byte) Proof {
	p := Proof{Claimant: key.ID(), Challenge: challenge}
	rand.Read(p.Nonce[:])
	t := p.transcript(claimant, site)
	p.MAC, p.Signature = [32]byte(mac(secret[:], t)), key.Sign(claimPurpose, t)
	return p
}

// VerifyAnswer reports whether it was the site that answered the proof.
func (p Proof) VerifyAnswer(site identity.ID, secret ClaimSecret, a Answer) bool {
	t := p.transcript(answering, site)
	return hmac.Equal(mac(secret[:], t), a.MAC[:]) && site.Verify(claimPurpose, t, a.Signature)
}

// Accept checks a proof. The first that is right makes its claimant the owner, at once,
// however many wrong ones there are. A wrong one is answered a second after the one
// before, or when ctx ends; where more of them wait than is good, at once.
func (c *Claim) Accept(ctx context.Context, p Proof) (Answer, error) {
	if time.Since(c.opened) >= ClaimWindow {
		return Answer{}, errClosed
	}
	t, id := p.transcript(claimant, c.key.ID()), p.Claimant
	now, before := c.challenge(id, 0), c.challenge(id, 1)
	right := hmac.Equal(mac(c.secret[:], t), p.MAC[:])
	fresh := hmac.Equal(p.Challenge[:], now[:]) || hmac.Equal(p.Challenge[:], before[:])
	if !right || !fresh || !id.Verify(claimPurpose, t, p.Signature) {
		c.wrong.wait(ctx)
		return Answer{}, errWrong
	}
	if err := c.take(id); err != nil {
		return Answer{}, err
	}
	t = p.transcript(answering, c.key.ID())
	return Answer{[32]byte(mac(c.secret[:], t)), c.key.Sign(claimPurpose, t)}, nil
}
