package http

import (
	"net"
	"net/http"
	"sync"
)

// crowd bounds the open connections. When one too many comes, the longest silent
// one has to go: first those that never said anything, then those between two
// requests. So a thousand idle connections keep nobody out.
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
		if out := c.longestSilent(); out != nil {
			delete(c.conns, out)
			out.Close()
		}
	}
}

func (c *crowd) longestSilent() (out net.Conn) {
	var who guest
	for conn, g := range c.conns {
		if g.state == http.StateActive {
			continue
		}
		fresh, other := g.state == http.StateNew, who.state == http.StateNew
		if out == nil || (fresh && !other) || (fresh == other && g.turn < who.turn) {
			out, who = conn, g
		}
	}
	return out
}
