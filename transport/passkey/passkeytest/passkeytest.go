// Package passkeytest has a browser with passkeys for tests, which agrees to everything.
package passkeytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"

	"agentsite/transport/passkey"

	"github.com/fxamacker/cbor/v2"
	"github.com/go-json-experiment/json"
)

// Flags of authenticator data: a person was there, and was verified.
const (
	Present  = 1
	Verified = 4

	credential = 64
)

// Browser is a browser on a page, with one passkey. Its fields may be changed at any time.
type Browser struct {
	Host, Origin string
	ID           []byte
	Key          map[int]any // as COSE
	Flags        byte
	Count        uint32
	Client       map[string]any // further members of the client data
	Extensions   []byte         // at the end of the authenticator data

	signer crypto.Signer
}

// New makes a passkey of an algorithm of COSE.
func New(host, origin string, algorithm int) *Browser {
	b := &Browser{
		Host: host, Origin: origin, ID: random(32), Flags: Present | Verified, Client: map[string]any{"crossOrigin": false},
	}
	switch algorithm {
	case -7:
		key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		point, _ := key.PublicKey.Bytes()
		b.signer, b.Key = key, map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]}
	case -8:
		public, key, _ := ed25519.GenerateKey(rand.Reader)
		b.signer, b.Key = key, map[int]any{1: 1, 3: -8, -1: 6, -2: []byte(public)}
	case -257:
		key, _ := rsa.GenerateKey(rand.Reader, 2048)
		b.signer, b.Key = key, map[int]any{1: 3, 3: -257, -1: key.N.Bytes(), -2: []byte{1, 0, 1}}
	default:
		panic("no such algorithm")
	}
	return b
}

// Create answers a page that has a passkey made.
func (b *Browser) Create(challenge []byte) passkey.Registration {
	data := binary.BigEndian.AppendUint16(append(b.data(credential), make([]byte, 16)...), uint16(len(b.ID)))
	data = append(append(data, b.ID...), encode(b.Key)...)
	object := map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": append(data, b.Extensions...)}
	return passkey.Registration{ClientData: b.clientData("webauthn.create", challenge), Attestation: encode(object)}
}

// Get answers a page that asks for the passkey. It counts on, where the count is not 0.
func (b *Browser) Get(challenge []byte) passkey.Assertion {
	if b.Count > 0 {
		b.Count++
	}
	a := passkey.Assertion{
		ID: b.ID, AuthData: append(b.data(0), b.Extensions...), ClientData: b.clientData("webauthn.get", challenge),
	}
	hash := sha256.Sum256(a.ClientData)
	text := append(a.AuthData[:len(a.AuthData):len(a.AuthData)], hash[:]...)
	options := crypto.SHA256
	if _, ok := b.signer.(ed25519.PrivateKey); ok {
		options = 0
	} else {
		hash = sha256.Sum256(text)
		text = hash[:]
	}
	a.Signature, _ = b.signer.Sign(rand.Reader, text, options)
	return a
}

// data returns authenticator data without a credential.
func (b *Browser) data(flags byte) []byte {
	host := sha256.Sum256([]byte(b.Host))
	return binary.BigEndian.AppendUint32(append(host[:], b.Flags|flags), b.Count)
}

func (b *Browser) clientData(kind string, challenge []byte) []byte {
	all := map[string]any{"type": kind, "challenge": base64.RawURLEncoding.EncodeToString(challenge), "origin": b.Origin}
	maps.Copy(all, b.Client)
	text, _ := json.Marshal(all, json.Deterministic(true))
	return text
}

func encode(v any) []byte {
	mode, _ := cbor.CTAP2EncOptions().EncMode()
	text, _ := mode.Marshal(v)
	return text
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}
