package peer

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
)

// announcedDials are the dials of addresses that are announced for a site, at most maxDials, the
// oldest first. One goroutine uses it.
type announcedDials []*announcedDial

// announcedDial is the dial of one address.
type announcedDial struct {
	address  string
	ctx      context.Context
	end      context.CancelCauseFunc
	accepted atomic.Bool // a machine has accepted the connection, and it is not over
}

// errReplaced is the result of an attempt that ended in favour of a later one.
var errReplaced = errors.New("further addresses are dialled instead")

// admit returns a dial for an address, or nil. If there are maxDials, it ends the oldest that no
// machine has accepted: else a neighbour that invents addresses would keep the site's own from being
// dialled.
func (d *announcedDials) admit(ctx context.Context, address string) *announcedDial {
	if slices.ContainsFunc(*d, func(n *announcedDial) bool { return n.address == address }) {
		return nil
	}
	if len(*d) == maxDials {
		oldest := slices.IndexFunc(*d, func(n *announcedDial) bool { return !n.accepted.Load() })
		if oldest < 0 {
			return nil
		}
		(*d)[oldest].end(errReplaced)
		*d = slices.Delete(*d, oldest, oldest+1)
	}
	n := &announcedDial{address: address}
	n.ctx, n.end = context.WithCancelCause(ctx)
	*d = append(*d, n)
	return n
}

// attempt returns dial as an attempt, which fails with errReplaced once another dial has replaced it.
// dial calls accepted when a machine has accepted the connection.
func (n *announcedDial) attempt(dial func(ctx context.Context, accepted func()) (lanConn, error)) attempt[lanConn] {
	return func(context.Context, func(attempt[lanConn])) (lanConn, error) {
		defer n.accepted.Store(false)
		conn, err := dial(n.ctx, func() { n.accepted.Store(true) })
		if err != nil && context.Cause(n.ctx) == errReplaced {
			err = errReplaced
		}
		return conn, err
	}
}
