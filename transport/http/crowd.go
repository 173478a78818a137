package http

import (
	"net"
	"net/http"
	"sync"
)

// crowd bounds the open connections. When one too many comes, the longest silent
// other one has to go: first those that never said anything, then those between
// two requests. So a thousand idle connections keep nobody out.
type crowd struct {
	most int

	mu    sync.Mutex
	turn  uint64
	conns map[net.Conn]guest
}

type guest struct {
	state http.ConnState
	turn  uint64 // when it fell into this state
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
	c.conns[conn] = guest{state, c.turn}
	if len(c.conns) > c.most {
		out := c.longestSilent(conn)
		switch {
		case out != nil:
		case state == http.StateNew:
			out = conn // all the others are at work
		default:
			return
		}
		delete(c.conns, out)
		out.Close()
	}
}

// longestSilent is never the newcomer, who has had no time to speak.
func (c *crowd) longestSilent(newcomer net.Conn) (out net.Conn) {
	var who guest
	for conn, g := range c.conns {
		if g.state == http.StateActive || conn == newcomer {
			continue
		}
		fresh, other := g.state == http.StateNew, who.state == http.StateNew
		if out == nil || (fresh && !other) || (fresh == other && g.turn < who.turn) {
			out, who = conn, g
		}
	}
	return out
}
