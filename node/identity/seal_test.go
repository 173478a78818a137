package identity

import (
	"bytes"
	"crypto/ecdh"
	"crypto/sha512"
	"testing"
)

func TestSeal(t *testing.T) {
	for range 50 {
		key := New()
		secret := sha512.Sum512(key.private.Seed())
		private, err := ecdh.X25519().NewPrivateKey(secret[:32])
		if err != nil {
			t.Fatal(err)
		}
		if u, err := montgomery(key.ID()); err != nil || !bytes.Equal(u, private.PublicKey().Bytes()) {
			t.Fatalf("%x of %v, %v", u, key, err)
		}
	}
	key, message := New(), bytes.Repeat([]byte("secret "), 1000)
	sealed, err := key.ID().Seal("backup", message)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := key.Open("backup", sealed); err != nil || !bytes.Equal(got, message) {
		t.Errorf("%q, %v", got, err)
	}
	again, err := key.ID().Seal("backup", message)
	if err != nil || bytes.Equal(again, sealed) {
		t.Errorf("the same message is sealed the same way, %v", err)
	}
	again[len(again)-1] ^= 1
	for what, open := range map[string]func() ([]byte, error){
		"another key":     func() ([]byte, error) { return New().Open("backup", sealed) },
		"another purpose": func() ([]byte, error) { return key.Open("grant", sealed) },
		"a changed text":  func() ([]byte, error) { return key.Open("backup", again) },
		"a short text":    func() ([]byte, error) { return key.Open("backup", sealed[:10]) },
		"no text":         func() ([]byte, error) { return key.Open("backup", nil) },
	} {
		if got, err := open(); err == nil || got != nil {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// TestSealRefusesSmallOrder: a key for which everybody knows the shared secret gets nothing.
func TestSealRefusesSmallOrder(t *testing.T) {
	for _, id := range []ID{{1}, {}} {
		if sealed, err := id.Seal("backup", []byte("x")); err == nil {
			t.Errorf("%x: %x", id, sealed)
		}
	}
}
