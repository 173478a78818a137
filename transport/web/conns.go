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

// connLimiter limits the open connections of a listener, where each further request that runs on a
// connection of HTTP/2 counts as one more. Half of them are for authenticated
// callers, and half for others. At the limit it evicts a connection of the half that is over
// its share, from the group with the most: an account, or an address. So a caller with few
// connections keeps them. Below a second limit, it does not evict a connection that is new or whose
// request runs. So a slow client gets that time even if others reconnect after each eviction.
// A further request of the group with the most is refused instead, because its own would be evicted.
type connLimiter struct {
	usual, most int

	mu    sync.Mutex
	turn  uint64
	conns map[net.Conn]*connState
	count int // the sum of their weights
}

type connState struct {
	group   group
	rank    rank
	turn    uint64 // when it got this rank
	since   time.Time
	streams map[*stream]bool // the requests of HTTP/2 that run; true once read in full
}

// weight is how many connections it counts as.
func (c *connState) weight() int { return max(1, len(c.streams)) }

// stream identifies a request of HTTP/2.
type stream struct{ _ byte } // two of no size may have one address

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
	by     *connLimiter
	conn   net.Conn
	stream *stream // nil for HTTP/1.1, which has one request at a time
}

// context is an http.Server's ConnContext hook.
func (l *connLimiter) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, limited{l, conn, nil})
}

// multiplexed counts the requests of HTTP/2, and refuses those beyond the limit. It passes on those
// of HTTP/1.1.
func (l *connLimiter) multiplexed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(limited)
		if !ok || r.ProtoMajor < 2 {
			next.ServeHTTP(w, r)
			return
		}
		c.stream = new(stream)
		if !l.begin(c) {
			w.Header().Set("Retry-After", "1")
			RefuseRPC(w, http.StatusServiceUnavailable, "too many requests at a time: try again when one has ended")
			return
		}
		defer l.end(c)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), connKey{}, c)))
	})
}

// prove assigns the connection of ctx to the account of its request.
func prove(ctx context.Context, account string) {
	if c, ok := ctx.Value(connKey{}).(limited); ok {
		c.by.set(c, reading, account)
	}
}

// complete marks the request as read in full and being answered.
func complete(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(limited); ok {
		c.by.set(c, answering, "")
	}
}

// set changes the rank, and the account, of a connection. The request of HTTP/2 that is the
// furthest decides the rank.
func (l *connLimiter) set(at limited, r rank, account string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[at.conn]
	if c == nil {
		return
	}
	if account != "" {
		c.group = group{account: account}
	}
	if at.stream != nil && r == answering {
		c.streams[at.stream] = true
	}
	l.rerank(c, r)
}

// rerank gives a connection the rank r, or that of its streams. The lock is held.
func (l *connLimiter) rerank(c *connState, r rank) {
	for _, complete := range c.streams {
		if r = max(r, reading); complete {
			r = answering
			break
		}
	}
	if c.group.account != "" {
		l.turn++
		c.rank, c.turn, c.since = r, l.turn, time.Now()
	}
}

// begin counts a request of HTTP/2, or reports that its connection may have no more.
func (l *connLimiter) begin(at limited) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[at.conn]
	if c == nil {
		return false // evicted
	}
	if c.streams == nil {
		c.streams = make(map[*stream]bool)
	}
	before := c.weight()
	c.streams[at.stream] = false
	l.count += c.weight() - before
	if c.weight() > before && l.isLargest(c.group) {
		delete(c.streams, at.stream)
		l.count--
		return false
	}
	l.evict(at.conn)
	return true
}

// end counts a request no longer.
func (l *connLimiter) end(at limited) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.conns[at.conn]; c != nil {
		before := c.weight()
		delete(c.streams, at.stream)
		l.count += c.weight() - before
		l.rerank(c, idle)
	}
}

// remove counts a connection no longer. The lock is held.
func (l *connLimiter) remove(conn net.Conn) {
	if c := l.conns[conn]; c != nil {
		l.count -= c.weight()
		delete(l.conns, conn)
	}
}

// changed is an http.Server's ConnState hook.
func (l *connLimiter) changed(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateClosed, http.StateHijacked:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.remove(conn)
	case http.StateIdle:
		l.set(limited{conn: conn}, idle, "")
	case http.StateNew:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.turn++
		l.conns[conn] = &connState{group: group{from: prefixOf(conn)}, turn: l.turn, since: time.Now()}
		l.count++
		l.evict(conn)
	}
}

// evict closes a connection other than the newcomer where there are too many. The lock is held.
func (l *connLimiter) evict(newcomer net.Conn) {
	var out net.Conn
	if l.count > l.usual {
		out = l.leastWanted(newcomer, l.usual, func(c *connState) bool { return c.rank < answering && time.Since(c.since) >= spare })
	}
	if out == nil && l.count > l.most {
		out = l.leastWanted(newcomer, l.most, func(*connState) bool { return true })
	}
	if out != nil {
		l.remove(out)
		closeAtOnce(out)
	}
}

// sizes returns how many connections each group has, and the most of a group of the half that is
// over its share. The lock is held.
func (l *connLimiter) sizes(most int) (size map[group]int, largest int, ofAccount bool) {
	size = make(map[group]int)
	proved := 0
	for _, c := range l.conns {
		size[c.group] += c.weight()
		if c.group.account != "" {
			proved += c.weight()
		}
	}
	ofAccount = proved > most/2
	for g, n := range size {
		if (g.account != "") == ofAccount {
			largest = max(largest, n)
		}
	}
	return size, largest, ofAccount
}

// isLargest reports whether there are too many connections, and a group has the most of the half that
// is over its share. The lock is held.
func (l *connLimiter) isLargest(g group) bool {
	if l.count <= l.usual {
		return false
	}
	size, largest, ofAccount := l.sizes(l.usual)
	return (g.account != "") == ofAccount && size[g] == largest
}

// leastWanted returns the connection to evict when there are too many: among those that may
// be evicted, one of the group with the most connections. It is never the newest.
func (l *connLimiter) leastWanted(newcomer net.Conn, most int, may func(*connState) bool) (out net.Conn) {
	size, largest, ofAccount := l.sizes(most)
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
