package passkey_test

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"testing"

	"agentsite/transport/passkey"
	"agentsite/transport/passkey/passkeytest"
)

const (
	host   = "agentsite.localhost"
	origin = "http://agentsite.localhost:37421"
)

var challenge = passkey.Challenge("test", []byte("a"), []byte("b"))

var expected = passkey.Expected{Host: host, Origin: origin, Challenge: challenge}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// registered returns a browser and its passkey.
func registered(t *testing.T, algorithm int) (*passkeytest.Browser, passkey.Credential) {
	t.Helper()
	b := passkeytest.New(host, origin, algorithm)
	c, err := passkey.Register(expected, b.Create(challenge))
	if err != nil || !bytes.Equal(c.ID, b.ID) {
		t.Fatal(c, err)
	}
	return b, c
}

// TestAlgorithms: each algorithm's passkeys are registered, and what they sign is verified.
func TestAlgorithms(t *testing.T) {
	for _, algorithm := range passkey.Algorithms() {
		b, c := registered(t, algorithm)
		b.Client["other"] = map[string]any{"x": "browsers add members"}
		b.Extensions, b.Flags = []byte("\xa1\x63abc\xf5"), b.Flags|1<<7
		if _, err := c.Verify(expected, b.Get(challenge)); err != nil {
			t.Errorf("%d: %v", algorithm, err)
		}
		a := b.Get(challenge)
		a.Signature[len(a.Signature)/2] ^= 1
		if _, err := c.Verify(expected, a); err == nil {
			t.Errorf("%d: another signature passes", algorithm)
		}
		_, other := registered(t, algorithm)
		other.ID = c.ID
		if _, err := other.Verify(expected, b.Get(challenge)); err == nil {
			t.Errorf("%d: another key passes", algorithm)
		}
	}
}

