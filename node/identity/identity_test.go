package identity

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
)

func seeded(t testing.TB, seed string) Key {
	b, err := hex.DecodeString(seed)
	if err != nil {
		t.Fatal(err)
	}
	return Key{ed25519.NewKeyFromSeed(b)}
}

// TestVectors are those of the did:key method (its test vectors ed25519-x25519.json),
// of libp2p's peer-ids and http-peer-id-auth specifications, and of a public IPFS
// gateway's tests for the pair of peer ID and CID.
func TestVectors(t *testing.T) {
	for _, v := range []struct{ seed, public, did, peer string }{
		{seed: strings.Repeat("00", 32), public: "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29",
			did: "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp", peer: "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"},
		{seed: strings.Repeat("00", 31) + "01", did: "did:key:z6MkjchhfUsD6mmvni8mCdXHw216Xrm9bQe2mBH1P5RDjVJG"},
		{seed: strings.Repeat("00", 31) + "02", did: "did:key:z6MknGc3ocHs3zdPiJbnaaqDi58NGb4pk1Sp9WxWufuXSdxf"},
		{seed: strings.Repeat("00", 31) + "03", did: "did:key:z6MkvqoYXQfDDJRv8L4wKzxYeuKyVZBfi9Qo6Ro8MiLH3kDQ"},
		{seed: strings.Repeat("00", 31) + "04", did: "did:key:z6MkwW6aqMnjgrhJXFUko3NnZPGzVpkNzhYK7yEhnsibmLwL"},
		{seed: "7e0830617c4a7de83925dfb2694556b12936c477a0e1feb2e148ec9da60fee7d", public: "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e",
			peer: "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq"},
	} {
		id := seeded(t, v.seed).ID()
		if v.public != "" && hex.EncodeToString(id[:]) != v.public {
			t.Errorf("the public key of %s is %x", v.seed, id[:])
		}
		if v.did != "" && id.String() != v.did {
			t.Errorf("the did:key of %s is %s", v.seed, id)
		}
		if v.peer != "" && id.PeerID() != v.peer {
			t.Errorf("the peer ID of %s is %s", v.seed, id.PeerID())
		}
	}
	const peer, cid = "12D3KooWAsKeVQRVqBi2uzfVub7L6b7oByD1dGmorN644bEx6TyT", "bafzaajaiaejcad45sqaz4vc7ftbzbyw5clcjhifslsklqzkqn4hcghvuqmim7qok"
	if id, err := Parse(cid); err != nil || id.PeerID() != peer || id.CID() != cid {
		t.Errorf("%s is %s, %s (%v)", cid, id.PeerID(), id.CID(), err)
	}
}

// TestBase58 are the examples of draft-msporny-base58-03.
func TestBase58(t *testing.T) {
	for text, b := range map[string][]byte{
		"":                  {},
		"1":                 {0},
		"2NEpo7TZRRrLZSi2U": []byte("Hello World!"),
		"USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z": []byte("The quick brown fox jumps over the lazy dog."),
		"11233QC4": {0, 0, 0x28, 0x7f, 0xb4, 0xcd},
	} {
		if got := base58(b); got != text {
			t.Errorf("%x is %s, want %s", b, got, text)
		}
		if got := unbase58(text); got == nil || !bytes.Equal(got, b) {
			t.Errorf("%s is %x", text, got)
		}
	}
}

func TestParse(t *testing.T) {
	id := seeded(t, strings.Repeat("07", 32)).ID()
	for _, text := range []string{id.String(), id.PeerID(), id.CID()} {
		if got, err := Parse(text); err != nil || got != id {
			t.Errorf("%s is %v (%v)", text, got, err)
		}
	}
	var low ID
	const no, weak = "is not an identity", "anybody can sign"
	for text, want := range map[string]string{
		"": no, "greenhouse": no, "did:key:z": no, "did:web:example.com": no, strings.Repeat("z", 5000): no,
		id.String()[:40]: no, id.String() + "1": no, id.String() + "#x": no, strings.ToLower(id.String()): no,
		strings.ToUpper(id.CID()): no, id.CID()[:60] + "\n" + id.CID()[60:]: no, id.CID() + "=": no,
		"1" + id.PeerID(): no, " " + id.PeerID(): no,
		low.String(): weak, low.PeerID(): weak, low.CID(): weak,
		"QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N":            no, // RSA
		"did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme": no, // secp256k1
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %s", text, err, want)
		}
	}
}

