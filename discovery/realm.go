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

// Realm is who finds whom in the global network: the sites and people of a household or a
// company, who share a secret, or everybody. Under what names a realm's sites are found,
// only who has the secret can make or recognise. The zero Realm is none.
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

// PublicRealm is everybody's.
func PublicRealm() Realm { return Realm{Name: publicName, public: true} }

// NewRealm makes a realm with a secret of its own. The name is [a-z0-9_-]{1,24}.
func NewRealm(name string) (Realm, error) {
	if !isName(name) || name == publicName {
		return Realm{}, fmt.Errorf("%.64q cannot name a realm: use a-z, 0-9, _ and -, at most %d of them, and not %s, which is everybody's", name, maxName, publicName)
	}
	r := Realm{Name: name}
	rand.Read(r.secret[:])
	return r, nil
}

// ParseRealm reads what String wrote.
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

// String is the realm with its secret: name:secret, or public. It is for those in it.
func (r Realm) String() string {
	if r.public || r.Name == "" {
		return r.Name
	}
	return r.Name + ":" + realmText.EncodeToString(r.secret[:])
}

// GoString keeps the secret out of logs.
func (r Realm) GoString() string { return "realm " + r.Name }

// Exists reports whether it is one.
func (r Realm) Exists() bool { return r.Name != "" }

// Public reports whether it is everybody's.
func (r Realm) Public() bool { return r.public }

// Hash is a name that only the realm can make, of words for one purpose. That of the
// public realm everybody can; no other realm has its name.
func (r Realm) Hash(purpose string, words ...string) [sha256.Size]byte {
	h := hmac.New(sha256.New, r.secret[:])
	for _, w := range append([]string{"agentsite", r.Name, purpose}, words...) {
		fmt.Fprintf(h, "%d:%s,", len(w), w) // no two lists are written alike
	}
	return [sha256.Size]byte(h.Sum(nil))
}