// TestVerify: an assertion with one thing wrong, and the right signature of that, is refused.
func TestVerify(t *testing.T) {
	type browser = passkeytest.Browser
	for what, change := range map[string]func(*browser){
		"another origin":             func(b *browser) { b.Origin = "http://evil.localhost:37421" },
		"another port":               func(b *browser) { b.Origin = "http://agentsite.localhost:37422" },
		"no port":                    func(b *browser) { b.Origin = "http://agentsite.localhost" },
		"another host":               func(b *browser) { b.Host = "localhost" },
		"a frame of another page":    func(b *browser) { b.Client["crossOrigin"] = true },
		"a frame, by its top":        func(b *browser) { b.Client["topOrigin"] = origin },
		"a registration's type":      func(b *browser) { b.Client["type"] = "webauthn.create" },
		"a type that is none":        func(b *browser) { b.Client["type"] = 1 },
		"another challenge":          func(b *browser) { b.Client["challenge"] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" },
		"the challenge with padding": func(b *browser) { b.Client["challenge"] = b64(challenge) + "=" },
		"no challenge":               func(b *browser) { b.Client["challenge"] = "" },
		"client data that is long":   func(b *browser) { b.Client["x"] = string(make([]byte, 5000)) },
		"nobody present":             func(b *browser) { b.Flags = passkeytest.Verified },
		"nobody verified":            func(b *browser) { b.Flags = passkeytest.Present },
		"a backup of what has none":  func(b *browser) { b.Flags |= 1 << 4 },
		"a credential that is none":  func(b *browser) { b.Flags |= 1 << 6 },
		"extensions that are none":   func(b *browser) { b.Flags |= 1 << 7 },
		"extensions without a flag":  func(b *browser) { b.Extensions = []byte("\xa0") },
		"bytes after extensions":     func(b *browser) { b.Flags, b.Extensions = b.Flags|1<<7, []byte("\xa0\xa0") },
		"null for extensions":        func(b *browser) { b.Flags, b.Extensions = b.Flags|1<<7, []byte("\xf6") },
		"deep extensions":            func(b *browser) { b.Flags, b.Extensions = b.Flags|1<<7, bytes.Repeat([]byte("\xa1\x61a"), 50) },
		"a credential": func(b *browser) {
			made := b.Create(challenge).Attestation
			b.Flags, b.Extensions = b.Flags|1<<6, made[bytes.Index(made, []byte("authData"))+10+37:]
		},
		"long extensions": func(b *browser) {
			b.Flags, b.Extensions = b.Flags|1<<7, append([]byte("\xa1\x63abc\x59\x11\x94"), make([]byte, 4500)...)
		},
		"data that is long":    func(b *browser) { b.Extensions = make([]byte, 5000) },
		"another passkey's ID": func(b *browser) { b.ID = []byte("another") },
		"no ID":                func(b *browser) { b.ID = nil },
	} {
		b, c := registered(t, -7)
		change(b)
		if _, err := c.Verify(expected, b.Get(challenge)); err == nil {
			t.Errorf("%s passes", what)
		}
	}
	b, c := registered(t, -7)
	for what, change := range map[string]func(*passkey.Assertion){
		"client data": func(a *passkey.Assertion) { a.ClientData = append(a.ClientData, ' ') },
		"data":        func(a *passkey.Assertion) { a.AuthData[36]++ },
		"short data":  func(a *passkey.Assertion) { a.AuthData = a.AuthData[:36] },
		"nothing":     func(a *passkey.Assertion) { *a = passkey.Assertion{ID: a.ID} },
		"a twice named member": func(a *passkey.Assertion) {
			a.ClientData = append([]byte(`{"type":"webauthn.get",`), a.ClientData[1:]...)
		},
	} {
		a := b.Get(challenge)
		if change(&a); !bytes.Equal(a.ID, c.ID) {
			t.Fatal(what)
		}
		if _, err := c.Verify(expected, a); err == nil {
			t.Errorf("%s that was changed after it was signed passes", what)
		}
	}
	if _, err := c.Verify(passkey.Expected{Host: host, Origin: origin}, b.Get(nil)); err == nil {
		t.Error("no challenge is a challenge")
	}
}

// TestCount: a passkey that counts its signatures counts on, or there is a copy of it.
func TestCount(t *testing.T) {
	b, c := registered(t, -7)
	b.Count = 7 // the next is the eighth
	c, err := c.Verify(expected, b.Get(challenge))
	if err != nil || c.Count != 8 {
		t.Fatal(c.Count, err)
	}
	for _, count := range []uint32{0, 6, 7} {
		b.Count = count
		if next, err := c.Verify(expected, b.Get(challenge)); err == nil || next.Count != c.Count {
			t.Errorf("after 8 it says %d, and passes", b.Count)
		}
	}
	b.Count = 8
	if c, err = c.Verify(expected, b.Get(challenge)); err != nil || c.Count != 9 {
		t.Error(c.Count, err)
	}
}

// TestRegister: a registration with one thing wrong is refused.
func TestRegister(t *testing.T) {
	type browser = passkeytest.Browser
	for what, change := range map[string]func(*browser){
		"another origin":        func(b *browser) { b.Origin = "http://agentsite.localhost:1" },
		"an assertion's type":   func(b *browser) { b.Client["type"] = "webauthn.get" },
		"another host":          func(b *browser) { b.Host = "localhost" },
		"nobody verified":       func(b *browser) { b.Flags = passkeytest.Present },
		"nobody present":        func(b *browser) { b.Flags = passkeytest.Verified },
		"no ID":                 func(b *browser) { b.ID = nil },
		"a long ID":             func(b *browser) { b.ID = make([]byte, 1024) },
		"bytes at the end":      func(b *browser) { b.Extensions = []byte{0} },
		"another algorithm":     func(b *browser) { b.Key[3] = -35 },
		"another type of key":   func(b *browser) { b.Key[1] = 1 },
		"another curve":         func(b *browser) { b.Key[-1] = 2 },
		"a point that is none":  func(b *browser) { b.Key[-2] = make([]byte, 32) },
		"a short coordinate":    func(b *browser) { b.Key[-3] = []byte{1} },
		"a sign for coordinate": func(b *browser) { b.Key[-3] = true },
		"a further field":       func(b *browser) { b.Key[-4] = []byte{1} },
		"a field that is lost":  func(b *browser) { delete(b.Key, -1) },
		"a small modulus": func(b *browser) {
			b.Key = map[int]any{1: 3, 3: -257, -1: bytes.Repeat([]byte{255}, 128), -2: []byte{1, 0, 1}}
		},
		"a large modulus": func(b *browser) {
			b.Key = map[int]any{1: 3, 3: -257, -1: bytes.Repeat([]byte{255}, 1024), -2: []byte{1, 0, 1}}
		},
		"a small exponent": func(b *browser) {
			b.Key = map[int]any{1: 3, 3: -257, -1: bytes.Repeat([]byte{255}, 256), -2: []byte{3}}
		},
		"a short Ed25519 key": func(b *browser) { b.Key = map[int]any{1: 1, 3: -8, -1: 6, -2: []byte{3}} },
	} {
		b := passkeytest.New(host, origin, -7)
		change(b)
		if c, err := passkey.Register(expected, b.Create(challenge)); err == nil {
			t.Errorf("%s passes: %+v", what, c)
		}
	}
	b := passkeytest.New(host, origin, -7)
	good := b.Create(challenge)
	for what, attestation := range map[string][]byte{
		"no credential":    append([]byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58\x25"), b.Get(challenge).AuthData...),
		"another format":   bytes.Replace(good.Attestation, []byte("dnone"), []byte("dsome"), 1),
		"a statement":      bytes.Replace(good.Attestation, []byte("attStmt\xa0"), []byte("attStmt\xa1\x61x\xf5"), 1),
		"no map":           bytes.Replace(good.Attestation, []byte("attStmt\xa0"), []byte("attStmt\xf6"), 1),
		"a further member": append([]byte{good.Attestation[0] + 1, 0x61, 'x', 0xf5}, good.Attestation[1:]...),
		"a byte after it":  append(bytes.Clone(good.Attestation), 0),
		"half":             good.Attestation[:len(good.Attestation)/2],
		"nothing":          nil,
		"too much":         make([]byte, 9<<10),
	} {
		if _, err := passkey.Register(expected, passkey.Registration{ClientData: good.ClientData, Attestation: attestation}); err == nil {
			t.Errorf("an attestation with %s passes", what)
		}
	}
	if _, err := passkey.Register(expected, good); err != nil {
		t.Error(err)
	}
}

// TestChallenge: values that are cut otherwise, or are for another use, have another challenge.
func TestChallenge(t *testing.T) {
	all := map[string]bool{}
	for _, parts := range [][]string{{"x"}, {"x", ""}, {"x", "a", "bc"}, {"x", "ab", "c"}, {"x", "abc"}, {"xabc"}, {"y", "abc"}, {"x", "abc", ""}} {
		var values [][]byte
		for _, p := range parts[1:] {
			values = append(values, []byte(p))
		}
		all[string(passkey.Challenge(parts[0], values...))] = true
	}
	if len(all) != 8 {
		t.Errorf("%d challenges for 8 values: %q", len(all), slices.Sorted(maps.Keys(all)))
	}
}
