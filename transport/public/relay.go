package public

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/node/identity"
	"agentsite/node/quota"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// tlsProtocol carries one TLS connection of a caller: a header, and then its bytes.
const tlsProtocol protocol.ID = "/agentsite/tls/1"

// RelayOptions configure a relay's public names.
type RelayOptions struct {
	Zone  string // the names of sites are below it
	Allow func(identity.ID) bool
	// Connections and DailyBytes limit what is passed on of one site, both ways. One network of callers has half.
	Connections int   // at a time; 0 for DefaultConnections
	DailyBytes  int64 // 0 for DefaultDailyBytes
	// Resolve returns the name at the end of a name's CNAMEs.
	Resolve func(ctx context.Context, name string) (canonical string, err error)
}

// The default limits of what is passed on of one site.
const (
	DefaultConnections = 32
	DefaultDailyBytes  = 1 << 30
)

// Limits of a relay. A caller's network is that of quota.Prefix. Connections of certificate authorities have limits
// of their own: strangers that use up a site's connections or bytes do not keep it from its certificate.
const (
	maxCallers    = 4096 // connections of all callers
	maxFrom       = 64   // of one network, to all sites
	maxACME       = 8    // to one site
	acmeBytes     = 64 << 10
	idleTimeout   = 2 * time.Minute
	lingerTimeout = 5 * time.Second
	acmeTimeout   = 20 * time.Second
	openTimeout   = 5 * time.Second
	secondsOfDay  = 24 * 60 * 60
	copyBuffer    = 16 << 10
)

// Groups of limits, beside prefixes and peers.
type (
	toSite     struct{ site peer.ID }
	fromToSite struct {
		from netip.Prefix
		site peer.ID
	}
	acmeTo struct{ site peer.ID }
)

// stream is a network.Stream, as far as a relay uses it.
type stream interface {
	io.ReadWriter
	CloseWrite() error
	Close() error
	Reset() error
}

// Relay passes callers on to the sites that they name. Serve it.
type Relay struct {
	names *names
	looks *outside
	open  func(ctx context.Context, site peer.ID) (stream, error)
	may   func(site peer.ID) bool // the relay's owner allows it now

	most                                 int // connections of one site
	held                                 quota.Quota
	often, toSite, fromToSite, acme, ask quota.RateLimiter
	day, fromDay                         quota.RateLimiter // bytes
	usedUp                               quota.RateLimiter // messages in the log
}

// NewRelay returns a relay over a host, to which the sites connect.
func NewRelay(h host.Host, o RelayOptions) *Relay {
	r := newRelay(o)
	r.names = newNames(h, o)
	r.looks = newOutside(r.names)
	r.may = r.names.allowed
	r.open = func(ctx context.Context, site peer.ID) (stream, error) {
		return h.NewStream(network.WithNoDial(ctx, "a site keeps its own connection"), site, tlsProtocol)
	}
	return r
}

func newRelay(o RelayOptions) *Relay {
	most := cmp.Or(o.Connections, DefaultConnections)
	bytes := float64(cmp.Or(o.DailyBytes, DefaultDailyBytes))
	limiter := func(perSecond, burst float64) quota.RateLimiter {
		return quota.RateLimiter{Rate: quota.Rate{PerSecond: perSecond, Burst: burst}}
	}
	return &Relay{
		most: most, may: func(peer.ID) bool { return true },
		often: limiter(5, 60), toSite: limiter(10, float64(2*most)), fromToSite: limiter(2, float64(most)),
		acme: limiter(0.5, 24), ask: limiter(1.0/60, 6),
		day: limiter(bytes/secondsOfDay, bytes), fromDay: limiter(bytes/2/secondsOfDay, bytes/2),
		usedUp: limiter(1.0/3600, 1),
	}
}

// Serve accepts callers and gives sites their names, until ctx ends.
func (r *Relay) Serve(ctx context.Context, ln net.Listener) error {
	defer r.names.serve()()
	defer r.looks.serve()()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			slog.Warn("a caller cannot be accepted", "err", err) // too many open files, mostly
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		all.Go(func() { r.pass(ctx, c) })
	}
}

