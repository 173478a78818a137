// Package ecdsa stands in for github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa. There are no keys,
// and so no signatures.
package ecdsa

import "github.com/decred/dcrd/dcrec/secp256k1/v4"

// Signature has no values.
type Signature struct{}

// Sign panics with secp256k1.ErrRefused.
func Sign(*secp256k1.PrivateKey, []byte) *Signature { panic(secp256k1.ErrRefused) }

// ParseDERSignature returns secp256k1.ErrRefused.
func ParseDERSignature([]byte) (*Signature, error) { return nil, secp256k1.ErrRefused }

func (*Signature) Serialize() []byte                        { panic(secp256k1.ErrRefused) }
func (*Signature) Verify([]byte, *secp256k1.PublicKey) bool { return false }
