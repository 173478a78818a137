package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/internet"
	"agentsite/device"
	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

const (
	// lanHeadStart is the time in which only the same network is tried.
	lanHeadStart = 300 * time.Millisecond
	// internetTimeout bounds a lookup and dial anywhere else, and retryInterval is the pause
	// between two.
	internetTimeout = 15 * time.Second
	retryInterval   = time.Second
	// progressDelay is the time after which the progress of a search is reported.
	progressDelay = time.Second
)

// NearPath is the path of a call on the same network. The others are transport/p2p's.
const NearPath p2p.Path = "lan"

// Unreached returns the reason why no request was sent to a site, nil where one may have been.
func Unreached(err error) error {
	var u *agents.Unreached
	if errors.As(err, &u) {
		return u.Err
	}
	return nil
}

// router calls one site over the best route: HTTPS on the same network, or else libp2p. The
// first call finds a route, which is cached until it fails. It is safe for concurrent use.
type router struct {
	site    identity.ID
	where   func() []string // host:port and multiaddrs, the best first of each
	dial    func(ctx context.Context) (net.Conn, error)
	near    *web.Client
	network *lazyNetwork // nil for the same network alone

	timeout  time.Duration // of each search for a route
	retry    bool          // search until the timeout, also after an error
	progress func(string)  // reports a search that takes long; may be nil

	searching device.Mutex // holds the one caller that searches

	mu      sync.Mutex
	cached  rpc.Caller  // nil while there is no route
	conn    net.Conn    // to the site, made and not used yet
	overP2P *p2p.Caller // the route over libp2p; nil before it is first needed
}

var _ rpc.Caller = (*router)(nil)

// newRouter makes a router to a site. dial verifies both keys.
func newRouter(site identity.ID, where func() []string, codec rpc.Codec, dial func(context.Context) (net.Conn, error), out *lazyNetwork) *router {
	w := &router{site: site, where: where, dial: dial, network: out, timeout: internetTimeout, searching: device.NewMutex()}
	over := &http.Client{
		// A site never redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialTLSContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return w.takeConn(ctx) },
			DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: 90 * time.Second,
		},
	}
	w.near = &web.Client{URL: "https://" + discovery.HostName(site) + "/mcp", Codec: codec, HTTP: over}
	return w
}

// Call implements rpc.Caller. A call that did not reach the site is tried once more over
// another route.
func (w *router) Call(ctx context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	for again := false; ; again = true {
		route, err := w.route(ctx)
		if err != nil {
			return rpc.Raw{}, err
		}
		raw, err := route.Call(ctx, r, note)
		var near *agents.Unreached
		var far *p2p.UnreachableError
		switch {
		case errors.As(err, &far):
			err = &agents.Unreached{Err: far.Err}
		case !errors.As(err, &near):
			return raw, err
		}
		w.dropRoute(route)
		if again || ctx.Err() != nil {
			return rpc.Raw{}, err
		}
	}
}

// invalidateRoute drops the cached route: the next call dials again.
func (w *router) invalidateRoute() {
	w.mu.Lock()
	w.cached = nil
	overP2P := w.overP2P
	w.mu.Unlock()
	w.near.HTTP.CloseIdleConnections()
	if overP2P != nil {
		overP2P.InvalidateRoute()
	}
}

// dropRoute is invalidateRoute for a route that another caller may have replaced already.
func (w *router) dropRoute(route rpc.Caller) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cached == route {
		w.cached = nil
	}
}

// cachedRoute returns the route of the last search, nil for none.
func (w *router) cachedRoute() rpc.Caller {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cached
}

