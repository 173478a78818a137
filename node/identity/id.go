package identity

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base32"
	"fmt"
	"strings"
)

// WBAPattern is the pattern of a did:wba. It is a domain of at least two labels (no IP address), an
// optional port, and a path whose segments do not begin with a dot.
const WBAPattern = `^did:wba:(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?(?:%3A[1-9][0-9]{0,4})?(?::[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`

// ID is a public key, which identifies the holder of the private one. IDs compare with ==; the
// zero ID identifies nobody.
type ID [ed25519.PublicKeySize]byte

// The prefixes of the 32 bytes of a key. The varints of multicodec: 0xed01 is an Ed25519 key,
// 0x01 0x72 a CID of version 1 of a libp2p key. 0x00 0x24 is an identity multihash of 36
// bytes, and those are a protobuf: type 1 is Ed25519, and 32 bytes follow.
const (
	didBytes  = "\xed\x01"
	peerBytes = "\x00\x24\x08\x01\x12\x20"
	cidBytes  = "\x01\x72" + peerBytes
	didPrefix = "did:key:z" // z: base58btc follows
	cidPrefix = "b"         // base32
	maxText   = 100         // of any name, which bounds the time of base58
)

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// String returns the did:key, which is also the ID of a principal: did:key:z6Mk…
func (id ID) String() string { return didPrefix + base58(append([]byte(didBytes), id[:]...)) }

// PeerID returns the name in libp2p: 12D3KooW…
func (id ID) PeerID() string { return base58(append([]byte(peerBytes), id[:]...)) }

// Short returns eight letters and digits of the key, enough to distinguish the few sites of one
// place.
func (id ID) Short() string { return base32Lower.EncodeToString(id[:5]) }

// CID returns the peer ID as newer programs write it: bafzaajaiaejc…
func (id ID) CID() string {
	return cidPrefix + base32Lower.EncodeToString(append([]byte(cidBytes), id[:]...))
}

// Parse parses any of the three names, each in its only form.
func Parse(text string) (ID, error) {
	key := decode(text)
	if len(key) != len(ID{}) {
		return ID{}, fmt.Errorf("%.64q is not an identity: copy all of it; it looks like did:key:z6Mk… or 12D3KooW…; only Ed25519 keys are supported", text)
	}
	if !ID(key).Valid() {
		return ID{}, fmt.Errorf("%q is a key with which anybody can sign: its owner must create another", text)
	}
	return ID(key), nil
}

// decode returns the key of a name, nil for an invalid one.
func decode(text string) []byte {
	if len(text) > maxText {
		return nil
	}
	if rest, ok := strings.CutPrefix(text, didPrefix); ok {
		return after(didBytes, unbase58(rest))
	}
	rest, ok := strings.CutPrefix(text, cidPrefix)
	if !ok {
		return after(peerBytes, unbase58(text))
	}
	b, err := base32Lower.DecodeString(rest)
	if err != nil || base32Lower.EncodeToString(b) != rest { // DecodeString ignores line ends
		return nil
	}
	return after(cidBytes, b)
}

func after(before string, b []byte) []byte {
	if rest, ok := bytes.CutPrefix(b, []byte(before)); ok {
		return rest
	}
	return nil
}

// Valid reports whether only the holder of the private key can sign for this one. For points
// of small order, such as the zero ID, anyone can; crypto/ed25519 accepts them, as RFC 8032
// permits.
func (id ID) Valid() bool {
	id[31] &= 0x7f // the point with the other sign is as weak
	_, weak := smallOrder[id]
	return !weak
}

// smallOrder holds the y coordinates of all points of small order, in every encoding.
var smallOrder = map[ID]struct{}{
	{}:  {}, // order 4
	{1}: {}, // order 1
	{0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
		0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05}: {}, // order 8
	{0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
		0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a}: {}, // order 8
	nearPrime(0xec): {}, // p-1: order 2
	nearPrime(0xed): {}, // p, which is 0
	nearPrime(0xee): {}, // p+1, which is 1
}

// nearPrime returns 2^255-256 plus low.
func nearPrime(low byte) ID {
	id := ID(bytes.Repeat([]byte{0xff}, len(ID{})))
	id[0], id[31] = low, 0x7f
	return id
}

// Verify reports whether the key signed the message for the purpose.
func (id ID) Verify(purpose Purpose, message, signature []byte) bool {
	return id.Valid() && ed25519.VerifyWithOptions(id[:], message, signature, purpose.options()) == nil
}
