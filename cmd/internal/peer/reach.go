package peer

import (
	"context"
	"errors"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/p2p"
)

// knownHeadStart is the time during which only the known addresses of a site are dialled.
const knownHeadStart = 300 * time.Millisecond

// farNetwork has the methods of an internet.Network that reachAnywhere calls.
type farNetwork interface {
	// Reach connects to a site, unless it is connected, at one of the addresses.
	Reach(ctx context.Context, site identity.ID, at []string) error
	// Circuits returns the addresses of a site that has a place at the network's relays.
	Circuits() []string
	// Locate calls found with a site's addresses, some at a time, as a lookup finds them.
	Locate(ctx context.Context, site identity.ID, found func(at []string)) error
}

// errNotThere is returned where a lookup found addresses, of which none leads to the site.
var errNotThere = errors.New("no address that others name leads to it")

// reachAnywhere connects to a site, unless it is connected: at its known addresses and, after
// knownHeadStart or once these fail, also through the network's relays and at the addresses that a
// lookup finds. No way waits for one that does not answer. It fails when all have failed.
func reachAnywhere(ctx context.Context, in farNetwork, site identity.ID, known []string) error {
	dial := func(at []string, says bool) attempt[struct{}] {
		return func(ctx context.Context, _ func(attempt[struct{}])) (none struct{}, err error) {
			err = in.Reach(ctx, site, at)
			if err != nil && !says && !Refused(err) {
				err = errReplaced // another way's failure says more
			}
			return none, err
		}
	}
	lookup := func(ctx context.Context, add func(attempt[struct{}])) (none struct{}, err error) {
		found := false
		err = in.Locate(ctx, site, func(at []string) {
			found = true
			add(dial(at, len(known) == 0))
		})
		if found {
			err = errNotThere
		}
		return none, err
	}
	var groups [][]attempt[struct{}]
	if len(known) > 0 {
		groups = append(groups, []attempt[struct{}]{dial(known, true)})
	}
	others := []attempt[struct{}]{lookup}
	if at := in.Circuits(); len(at) > 0 {
		others = append(others, dial(at, false))
	}
	_, err := race(ctx, knownHeadStart, func(struct{}) {}, append(groups, others)...)
	return err
}

// Refused reports whether a site, or its relay, answers but accepts no more connections from
// this key or network at present.
func Refused(err error) bool { return errors.Is(err, p2p.ErrRefused) }