// pass serves one caller, and closes its connection.
func (r *Relay) pass(ctx context.Context, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return
	}
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	from := quota.Prefix(at.Addr())
	of := []quota.Limit{{Group: from, Most: maxFrom}, {Most: maxCallers}}
	if !r.often.Allow(from) || !r.held.Take(of...) {
		return
	}
	defer r.held.Release(of...)
	h, err := peek(c)
	if err != nil {
		slog.Debug("a caller was refused", "from", at, "err", err)
		return
	}
	site, ok := r.names.site(h.name)
	if !ok {
		slog.Debug("a caller names no site", "from", at)
		return
	}
	pay := r.budget(h, from, site)
	if !pay(len(h.bytes)) {
		return
	}
	limits, ok := r.admit(h, from, site)
	if !ok {
		slog.Debug("a site has too many callers", "from", at, "site", site)
		return
	}
	defer r.held.Release(limits...)
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	s, err := r.open(opening, site)
	if err != nil {
		slog.Debug("a site does not answer", "site", site, "err", err)
		return
	}
	defer s.Close()
	if h.acme {
		defer time.AfterFunc(acmeTimeout, func() { s.Reset(); c.Close() }).Stop()
	}
	r.copyBoth(c, s, append(appendHeader(nil, at), h.bytes...), site, pay)
}

// admit takes a place at a site for a caller.
func (r *Relay) admit(h hello, from netip.Prefix, site peer.ID) ([]quota.Limit, bool) {
	pair := fromToSite{from, site}
	limits := []quota.Limit{{Group: toSite{site}, Most: r.most}, {Group: pair, Most: half(r.most)}}
	if h.acme {
		limits = []quota.Limit{{Group: acmeTo{site}, Most: maxACME}}
		if !r.ask.Allow(pair) || !r.acme.Allow(site) {
			return nil, false
		}
	} else if !r.fromToSite.Allow(pair) || !r.toSite.Allow(site) {
		return nil, false
	}
	return limits, r.held.Take(limits...)
}

// half returns the share of one network in a site's limit.
func half(limit int) int { return max(1, limit/2) }

// budget returns a function that takes bytes of a connection from what may be passed on, or reports that there are
// too few. It is safe for concurrent use.
func (r *Relay) budget(h hello, from netip.Prefix, site peer.ID) (pay func(n int) bool) {
	if h.acme {
		var paid atomic.Int64
		return func(n int) bool { return paid.Add(int64(n)) <= acmeBytes }
	}
	return func(n int) bool {
		if r.fromDay.Take(float64(n), fromToSite{from, site}) && r.day.Take(float64(n), site) {
			return true
		}
		if r.usedUp.Allow(site) {
			slog.Warn("a site's callers have used up its bytes of today", "site", site, "from", from)
		}
		return false
	}
}

// copyBoth copies until both sides have ended, one has failed, or nothing was copied for idleTimeout. A site that
// has ended reads no more: the caller has until lingerTimeout to end, too. first is what the site gets before the
// caller's further bytes.
func (r *Relay) copyBoth(c net.Conn, s stream, first []byte, site peer.ID, pay func(n int) bool) {
	end := func() { s.Reset(); c.Close() }
	idle := time.AfterFunc(idleTimeout, end)
	defer idle.Stop()
	if _, err := s.Write(first); err != nil {
		end()
		return
	}
	var linger *time.Timer
	defer func() {
		if linger != nil {
			linger.Stop()
		}
	}()
	var both sync.WaitGroup
	both.Go(func() { r.copy(s, c, site, pay, idle, end, s.CloseWrite) })
	both.Go(func() {
		r.copy(c, s, site, pay, idle, end, func() error {
			linger = time.AfterFunc(lingerTimeout, end)
			if half, ok := c.(interface{ CloseWrite() error }); ok {
				return half.CloseWrite()
			}
			return c.Close()
		})
	})
	both.Wait()
}

// copy copies one way. At the end of its source it calls done, and abort after a failure.
func (r *Relay) copy(
	to io.Writer, from io.Reader, site peer.ID, pay func(n int) bool, idle *time.Timer, abort func(), done func() error,
) {
	buf := make([]byte, copyBuffer)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			idle.Reset(idleTimeout)
			if !r.may(site) || !pay(n) {
				abort()
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				abort()
				return
			}
		}
		switch {
		case err == io.EOF:
			if done() != nil {
				abort()
			}
			return
		case err != nil:
			abort()
			return
		}
	}
}
