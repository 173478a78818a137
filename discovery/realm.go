package discovery

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// Realm is a private group of sites and people that can find each other. They share a secret, from
// which the names in the global network are derived. The public realm has no secret. The zero Realm
// means no realm.
type Realm struct {
	Name   string
	secret [realmSecret]byte
	public bool
}

const (
	realmSecret = 16
	publicName  = "public"
)

var realmText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// PublicRealm returns the realm of everybody.
func PublicRealm() Realm { return Realm{Name: publicName, public: true} }

// NewRealm returns a realm with a new secret. The name is [a-z0-9_-]{1,24}.
func NewRealm(name string) (Realm, error) {
	if !isName(name) || name == publicName {
		return Realm{}, fmt.Errorf("%.64q cannot name a realm: use a-z, 0-9, _ and -, at most %d of them, but not %s, which names the public one", name, maxName, publicName)
	}
	r := Realm{Name: name}
	rand.Read(r.secret[:])
	return r, nil
}

// ParseRealm parses the result of String.
func ParseRealm(text string) (Realm, error) {
	if text == publicName {
		return PublicRealm(), nil
	}
	name, secret, _ := strings.Cut(text, ":")
	b, err := realmText.DecodeString(secret)
	if !isName(name) || name == publicName || err != nil || len(b) != realmSecret || realmText.EncodeToString(b) != secret {
		return Realm{}, errors.New("a realm is a name and its secret, name:secret, as agentsite realm new prints it, or the word public") // which of them is wrong may be the secret
	}
	return Realm{Name: name, secret: [realmSecret]byte(b)}, nil
}

// String returns the realm with its secret, name:secret, or public.
func (r Realm) String() string {
	if r.public || r.Name == "" {
		return r.Name
	}
	return r.Name + ":" + realmText.EncodeToString(r.secret[:])
}

// GoString omits the secret, for logs.
func (r Realm) GoString() string { return "realm " + r.Name }

// Exists reports whether it is not the zero Realm.
func (r Realm) Exists() bool { return r.Name != "" }

// Public reports whether it is the public realm.
func (r Realm) Public() bool { return r.public }

// Hash derives a name from the realm's secret, for one purpose and some words. Names of the
// public realm can be derived by everybody; no other realm shares them.
func (r Realm) Hash(purpose string, words ...string) [sha256.Size]byte {
	h := hmac.New(sha256.New, r.secret[:])
	for _, w := range append([]string{"agentsite", r.Name, purpose}, words...) {
		fmt.Fprintf(h, "%d:%s,", len(w), w) // no two lists are written alike
	}
	return [sha256.Size]byte(h.Sum(nil))
}
