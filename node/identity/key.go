package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// Purpose is the purpose of a signature, such as "grant". The signature is invalid for any other.
// It is the context of Ed25519ctx (RFC 8032), at most 240 bytes. Signatures that other programs
// make with the same key, in plain Ed25519, are invalid for every purpose.
type Purpose string

func (p Purpose) options() *ed25519.Options {
	return &ed25519.Options{Context: "agentsite " + string(p)}
}

// Key is a private key. It prints as its ID.
type Key struct{ private ed25519.PrivateKey }

// New creates a key.
func New() Key {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // the system's random source never fails
	}
	return Key{private}
}

// ID returns the public half of the key.
func (k Key) ID() ID { return ID(k.private.Public().(ed25519.PublicKey)) }

func (k Key) String() string   { return k.ID().String() }
func (k Key) GoString() string { return k.String() }

// Sign signs a message for a purpose. The signature has 64 bytes and is deterministic.
func (k Key) Sign(purpose Purpose, message []byte) []byte {
	signature, err := k.private.Sign(nil, message, purpose.options())
	if err != nil {
		panic(err) // the purpose, which is a constant, is too long
	}
	return signature
}

// Private returns the key for protocols that sign in plain Ed25519: TLS and libp2p.
func (k Key) Private() ed25519.PrivateKey { return k.private }

// Derive derives a named key from k, always the same one, by HKDF (RFC 5869). k cannot be computed
// from it.
func (k Key) Derive(name string) Key {
	seed, err := hkdf.Key(sha256.New, k.private.Seed(), nil, "agentsite key 1 "+name, ed25519.SeedSize)
	if err != nil {
		panic(err) // the length is a constant
	}
	return Key{ed25519.NewKeyFromSeed(seed)}
}

const pemType = "PRIVATE KEY"

// PEM returns the stored form of the key: PKCS #8, which other programs read too.
func (k Key) PEM() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		panic(err) // Ed25519 is supported
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
}

// ParsePEM reverses Key.PEM.
func ParsePEM(text []byte) (Key, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return Key{}, errors.New("it has no complete private key")
	}
	if len(bytes.TrimSpace(rest)) > 0 || !bytes.HasPrefix(text, []byte("-----")) {
		return Key{}, errors.New("it has more than one private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, errors.New("its private key is damaged or has an unknown form")
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Key{}, errors.New("its private key is not Ed25519")
	}
	return Key{private}, nil
}
