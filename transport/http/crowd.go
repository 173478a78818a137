package http

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// crowd bounds the open connections. When one too many comes, another has to go:
// of those that never said anything the longest silent, else of those between two
// requests, else of those whose request has no place. There are fewer places than
// connections, so that neither a thousand idle ones nor a thousand half requests
// keep anybody out.
type crowd struct {
	most int

	mu    sync.Mutex
	turn  uint64
	conns map[net.Conn]guest
}

type guest struct {
	state  http.ConnState
	turn   uint64 // when it fell into this state
	seated bool   // its request has a place
}

// rank orders those who have to go; the highest stay.
func (g guest) rank() int {
	switch {
	case g.state == http.StateNew:
		return 0
	case g.state == http.StateIdle:
		return 1
	}
	return 2
}

type seatKey struct{}

// greet is an http.Server's ConnContext hook: it lets seated find the connection.
func (c *crowd) greet(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, seatKey{}, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if g, ok := c.conns[conn]; ok {
			g.seated = true
			c.conns[conn] = g
		}
	})
}

// seated notes that the request of ctx has a place, until it ends.
func seated(ctx context.Context) {
	if seat, ok := ctx.Value(seatKey{}).(func()); ok {
		seat()
	}
}

func newCrowd(most int) *crowd { return &crowd{most: most, conns: make(map[net.Conn]guest)} }

// changed is an http.Server's ConnState hook.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.conns, conn)
		return
	}
	c.turn++
	c.conns[conn] = guest{state: state, turn: c.turn}
	if len(c.conns) > c.most {
		out := c.leastWanted(conn)
		switch {
		case out != nil:
		case state == http.StateNew:
			out = conn // all the others are being answered
		default:
			return
		}
		delete(c.conns, out)
		sendAway(out)
	}
}

// sendAway closes a connection without TLS's goodbye, which might wait for room in the
// buffer of who is sent away.
func sendAway(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	conn.Close()
}

// leastWanted is never the newcomer, who has had no time to speak.
func (c *crowd) leastWanted(newcomer net.Conn) (out net.Conn) {
	var who guest
	for conn, g := range c.conns {
		if g.seated || conn == newcomer {
			continue
		}
		if out == nil || g.rank() < who.rank() || g.rank() == who.rank() && g.turn < who.turn {
			out, who = conn, g
		}
	}
	return out
}
