package discovery

import (
	"context"
	"net/netip"
	"time"

	"agentsite/node/identity"
)

// Medium is a way on which sites are announced and found: a link, a network of peers, or
// the Directory, which is made of others. It is safe for concurrent use.
type Medium interface {
	// Announce shows the record to whoever looks until ctx ends, and then says goodbye
	// where that is possible. It blocks, and returns nil when ctx ended and otherwise
	// why it cannot go on. Another record of the site takes an Announce of its own,
	// after the end of the one before.
	Announce(ctx context.Context, record *Signed) error

	// Find emits what there is and what comes, again and again while it lasts, until
	// ctx ends; also what this program announces. Nothing of it is verified. It calls emit from one goroutine at a time,
	// and emit says why a sighting is not taken, which ends nothing. Find blocks, and
	// returns nil when ctx ended and otherwise why it cannot go on.
	Find(ctx context.Context, emit func(Sighting) error) error
}

// Sighting is what a medium says of a site.
type Sighting struct {
	Site   identity.ID
	Record []byte        // as Open takes it; nil when the site has said goodbye
	At     []netip.Addr  // where the site is, as far as the medium sees it, the best first; with a zone where one is needed
	For    time.Duration // how long this holds if nothing follows
}
