// Package secp256k1 stands in for the part of github.com/decred/dcrd/dcrec/secp256k1/v4 that
// go-libp2p's core/crypto names. It refuses every key: a peer with such a key is not connected to.
// libp2p's peer ID specification says of these keys that an implementation MAY support them. See
// the README one folder up.
package secp256k1

import "errors"

// ErrRefused is the error of everything here that can have one; the rest is never reached,
// because there is no key.
var ErrRefused = errors.New("keys of the kind secp256k1 are not supported here")

// PrivKeyBytesLen is the length of a private key.
const PrivKeyBytesLen = 32

type (
	// PrivateKey and PublicKey have no values that came from a peer.
	PrivateKey struct{}
	PublicKey  struct{}
)

// GeneratePrivateKey returns ErrRefused.
func GeneratePrivateKey() (*PrivateKey, error) { return nil, ErrRefused }

// ParsePubKey returns ErrRefused.
func ParsePubKey([]byte) (*PublicKey, error) { return nil, ErrRefused }

// PrivKeyFromBytes panics with ErrRefused, which core/crypto makes an error of.
func PrivKeyFromBytes([]byte) *PrivateKey { panic(ErrRefused) }

func (*PrivateKey) Serialize() []byte          { panic(ErrRefused) }
func (*PrivateKey) PubKey() *PublicKey         { panic(ErrRefused) }
func (*PublicKey) SerializeCompressed() []byte { panic(ErrRefused) }
func (*PublicKey) IsEqual(*PublicKey) bool     { return false }
