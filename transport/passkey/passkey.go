// Package passkey verifies what passkeys sign for a page (WebAuthn level 3): registrations without attestation,
// and assertions of a person whom the authenticator verified.
package passkey

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/go-json-experiment/json"
)

// What is larger is refused before it is parsed.
const (
	maxClientData  = 4 << 10
	maxAttestation = 8 << 10
	maxAuthData    = 4 << 10
	maxID          = 1023
	maxSignature   = 1 << 10
)

// Expected has the values that an answer must match.
type Expected struct {
	Host      string // of the page, without its port: the relying party's ID
	Origin    string // of the page, with its port
	Challenge []byte
}

// Credential is the public half of a passkey.
type Credential struct {
	ID    []byte `json:"id"`
	Key   []byte `json:"key"`   // as COSE
	Count uint32 `json:"count"` // of signatures, where the authenticator counts them
}

// Registration is a browser's answer to create.
type Registration struct {
	ClientData  []byte `json:"client_data"`
	Attestation []byte `json:"attestation"`
}

// Assertion is a browser's answer to get.
type Assertion struct {
	ID         []byte `json:"id"`
	ClientData []byte `json:"client_data"`
	AuthData   []byte `json:"authenticator_data"`
	Signature  []byte `json:"signature"`
}

// Challenge returns the challenge that stands for exactly these values, of which one should be random. The
// domain keeps it apart from every other use.
func Challenge(domain string, values ...[]byte) []byte {
	h := sha256.New()
	for _, v := range append([][]byte{[]byte(domain)}, values...) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(v))))
		h.Write(v)
	}
	return h.Sum(nil)
}

// Register returns the credential that a browser created. Nothing proves where its key is.
func Register(e Expected, r Registration) (Credential, error) {
	if err := e.checkClientData(r.ClientData, "webauthn.create"); err != nil {
		return Credential{}, err
	}
	a, err := parseAttestation(r.Attestation)
	if err != nil {
		return Credential{}, err
	}
	if err := e.checkAuthData(a); err != nil {
		return Credential{}, err
	}
	if len(a.id) == 0 {
		return Credential{}, errors.New("it has no credential")
	}
	return Credential{ID: a.id, Key: a.key, Count: a.count}, nil
}

// Verify verifies an assertion by the credential. It returns the credential to keep for the next one.
func (c Credential) Verify(e Expected, a Assertion) (Credential, error) {
	if len(c.ID) == 0 || !bytes.Equal(a.ID, c.ID) {
		return c, errors.New("it is of another passkey")
	}
	if err := e.checkClientData(a.ClientData, "webauthn.get"); err != nil {
		return c, err
	}
	data, err := parseAuthData(a.AuthData)
	if err != nil {
		return c, err
	}
	if err := e.checkAuthData(data); err != nil {
		return c, err
	}
	if len(data.id) > 0 {
		return c, errors.New("it has a credential, as a registration has")
	}
	key, err := parseKey(c.Key)
	if err != nil {
		return c, err
	}
	hash := sha256.Sum256(a.ClientData)
	if len(a.Signature) > maxSignature || !key.verify(append(bytes.Clone(a.AuthData), hash[:]...), a.Signature) {
		return c, errors.New("the signature is wrong")
	}
	if (data.count != 0 || c.Count != 0) && data.count <= c.Count {
		return c, errors.New("the passkey counts fewer signatures than before: there may be a copy of it")
	}
	c.Count = data.count
	return c, nil
}

// checkClientData checks what the browser says of the page that asked.
func (e Expected) checkClientData(text []byte, kind string) error {
	if len(text) > maxClientData {
		return errors.New("the client data is too long")
	}
	var d struct {
		Type      string  `json:"type"`
		Challenge string  `json:"challenge"`
		Origin    string  `json:"origin"`
		Cross     bool    `json:"crossOrigin"`
		Top       *string `json:"topOrigin"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return errors.New("the client data is not what a browser writes")
	}
	switch {
	case d.Type != kind:
		return errors.New("it is an answer of another kind")
	case len(e.Challenge) < 16 || d.Challenge != base64.RawURLEncoding.EncodeToString(e.Challenge):
		return errors.New("it is an answer to another challenge")
	case d.Origin != e.Origin:
		return errors.New("it is from a page of another origin")
	case d.Cross || d.Top != nil:
		return errors.New("it is from a frame in another page")
	}
	return nil
}

// checkAuthData checks what the authenticator says of its user.
func (e Expected) checkAuthData(d authData) error {
	switch {
	case d.host != sha256.Sum256([]byte(e.Host)):
		return errors.New("it is for another host")
	case d.flags&userPresent == 0:
		return errors.New("nobody was present")
	case d.flags&userVerified == 0:
		return errors.New("the person was not verified")
	case d.flags&backupState != 0 && d.flags&backupEligible == 0:
		return errors.New("it has a backup that it may not have")
	}
	return nil
}
