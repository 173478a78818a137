package passkey

import (
	"bytes"
	"testing"
)

// seeds returns data of an authenticator: data without and with a credential, its attestation, and its key.
var seeds = func() (all [][]byte) {
	key := append([]byte("\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20"), bytes.Repeat([]byte{1}, 32)...)
	key = append(append(key, 0x22, 0x58, 0x20), bytes.Repeat([]byte{2}, 32)...)
	data := append(bytes.Repeat([]byte{7}, 32), userPresent|userVerified, 0, 0, 0, 1)
	made := append(bytes.Clone(data), make([]byte, guidSize)...)
	made[32] |= hasCredential
	made = append(append(append(made, 0, 4), "abcd"...), key...)
	object := append([]byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58"), byte(len(made)))
	okp := append([]byte("\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20"), bytes.Repeat([]byte{3}, 32)...)
	return [][]byte{key, okp, data, made, append(object, made...)}
}()

func addSeeds(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
}

// FuzzAuthData: what is taken for authenticator data is all read, and has a credential where it says so.
func FuzzAuthData(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseAuthData(b)
		if err != nil {
			return
		}
		if (d.flags&hasCredential != 0) != (len(d.id) > 0 && len(d.key) > 0) || d.flags != b[32] {
			t.Errorf("%+v", d)
		}
		if _, err := parseAuthData(append(bytes.Clone(b), 0)); err == nil {
			t.Error("a further byte is not read")
		}
	})
}

// FuzzAttestation: what is taken for an attestation has data of an authenticator.
func FuzzAttestation(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := parseAttestation(b); err == nil && !bytes.Contains(b, d.host[:]) {
			t.Errorf("%+v", d)
		}
	})
}

// FuzzKey: what is taken for a key refuses a signature that is none.
func FuzzKey(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if key, err := parseKey(b); err == nil && key.verify([]byte("text"), b) {
			t.Errorf("%+v verified %x", key, b)
		}
	})
}

// FuzzClientData: what is taken for client data names the challenge and the origin.
func FuzzClientData(f *testing.F) {
	f.Add([]byte(`{"type":"webauthn.get","challenge":"AAAAAAAAAAAAAAAAAAAAAA","origin":"http://x:1","crossOrigin":false}`))
	e := Expected{Origin: "http://x:1", Challenge: make([]byte, 16)}
	f.Fuzz(func(t *testing.T, b []byte) {
		if e.checkClientData(b, "webauthn.get") == nil && len(b) < 60 {
			t.Errorf("%s", b)
		}
	})
}
