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

// keyOf returns the key of a site's record in the public realm.
func keyOf(site peer.ID) string { return "/" + namespace + "/" + site.String() }

// validator accepts a record under its site's key, and prefers the newest.
type validator struct{}

// Validate returns why a record is invalid under a key.
func (validator) Validate(key string, value []byte) error {
	_, err := open(key, value)
	return err
}

// Select returns the index of the newest valid record.
func (validator) Select(key string, values [][]byte) (int, error) {
	best, sequence := -1, uint64(0)
	for i, v := range values {
		if r, err := open(key, v); err == nil && (best < 0 || r.Sequence > sequence) {
			best, sequence = i, r.Sequence
		}
	}
	if best < 0 {
		return 0, errors.New("none is a valid record of the site")
	}
	return best, nil
}

// open decodes and verifies a record of a key's site.
func open(key string, value []byte) (*discovery.Signed, error) {
	text, ok := strings.CutPrefix(key, "/"+namespace+"/")
	id, err := identity.Parse(text)
	if !ok || err != nil || id.PeerID() != text {
		return nil, fmt.Errorf("%.80q is not the key of a site", key)
	}
	r, err := discovery.Open(value)
	if err != nil {
		return nil, err
	}
	if r.Site != id {
		return nil, fmt.Errorf("%w, it is that of %v", discovery.ErrForged, r.Site)
	}
	return r, nil
}
