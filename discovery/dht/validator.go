package dht

import (
	"errors"
	"fmt"
	"strings"

	"agentsite/discovery"
	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/peer"
)

const namespace = "agentsite"

// keyOf is under what a site's record is kept in the public realm.
func keyOf(site peer.ID) string { return "/" + namespace + "/" + site.String() }

// validator takes records under the keys of their sites, and of two the newer.
type validator struct{}

// Validate reports why a record is not to be kept under a key.
func (validator) Validate(key string, value []byte) error {
	_, err := open(key, value)
	return err
}

// Select returns which record is the newest of those that are valid, the first of several.
func (validator) Select(key string, values [][]byte) (int, error) {
	best, sequence := -1, uint64(0)
	for i, v := range values {
		if r, err := open(key, v); err == nil && (best < 0 || r.Sequence > sequence) {
			best, sequence = i, r.Sequence
		}
	}
	if best < 0 {
		return 0, errors.New("none is a record of the site")
	}
	return best, nil
}

func open(key string, value []byte) (*discovery.Signed, error) {
	text, ok := strings.CutPrefix(key, "/"+namespace+"/")
	id, err := identity.Parse(text)
	if !ok || err != nil || id.PeerID() != text {
		return nil, fmt.Errorf("%.80q is no key of a site", key)
	}
	r, err := discovery.Open(value)
	if err != nil {
		return nil, err
	}
	if r.Site != id {
		return nil, fmt.Errorf("%w: it is that of %v", discovery.ErrForged, r.Site)
	}
	return r, nil
}
