package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"agentsite/node/quota"
)

// connLimiter limits the open connections of a listener. Half of them are for authenticated
// callers, and half for others. At the limit it evicts a connection of the half that is over
// its share, from the group with the most: an account, or an address. So a caller with few
// connections keeps them. Below a second limit, it does not evict a connection that is new or whose
// request runs. So a slow client gets that time even if others reconnect after each eviction.
type connLimiter struct {
	usual, most int

	mu    sync.Mutex
	turn  uint64
	conns map[net.Conn]*connState
}

type connState struct {
	group group
	rank  rank
	turn  uint64 // when it got this rank
	since time.Time
}

// group identifies the owner of connections: an account, or an address until a request has
// proved an account.
type group struct {
	account string
	from    netip.Prefix
}

// rank orders the connections of one group. The lowest rank is evicted first, and in it the
// connection that has it for longest.
type rank uint8

const (
	unproved rank = iota // the oldest is evicted, because the newest had no time for a request
	idle                 // between two requests
	reading              // a request is incomplete
	answering
)

// spare is how long a connection may take to send its request, while there is room.
const spare = 3 * time.Second

func newConnLimiter(usual, most int) *connLimiter {
	return &connLimiter{usual: usual, most: most, conns: make(map[net.Conn]*connState)}
}

type connKey struct{}

// limited is a connection in the context of its requests.
type limited struct {
	by   *connLimiter
	conn net.Conn
}

// context is an http.Server's ConnContext hook.
func (l *connLimiter) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, limited{l, conn})
}

// prove assigns the connection of ctx to the account of its request.
func prove(ctx context.Context, account string) {
	if c, ok := ctx.Value(connKey{}).(limited); ok {
		c.by.set(c.conn, reading, account)
	}
}

// complete marks the request as read in full and being answered.
func complete(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(limited); ok {
		c.by.set(c.conn, answering, "")
	}
}

// set changes the rank, and the account, of a connection.
func (l *connLimiter) set(conn net.Conn, r rank, account string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[conn]
	if c == nil {
		return
	}
	if account != "" {
		c.group = group{account: account}
	}
	if c.group.account != "" {
		l.turn++
		c.rank, c.turn, c.since = r, l.turn, time.Now()
	}
}

// changed is an http.Server's ConnState hook.
func (l *connLimiter) changed(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateClosed, http.StateHijacked:
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, conn)
	case http.StateIdle:
		l.set(conn, idle, "")
	case http.StateNew:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.turn++
		l.conns[conn] = &connState{group: group{from: prefixOf(conn)}, turn: l.turn, since: time.Now()}
		var out net.Conn
		if len(l.conns) > l.usual {
			out = l.leastWanted(conn, l.usual, func(c *connState) bool { return c.rank < answering && time.Since(c.since) >= spare })
		}
		if out == nil && len(l.conns) > l.most {
			out = l.leastWanted(conn, l.most, func(*connState) bool { return true })
		}
		if out != nil {
			delete(l.conns, out)
			closeAtOnce(out)
		}
	}
}

// leastWanted returns the connection to evict when there are too many: among those that may
// be evicted, one of the group with the most connections. It is never the newest.
func (l *connLimiter) leastWanted(newcomer net.Conn, most int, may func(*connState) bool) (out net.Conn) {
	size, proved := make(map[group]int), 0
	for _, c := range l.conns {
		size[c.group]++
		if c.group.account != "" {
			proved++
		}
	}
	largest, ofAccount := 0, proved > most/2
	for g, n := range size {
		if (g.account != "") == ofAccount {
			largest = max(largest, n)
		}
	}
	var least *connState
	for conn, c := range l.conns {
		if conn == newcomer || (c.group.account != "") != ofAccount || size[c.group] < largest || !may(c) {
			continue
		}
		if least == nil || c.rank < least.rank || c.rank == least.rank && c.turn < least.turn {
			out, least = conn, c
		}
	}
	return out
}

// prefixOf returns the network prefix of a connection's remote address.
func prefixOf(conn net.Conn) netip.Prefix {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{}
	}
	return quota.Prefix(at.Addr())
}

// closeAtOnce closes a connection without TLS's goodbye, which might wait for room in its
// peer's buffer.
func closeAtOnce(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	conn.Close()
}
