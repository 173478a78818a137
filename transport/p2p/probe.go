package p2p

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	// silentTimeout bounds a call without an answer, and then a ping, before another way is tried.
	silentTimeout = 500 * time.Millisecond
	// probeTimeout bounds how long a connection may take to prove that it is alive.
	probeTimeout = 3 * time.Second
)

// errReplaced is the end of a stream whose connection another one has replaced.
var errReplaced = fmt.Errorf("%w: its connection does not answer, and another one does", io.ErrUnexpectedEOF)

// checkWhileSilent checks the connection of a stream on which nothing was heard since a call began, at
// first after silentTimeout. With again, it goes on at growing intervals until the call ends.
func (c *Caller) checkWhileSilent(ctx context.Context, cs *clientStream, heard uint64, again bool) {
	for pause := silentTimeout; ctx.Err() == nil; pause *= 2 {
		if now := cs.reads.Load(); now == heard {
			c.check(ctx, cs)
		} else {
			heard = now
		}
		if !again {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// check replaces a stream where the site does not answer on its connection, and does on another one. One
// caller checks, or opens a stream, at a time.
func (c *Caller) check(ctx context.Context, cs *clientStream) {
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	default:
		return
	}
	if c.tryAcquire(func(now *clientStream) bool { return now == cs }) == nil {
		return // another one replaces it already
	}
	defer c.release(cs, false)
	if c.host.probe(ctx, c.site, c.reach) == errReplaced && c.openStream(ctx) == nil {
		cs.replace()
	}
}

// probe pings a peer. Once that is silent it doubts the peer's connections through relays, and calls
// reach, which connects to the peer by another way. It returns nil when the peer answers, errReplaced
// when there is another connection before, and otherwise the error of the ping. Doubted connections
// that are replaced are closed when they do not answer at all, or carry no call.
func (h *Host) probe(ctx context.Context, who peer.ID, reach func(context.Context) error) error {
	answered, reached := make(chan error, 1), make(chan error, 1)
	pinging, stop := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	h.spawn(func() {
		defer stop()
		_, err := h.ping(pinging, who)
		answered <- err
	})
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(silentTimeout):
	}
	replaced := false
	var doubted []network.Conn
	for _, conn := range h.Network().ConnsToPeer(who) {
		var c *circuitConn
		if conn.As(&c) && !c.doubted.Swap(true) {
			doubted = append(doubted, conn)
			defer func() { c.doubted.Store(replaced) }()
		}
	}
	var silent error
	if len(doubted) == 0 {
		reached = nil
	} else {
		reaching, cancel := context.WithCancel(ctx)
		defer cancel()
		h.spawn(func() { reached <- reach(reaching) })
	}
	for {
		select {
		case silent = <-answered:
			if silent == nil || reached == nil {
				return silent
			}
			answered = nil
		case err := <-reached:
			if replaced = err == nil; replaced {
				h.spawn(func() {
					alive := answered != nil && <-answered == nil
					for _, c := range doubted {
						if !alive || len(c.GetStreams()) == 0 {
							c.Close()
						}
					}
				})
				return errReplaced
			}
			if answered == nil {
				return silent
			}
			reached = nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
