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
	// ClaimWindow is how long after its start a site can be claimed.
	ClaimWindow     = 15 * time.Minute
	challengePeriod = 2 * time.Minute // a challenge is valid for one to two of these

	claimPurpose identity.Purpose = "claim"
	sitePurpose  identity.Purpose = "site"
)

// ProveSite answers a challenge with the site's signature.
func ProveSite(key identity.Key, challenge []byte) []byte { return key.Sign(sitePurpose, challenge) }

// VerifySite reports whether proof is the result of ProveSite with the site's key.
func VerifySite(site identity.ID, challenge, proof []byte) bool {
	return site.Verify(sitePurpose, challenge, proof)
}

// ClaimSecret is the secret that a claimant proves to know: 128 bits, which the site shows to
// people in front of it. It cannot be guessed, so that no password protocol is needed.
type ClaimSecret [16]byte

// ParseSecret reverses ClaimSecret.Text. It refuses the zero secret.
func ParseSecret(text string) (s ClaimSecret, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(s) || ClaimSecret(b) == s {
		return s, errors.New("invalid secret: it has 22 random letters, digits, - and _")
	}
	return ClaimSecret(b), nil
}

// Text returns the secret for people to copy. There is no String method, so that no log shows
// it by mistake.
func (s ClaimSecret) Text() string { return base64.RawURLEncoding.EncodeToString(s[:]) }

// Claim lets the first owner claim a site. It stores nothing per attempt, so that attempts
// exhaust nothing. All methods are safe for concurrent use.
type Claim struct {
	key    identity.Key
	secret ClaimSecret
	take   func(identity.ID) error
	seed   [32]byte // of the challenges
	opened time.Time
	wrong  guessLimiter
}

// NewClaim opens the ClaimWindow of the site with that key. take adds the first owner and fails if
// there is one already: it decides between two right proofs.
func NewClaim(key identity.Key, secret ClaimSecret, take func(identity.ID) error) *Claim {
	c := &Claim{key: key, secret: secret, take: take, opened: time.Now()}
	rand.Read(c.seed[:])
	return c
}

// Challenge returns a challenge that a claimant has to answer within two minutes. It differs for
// each claimant and is not stored.
func (c *Claim) Challenge(claimant identity.ID) ([32]byte, error) {
	if time.Since(c.opened) >= ClaimWindow {
		return [32]byte{}, errClosed
	}
	return c.challenge(claimant, 0), nil
}

func (c *Claim) challenge(claimant identity.ID, ago int64) [32]byte {
	epoch := int64(time.Since(c.opened)/challengePeriod) - ago
	return [32]byte(mac(c.seed[:], binary.BigEndian.AppendUint64(claimant[:], uint64(epoch))))
}

var (
	errClosed = denied("this site can be claimed for fifteen minutes after it was switched on: switch it off and on again")
	errWrong  = denied("this is not the secret of this site, or it came too late: try again with the newest address that the site shows")
)

// Proof proves that a claimant knows a site's secret, without revealing it, and has the
// private key of its ID. It is for one site and one challenge.
type Proof struct {
	Claimant  identity.ID `json:"claimant"`
	Challenge [32]byte    `json:"challenge"`
	Nonce     [16]byte    `json:"nonce"` // the claimant's own
	MAC       [32]byte    `json:"mac"`
	Signature []byte      `json:"signature"`
}

// Answer proves that the site knows the secret of a proof and has its own private key.
type Answer struct {
	MAC       [32]byte `json:"mac"`
	Signature []byte   `json:"signature"`
}

// transcript returns the data that a side authenticates. All of its parts have fixed lengths.
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

// VerifyAnswer reports whether the answer to the proof is the site's.
func (p Proof) VerifyAnswer(site identity.ID, secret ClaimSecret, a Answer) bool {
	t := p.transcript(answering, site)
	return hmac.Equal(mac(secret[:], t), a.MAC[:]) && site.Verify(claimPurpose, t, a.Signature)
}

// Accept checks a proof. The first right one makes its claimant the owner, at once, however
// many wrong ones there are. A wrong one is answered a second after the previous one, or when
// ctx ends; with too many waiting, at once.
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
