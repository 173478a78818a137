package identity

import (
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/sha512"
	"errors"
	"math/big"
	"slices"
)

// Seal encrypts a message for the holder of a key and for a purpose, by HPKE (RFC 9180) in base mode with
// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and ChaCha20-Poly1305. It does not prove who sealed it.
func (id ID) Seal(purpose Purpose, message []byte) ([]byte, error) {
	u, err := montgomery(id)
	if err != nil {
		return nil, err
	}
	public, err := ecdh.X25519().NewPublicKey(u)
	if err != nil {
		return nil, err
	}
	to, err := hpke.NewDHKEMPublicKey(public)
	if err != nil {
		return nil, err
	}
	return hpke.Seal(to, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), purpose.info(), message)
}

// Open decrypts what was sealed for the key and the purpose.
func (k Key) Open(purpose Purpose, sealed []byte) ([]byte, error) {
	secret := sha512.Sum512(k.private.Seed()) // RFC 8032, section 5.1.5; X25519 clamps it
	private, err := ecdh.X25519().NewPrivateKey(secret[:32])
	if err != nil {
		return nil, err
	}
	by, err := hpke.NewDHKEMPrivateKey(private)
	if err != nil {
		return nil, err
	}
	message, err := hpke.Open(by, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), purpose.info(), sealed)
	if err != nil {
		return nil, errors.New("it was not sealed for this key, or it was changed")
	}
	return message, nil
}

func (p Purpose) info() []byte { return []byte("agentsite seal 1 " + string(p)) }

// montgomery returns the X25519 public key of an Ed25519 one: u = (1+y)/(1-y), RFC 7748, section 4.1.
func montgomery(id ID) ([]byte, error) {
	prime := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	coded := id
	coded[31] &= 0x7f // the sign of x
	slices.Reverse(coded[:])
	y, one := new(big.Int).SetBytes(coded[:]), big.NewInt(1)
	below := new(big.Int).Sub(one, y)
	if below.ModInverse(below.Mod(below, prime), prime) == nil {
		return nil, errors.New("nothing can be sealed for this key")
	}
	u := new(big.Int).Add(one, y)
	u.Mod(u.Mul(u, below), prime)
	out := u.FillBytes(make([]byte, 32))
	slices.Reverse(out)
	return out, nil
}
