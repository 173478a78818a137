package discovery

import (
	"context"
	"net/netip"
	"time"

	"agentsite/node/identity"
)

// Medium announces and finds sites: a link, a network of peers, or the Directory, which
// combines others. It is safe for concurrent use.
type Medium interface {
	// Announce announces a record until ctx ends, and then sends a goodbye where possible. It
	// blocks, and returns nil after ctx has ended and otherwise an error. Another record of
	// the site needs a new Announce, after the end of this one.
	Announce(ctx context.Context, record *Signed) error

	// Find emits known and new sites repeatedly until ctx ends, also those that this program
	// announces. Nothing is verified. It calls emit from one goroutine at a time; an error of
	// emit, which refuses a sighting, changes nothing. Find blocks, and returns nil after ctx
	// has ended and otherwise an error.
	Find(ctx context.Context, emit func(Sighting) error) error
}

// Sighting is a medium's report of a site.
type Sighting struct {
	Site   identity.ID
	Record []byte        // for Open; nil for a goodbye
	At     []netip.Addr  // all addresses seen by the medium, best first; with a zone where one is needed
	For    time.Duration // validity if nothing follows
}
