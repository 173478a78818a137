package discovery

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/node/identity"
)

// The bounds of a record. Each holds by itself, and MaxRecord and MaxShort besides.
const (
	MaxRecord = 1 << 10 // bytes of a record as it travels
	MaxShort  = 704     // bytes of a record without its public offer

	maxName      = 24
	maxAddresses = 8
	maxAddress   = 128 // bytes
	maxKinds     = 16
	maxPoints    = 128 // of one kind

	// MinLifetime and MaxLifetime bound how long a record holds.
	MinLifetime = time.Minute
	MaxLifetime = 7 * 24 * time.Hour
)

// Record is a site's announcement.
type Record struct {
	Site identity.ID

	// Sequence is greater in each record of the site than in the one before, over
	// restarts too; no clock is needed for it. The wiring keeps it. The first is 1.
	Sequence uint64

	// Name is the site's name, given by its owner: [a-z0-9_-]{1,24}. Two sites may have the same.
	Name string

	// Addresses are 1 to 8, the best first: http or https URLs without user, query and fragment, and
	// multiaddrs without the site's own ID. Examples are /ip4/192.0.2.7/udp/8473/quic-v1 and
	// /ip4/…/p2p/RELAY/p2p-circuit. A URL's host of HostName(Site) stands for the addresses at which
	// media see the site: these change without a new record.
	Addresses []string

	// Digest tells two offers apart, zero for none. That of a public offer is made by
	// Sign; any other is the wiring's, which must not let anybody guess at an offer.
	Digest [sha256.Size]byte

	// Offer lists the points that the owner made public, by kind; nil for none.
	Offer []Kind

	// Lifetime is for how long the record holds once it was received, in whole seconds.
	// The site makes another before.
	Lifetime time.Duration
}

// Kind is a kind of points and the names of those, as a public offer has them: no two
// alike, in the order of strings.Compare.
type Kind struct {
	_      struct{} `cbor:",toarray"`
	Kind   string   // [a-z0-9_-]{1,24}, as Points
	Points []string
}

// Label is a name for the site that no other has, made of its identity:
// agentsite-k5qjb3xz.
func Label(site identity.ID) string { return "agentsite-" + site.Short() }

// HostName returns the host name of a site on its link.
func HostName(site identity.ID) string { return Label(site) + ".local" }

// check returns why a record is invalid.
func (r *Record) check() error {
	if !r.Site.Valid() {
		return fmt.Errorf("a record needs the key of a site")
	}
	if r.Sequence == 0 {
		return fmt.Errorf("the sequence of a record is at least 1")
	}
	if !isName(r.Name) {
		return fmt.Errorf("%.64q cannot name a site: use a-z, 0-9, _ and -, at most %d of them", r.Name, maxName)
	}
	if len(r.Addresses) == 0 || len(r.Addresses) > maxAddresses {
		return fmt.Errorf("a record has 1 to %d addresses, not %d", maxAddresses, len(r.Addresses))
	}
	for _, a := range r.Addresses {
		if err := checkAddress(a); err != nil {
			return err
		}
	}
	if r.Lifetime < MinLifetime || r.Lifetime > MaxLifetime || r.Lifetime%time.Second != 0 {
		return fmt.Errorf("the lifetime of a record is in whole seconds, from %v to %v, not %v", MinLifetime, MaxLifetime, r.Lifetime)
	}
	if len(r.Offer) > maxKinds {
		return fmt.Errorf("an offer has at most %d kinds, not %d", maxKinds, len(r.Offer))
	}
	for i, k := range r.Offer {
		if i > 0 && r.Offer[i-1].Kind >= k.Kind {
			return fmt.Errorf("the kinds of an offer are sorted and unique: %.32q cannot follow %.32q", k.Kind, r.Offer[i-1].Kind)
		}
		if err := k.check(); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kind) check() error {
	if !isName(k.Kind) {
		return fmt.Errorf("%.64q cannot name a kind of points", k.Kind)
	}
	if len(k.Points) == 0 || len(k.Points) > maxPoints {
		return fmt.Errorf("an offer has 1 to %d points of a kind, not %d", maxPoints, len(k.Points))
	}
	for i, p := range k.Points {
		if !isName(p) {
			return fmt.Errorf("%.64q cannot name a point", p)
		}
		if i > 0 && k.Points[i-1] >= p {
			return fmt.Errorf("the points of an offer are sorted and unique: %.32q cannot follow %.32q", p, k.Points[i-1])
		}
	}
	return nil
}

// isName reports whether s can name a site, a kind or a point.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, isNotNameRune)
}

func isNotNameRune(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-'
}

// checkAddress checks a URL or multiaddr, which must be in its canonical form.
func checkAddress(text string) error {
	if len(text) > maxAddress {
		return fmt.Errorf("the address %.64q… is longer than %d bytes", text, maxAddress)
	}
	if isMultiaddr(text) {
		return checkMultiaddr(text)
	}
	u, err := url.Parse(text)
	if err != nil || u.String() != text || strings.ContainsFunc(text, isNotPrintable) || !slices.Contains([]string{"http", "https"}, u.Scheme) ||
		u.Hostname() == "" || u.Port() == "0" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return fmt.Errorf("%.160q is not the address of a site, such as https://192.0.2.7:8473/mcp", text)
	}
	return nil
}
