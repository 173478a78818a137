package passkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"math/big"
)

// Algorithms of COSE, in the order in which a page should ask for them. Windows has passkeys of the last only.
const (
	es256 = -7
	eddsa = -8
	rs256 = -257
)

// Algorithms returns the numbers of the algorithms that are verified, the preferred first.
func Algorithms() []int { return []int{es256, eddsa, rs256} }

// Names of the fields of COSE keys.
const (
	keyType      = 1
	keyAlgorithm = 3
	keyCurve     = -1 // of RSA the modulus
	keyX         = -2 // of RSA the exponent
	keyY         = -3
)

// publicKey is a key of one of the algorithms.
type publicKey struct{ crypto.PublicKey }

var errKey = errors.New("the key is of no kind that is verified here")

// parseKey parses a COSE key, whose fields are exactly those of its kind.
func parseKey(b []byte) (publicKey, error) {
	var fields map[int]any
	if decoding.Unmarshal(b, &fields) != nil {
		return publicKey{}, errKey
	}
	// is reports whether the key has so many fields, and among them these numbers.
	is := func(many, kind, algorithm int) bool {
		return len(fields) == many && number(fields[keyType]) == kind && number(fields[keyAlgorithm]) == algorithm
	}
	x, _ := fields[keyX].([]byte)
	switch {
	case is(5, 2, es256) && number(fields[keyCurve]) == 1:
		y, _ := fields[keyY].([]byte)
		if len(x) != 32 || len(y) != 32 {
			return publicKey{}, errKey
		}
		point := append(append([]byte{4}, x...), y...)
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
		if err != nil {
			return publicKey{}, errKey
		}
		return publicKey{key}, nil
	case is(4, 1, eddsa) && number(fields[keyCurve]) == 6 && len(x) == ed25519.PublicKeySize:
		return publicKey{ed25519.PublicKey(x)}, nil
	case is(4, 3, rs256) && len(x) == 3 && x[0] == 1 && x[1] == 0 && x[2] == 1:
		modulus, _ := fields[keyCurve].([]byte)
		n := new(big.Int).SetBytes(modulus)
		if bits := n.BitLen(); bits < 2048 || bits > 4096 || len(modulus)*8 != bits {
			return publicKey{}, errKey
		}
		return publicKey{&rsa.PublicKey{N: n, E: 1<<16 + 1}}, nil
	}
	return publicKey{}, errKey
}

// number returns an integer of CBOR, 0 for anything else.
func number(v any) int {
	switch n := v.(type) {
	case uint64:
		return int(min(n, 1<<15))
	case int64:
		return int(max(n, -1<<15))
	}
	return 0
}

// verify reports whether the signature is the key's.
func (k publicKey) verify(text, signature []byte) bool {
	hash := sha256.Sum256(text)
	switch key := k.PublicKey.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, hash[:], signature)
	case ed25519.PublicKey:
		return ed25519.Verify(key, text, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, hash[:], signature) == nil
	}
	return false
}
