package peer

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// announcedDials are the dials of addresses that are announced for a site, at most maxDials. One
// goroutine uses them.
type announcedDials []*announcedDial

// announcedDial is the dial of one address.
type announcedDial struct {
	address string
	ctx     context.Context
	end     context.CancelCauseFunc
	stage   atomic.Int32
}

// The stages of a dial, the first to be replaced first.
const (
	dialOver int32 = iota
	dialBegun
	dialAccepted // there is a machine
)

// errReplaced is the result of an attempt that ended in favour of a later one.
var errReplaced = errors.New("further addresses are dialled instead")

// admit returns a dial for an address, or nil if that is dialled or was lately. If there are maxDials,
// it replaces one of the lowest stage, at random: else a neighbour that invents addresses would keep the
// site's own from being dialled.
func (d *announcedDials) admit(ctx context.Context, address string) *announcedDial {
	if slices.ContainsFunc(*d, func(n *announcedDial) bool { return n.address == address }) {
		return nil
	}
	if len(*d) == maxDials {
		out := slices.MinFunc(rand.Perm(maxDials), func(i, j int) int {
			return cmp.Compare((*d)[i].stage.Load(), (*d)[j].stage.Load())
		})
		(*d)[out].end(errReplaced)
		*d = slices.Delete(*d, out, out+1)
	}
	n := &announcedDial{address: address}
	n.ctx, n.end = context.WithCancelCause(ctx)
	n.stage.Store(dialBegun)
	*d = append(*d, n)
	return n
}

// attempt returns dial as an attempt, which fails with errReplaced once another dial has replaced it.
// dial calls accepted when a machine has accepted the connection.
func (n *announcedDial) attempt(dial func(ctx context.Context, accepted func()) (lanConn, error)) attempt[lanConn] {
	return func(context.Context, func(attempt[lanConn])) (lanConn, error) {
		defer n.stage.Store(dialOver)
		conn, err := dial(n.ctx, func() { n.stage.Store(dialAccepted) })
		if err != nil && context.Cause(n.ctx) == errReplaced {
			err = errReplaced
		}
		return conn, err
	}
}