// route returns the cached route, or searches one. One caller searches at a time.
func (w *router) route(ctx context.Context) (rpc.Caller, error) {
	if route := w.cachedRoute(); route != nil {
		return route, nil
	}
	if err := w.searching.LockContext(ctx); err != nil {
		return nil, &agents.Unreached{Err: err}
	}
	defer w.searching.Unlock()
	if route := w.cachedRoute(); route != nil {
		return route, nil
	}
	route, err := w.findRoute(ctx)
	if err != nil {
		return nil, &agents.Unreached{Err: err}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cached = route
	return route, nil
}

// findRoute searches a route within the timeout.
func (w *router) findRoute(ctx context.Context) (rpc.Caller, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	if w.progress != nil {
		defer time.AfterFunc(progressDelay, func() { w.progress(w.describeSearch()) }).Stop()
	}
	for {
		route, err := w.raceRoutes(ctx)
		if err == nil || !w.retry {
			return route, err
		}
		if device.Sleep(ctx, retryInterval) != nil {
			return nil, err
		}
	}
}

// anywhere reports whether the site can be looked up beyond the same network.
func (w *router) anywhere() bool {
	if w.network == nil {
		return false
	}
	_, far := splitAddresses(w.where())
	return len(far)+len(w.network.realms) > 0
}

// raceRoutes dials on the same network and, after a head start, anywhere else.
func (w *router) raceRoutes(ctx context.Context) (rpc.Caller, error) {
	groups := [][]attempt[rpc.Caller]{{func(ctx context.Context, _ func(attempt[rpc.Caller])) (rpc.Caller, error) {
		conn, err := w.dial(ctx)
		if err != nil {
			return nil, err
		}
		w.keepConn(conn)
		return w.near, nil
	}}}
	if w.anywhere() {
		groups = append(groups, []attempt[rpc.Caller]{func(ctx context.Context, _ func(attempt[rpc.Caller])) (rpc.Caller, error) {
			return w.dialInternet(ctx)
		}})
	}
	return race(ctx, lanHeadStart, func(rpc.Caller) {}, groups...)
}

// describeSearch describes where a search looks, and for how long.
func (w *router) describeSearch() string {
	near, far := splitAddresses(w.where())
	places := append(near, "this network")
	if len(far) > 0 {
		places = append(places, fmt.Sprintf("%d addresses elsewhere", len(far)))
	}
	if w.network != nil && len(w.network.realms) > 0 {
		places = append(places, fmt.Sprintf("%d realms", len(w.network.realms)))
	}
	return fmt.Sprintf("the site has not answered yet; still trying %s, for %v in all", strings.Join(places, ", "), w.timeout)
}

// dialInternet connects to the site beyond the same network. It repeats that for a while: a relay
// that was restarted knows the site again within seconds.
func (w *router) dialInternet(ctx context.Context) (rpc.Caller, error) {
	ctx, cancel := context.WithTimeout(ctx, internetTimeout)
	defer cancel()
	in, err := w.network.open()
	if err != nil {
		return nil, err
	}
	var failed error
	for {
		_, known := splitAddresses(w.where())
		err := reachAnywhere(ctx, in, w.site, known)
		if err == nil {
			return w.p2pCaller(in), nil
		}
		if failed == nil || ctx.Err() == nil { // keeps the reason before the timeout
			failed = err
		}
		if len(known) == 0 && !errors.Is(err, errNotThere) || device.Sleep(ctx, retryInterval) != nil {
			return nil, failed
		}
	}
}

// p2pCaller returns the route over libp2p. It is one caller for good: each has streams of its own,
// of which a site allows few.
func (w *router) p2pCaller(in *internet.Network) *p2p.Caller {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.overP2P == nil {
		w.overP2P = in.CallerBy(w.site, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, internetTimeout)
			defer cancel()
			_, known := splitAddresses(w.where())
			return reachAnywhere(ctx, in, w.site, known)
		}, rpc.CBOR)
	}
	return w.overP2P
}

// keepConn stores a connection for the next request.
func (w *router) keepConn(conn net.Conn) {
	w.mu.Lock()
	before := w.conn
	w.conn = conn
	w.mu.Unlock()
	if before != nil {
		before.Close()
	}
}

// takeConn returns the stored connection, or dials.
func (w *router) takeConn(ctx context.Context) (net.Conn, error) {
	w.mu.Lock()
	conn := w.conn
	w.conn = nil
	w.mu.Unlock()
	if conn != nil {
		return limitRate(conn), nil
	}
	conn, err := w.dial(ctx)
	if err != nil {
		return nil, &agents.Unreached{Err: err}
	}
	return limitRate(conn), nil
}

// splitAddresses separates host:port, which is near, from multiaddrs.
func splitAddresses(addresses []string) (near, far []string) {
	for _, a := range addresses {
		if strings.HasPrefix(a, "/") {
			far = append(far, a)
		} else {
			near = append(near, a)
		}
	}
	return near, far
}