// TestWeakKeys shows that plain Ed25519 takes a signature that nobody made, for each
// key that is refused here.
func TestWeakKeys(t *testing.T) {
	forged := make([]byte, ed25519.SignatureSize)
	forged[0] = 1 // R is the neutral point and S is zero
	for id := range smallOrder {
		for _, sign := range []byte{0, 0x80} {
			id := id
			id[31] |= sign
			fooled := 0
			for n := range 200 {
				message := fmt.Append(nil, n)
				if ed25519.Verify(id[:], message, forged) || ed25519.VerifyWithOptions(id[:], message, forged, Purpose("test").options()) == nil {
					fooled++
				}
				if id.Verify("test", message, forged) {
					t.Fatalf("%x signed %q", id[:], message)
				}
			}
			if fooled == 0 {
				t.Errorf("%x fools nobody", id[:])
			}
		}
	}
}

func TestSign(t *testing.T) {
	key, other, message := New(), New(), []byte("lamp on")
	signature := key.Sign("grant", message)
	if !key.ID().Verify("grant", message, signature) {
		t.Fatal("it did not sign")
	}
	for name, forged := range map[string]bool{
		"another purpose": key.ID().Verify("grants", message, signature),
		"no purpose":      key.ID().Verify("", message, signature),
		"another key":     other.ID().Verify("grant", message, signature),
		"another message": key.ID().Verify("grant", []byte("lamp off"), signature),
		"a short one":     key.ID().Verify("grant", message, signature[:63]),
		"none":            key.ID().Verify("grant", message, nil),
		"plain Ed25519":   key.ID().Verify("grant", message, ed25519.Sign(key.private, message)),
		"the reverse":     ed25519.Verify(key.private.Public().(ed25519.PublicKey), message, signature),
	} {
		if forged {
			t.Errorf("%s: it is taken for a signature", name)
		}
	}
}

func TestPEM(t *testing.T) {
	key := New()
	text := key.PEM()
	if again, err := ParsePEM(text); err != nil || again.ID() != key.ID() {
		t.Fatalf("%v, %v", again, err)
	}
	rsa := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: []byte{1}})
	x25519, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(x25519)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"empty":     {nil, "no complete private key"},
		"truncated": {text[:len(text)/2], "private key"},
		"cut short": {pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: []byte{0x30, 0x2e, 0x02, 0x01}}), "is damaged"},
		"RSA":       {rsa, "no complete private key"},
		"X25519":    {pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), "not Ed25519"},
		"two":       {append(bytes.Clone(text), text...), "more than one"},
		"before":    {append([]byte("hello\n"), text...), "more than one"},
	} {
		if _, err := ParsePEM(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for _, shown := range []string{fmt.Sprint(key), fmt.Sprintf("%#v %+v %s", key, key, key)} {
		if strings.Contains(shown, hex.EncodeToString(key.private[:8])) || strings.Contains(shown, fmt.Sprint(key.private[0], key.private[1])) {
			t.Errorf("a key prints as %s", shown)
		}
	}
}

// FuzzNames: whatever is read is written the same again, in one of the three forms.
func FuzzNames(f *testing.F) {
	id := seeded(f, strings.Repeat("07", 32)).ID()
	for _, text := range []string{id.String(), id.PeerID(), id.CID(), "did:key:z", "b", "1", "did:key:z111111111111111111111111111111111111111111111111"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Parse(text)
		if err != nil {
			return
		}
		if text != id.String() && text != id.PeerID() && text != id.CID() {
			t.Fatalf("%q is %s", text, id)
		}
		if !id.Valid() {
			t.Fatalf("%q is weak", text)
		}
	})
}

func FuzzBase58(f *testing.F) {
	f.Add("11z", []byte{0, 0, 57})
	f.Fuzz(func(t *testing.T, text string, b []byte) {
		if len(text) > 200 || len(b) > 200 {
			return
		}
		if got := unbase58(text); got != nil && base58(got) != text {
			t.Fatalf("%q is %x is %q", text, got, base58(got))
		}
		if got := unbase58(base58(b)); !bytes.Equal(got, b) {
			t.Fatalf("%x is %q is %x", b, base58(b), got)
		}
	})
}

func FuzzParsePEM(f *testing.F) {
	f.Add(seeded(f, strings.Repeat("07", 32)).PEM())
	f.Fuzz(func(t *testing.T, text []byte) {
		if key, err := ParsePEM(text); err == nil {
			if again, err := ParsePEM(key.PEM()); err != nil || again.ID() != key.ID() {
				t.Fatal(err)
			}
		}
	})
}
