package site

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/cmd/internal/internet"
	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/node/state"
	httpcarrier "agentsite/transport/http"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"
)

const (
	// nearAhead is how long a site is looked for on the same network alone.
	nearAhead = 300 * time.Millisecond
	// farPatience is how long it may take to find and to reach one anywhere else.
	farPatience = 15 * time.Second
	farAgain    = time.Second
	// sayAfter is when a person is told what is tried, who would see nothing else.
	sayAfter = time.Second
)

// NearPath is the way to a site on the same network. The others are transport/p2p's.
const NearPath p2p.Path = "lan"

// also is two reasons in one sentence; the first may be nil.
func also(all, one error) error {
	if all == nil {
		return one
	}
	return fmt.Errorf("%w; %w", all, one)
}

// unreached is why a site was not asked: no connection to it came about.
type unreached struct{ error }

func (u unreached) Unwrap() error { return u.error }

// Unreached is why a site was not asked at all, nil where it may have been.
func Unreached(err error) error {
	var u unreached
	if errors.As(err, &u) {
		return u.error
	}
	return nil
}

// Refused reports whether a site that was not reached is there, or its relay, and takes no
// more connections of this key or network just now.
func Refused(err error) bool { return errors.Is(err, p2p.ErrRefused) }

// ways calls one site by the best way that there is: by HTTPS on the same network, and
// otherwise over libp2p. It looks for one when it is first called, and again when that
// one leads nowhere any more.
type ways struct {
	site    identity.ID
	where   func() []string // host:port and multiaddrs, the best first of each
	dial    func(ctx context.Context) (net.Conn, error)
	near    *httpcarrier.Client
	outside *outside // nil for the same network alone

	patience time.Duration // how long each look for the site may take
	again    bool          // whether it takes as long where the site is away for sure
	tell     func(string)  // is told what is tried where it takes long; nil for nobody

	looking chan struct{} // has room for whoever looks

	mu   sync.Mutex
	way  rpc.Caller  // nil while there is none
	conn net.Conn    // to the site, made and not used yet
	far  *p2p.Caller // the way over libp2p; nil before it was first one
	at   []string    // where that one finds the site
}

var _ rpc.Caller = (*ways)(nil)

// newWays leads to a site that its key tells. What makes connections proves both keys.
func newWays(site identity.ID, where func() []string, codec rpc.Codec, dial func(context.Context) (net.Conn, error), out *outside) *ways {
	w := &ways{site: site, where: where, dial: dial, outside: out, patience: farPatience, looking: make(chan struct{}, 1)}
	web := &http.Client{
		// No site sends its callers elsewhere, and whoever does may not choose where.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialTLSContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return w.connect(ctx) },
			DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: 90 * time.Second,
		},
	}
	w.near = &httpcarrier.Client{URL: "https://" + HostName(site) + "/mcp", Codec: codec, HTTP: web}
	return w
}

// Call is that of rpc.Caller. What could not be asked is asked once more by another way.
func (w *ways) Call(ctx context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	for again := false; ; again = true {
		way, err := w.look(ctx)
		if err != nil {
			return rpc.Raw{}, err
		}
		raw, err := way.Call(ctx, r, note)
		var near unreached
		var far *p2p.Unreached
		switch {
		case errors.As(err, &far):
			err = unreached{far.Err}
		case !errors.As(err, &near):
			return raw, err
		}
		w.leave(way)
		if again || ctx.Err() != nil {
			return rpc.Raw{}, err
		}
	}
}

// fresh has what is asked next look for the best way anew.
func (w *ways) fresh() {
	w.mu.Lock()
	w.way = nil
	far := w.far
	w.mu.Unlock()
	w.near.HTTP.CloseIdleConnections()
	if far != nil {
		far.Fresh()
	}
}

func (w *ways) leave(way rpc.Caller) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.way == way {
		w.way = nil
	}
}

// now is the way that there is.
func (w *ways) now() rpc.Caller {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.way
}

// look returns the way that there is, or finds one.
func (w *ways) look(ctx context.Context) (rpc.Caller, error) {
	if way := w.now(); way != nil {
		return way, nil
	}
	select {
	case w.looking <- struct{}{}:
		defer func() { <-w.looking }()
	case <-ctx.Done():
		return nil, unreached{ctx.Err()}
	}
	if way := w.now(); way != nil {
		return way, nil
	}
	way, err := w.find(ctx)
	if err != nil {
		return nil, unreached{err}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.way = way
	return way, nil
}

// find looks for a way for as long as that may take; and where it is to, again and again.
func (w *ways) find(ctx context.Context) (rpc.Caller, error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	if w.tell != nil {
		defer time.AfterFunc(sayAfter, func() { w.tell(w.tried()) }).Stop()
	}
	for {
		way, err := w.race(ctx)
		if err == nil || !w.again {
			return way, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(farAgain):
		}
	}
}

// anywhere reports whether the site may be found beyond the same network.
func (w *ways) anywhere() bool {
	if w.outside == nil {
		return false
	}
	_, far := sorted(w.where())
	return len(far)+len(w.outside.realms) > 0
}

// race tries the same network, and a moment later the rest of the world.
func (w *ways) race(ctx context.Context) (rpc.Caller, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		way rpc.Caller
		err error
	}
	near, far := make(chan end, 1), make(chan end, 1)
	go func() {
		conn, err := w.dial(ctx)
		if err == nil {
			w.keep(conn)
		}
		near <- end{w.near, err}
	}()
	var begin <-chan time.Time
	if w.anywhere() {
		begin = time.After(nearAhead)
	}
	beyond := func() {
		begin = nil
		go func() {
			c, err := w.beyond(ctx)
			far <- end{c, err}
		}()
	}
	var all error
	for left := 1; ; {
		var e end
		select {
		case <-begin:
			left++
			beyond()
			continue
		case e = <-near:
			if e.err != nil && begin != nil {
				left++
				beyond()
			}
		case e = <-far:
		}
		if e.err == nil {
			return e.way, nil
		}
		all = also(all, e.err)
		if left--; left == 0 {
			return nil, all
		}
	}
}

// tried says where the site is looked for, and for how long.
func (w *ways) tried() string {
	near, far := sorted(w.where())
	places := append(near, "this network")
	if len(far) > 0 {
		places = append(places, fmt.Sprintf("%d addresses elsewhere", len(far)))
	}
	if w.outside != nil && len(w.outside.realms) > 0 {
		places = append(places, fmt.Sprintf("%d realms", len(w.outside.realms)))
	}
	return fmt.Sprintf("the site has not answered yet; it is looked for at %s, for %v in all", strings.Join(places, ", "), w.patience)
}

// beyond reaches the site where it was before, or where the global network says it is. A
// relay that was begun anew knows it again within seconds: so long it is looked for.
func (w *ways) beyond(ctx context.Context) (rpc.Caller, error) {
	ctx, cancel := context.WithTimeout(ctx, farPatience)
	defer cancel()
	_, at := sorted(w.where())
	in, err := w.outside.open()
	if err != nil {
		return nil, err
	}
	var failed error
	for first := true; ; first = false {
		err := in.Reach(ctx, w.site, at)
		if err == nil {
			return w.found(in, at), nil
		}
		if failed == nil || ctx.Err() == nil { // and not that there was no time left
			failed = err
		}
		found, lost := in.Locate(ctx, w.site)
		switch {
		case lost != nil && len(at) == 0:
			return nil, lost
		case lost == nil:
			at = nil
			for _, a := range found.Addrs {
				at = append(at, a.String())
			}
			if first {
				continue
			}
		}
		select {
		case <-ctx.Done():
			return nil, failed
		case <-time.After(farAgain):
		}
	}
}

// found is the way over libp2p to where the site was found. It is always the same one: the
// streams of others would stay open, and a site has few for each caller.
func (w *ways) found(in *internet.Network, at []string) *p2p.Caller {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = at
	if w.far == nil {
		w.far = in.Caller(w.site, func() []string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.at
		}, rpc.CBOR)
	}
	return w.far
}

// keep has a connection be used for what is asked next.
func (w *ways) keep(conn net.Conn) {
	w.mu.Lock()
	before := w.conn
	w.conn = conn
	w.mu.Unlock()
	if before != nil {
		before.Close()
	}
}

// connect is the connection that is kept, or another one.
func (w *ways) connect(ctx context.Context) (net.Conn, error) {
	w.mu.Lock()
	conn := w.conn
	w.conn = nil
	w.mu.Unlock()
	if conn != nil {
		return newPaced(conn), nil
	}
	conn, err := w.dial(ctx)
	if err != nil {
		return nil, unreached{err}
	}
	return newPaced(conn), nil
}

// sorted tells addresses on a network from those in the world.
func sorted(addresses []string) (near, far []string) {
	for _, a := range addresses {
		if strings.HasPrefix(a, "/") {
			far = append(far, a)
		} else {
			near = append(near, a)
		}
	}
	return near, far
}

// outside is a person's part in the global network, from when it is first needed.
type outside struct {
	key     identity.Key
	realms  []Joined
	version string

	mu sync.Mutex
	in *internet.Network
}

// open takes part.
func (o *outside) open() (*internet.Network, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.in != nil {
		return o.in, nil
	}
	var relays []string
	for _, j := range o.realms {
		relays = append(relays, j.Relays...)
	}
	peers, err := p2p.ParsePeers(slices.Compact(slices.Sorted(slices.Values(relays))))
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	all := internet.Options{P2P: p2p.Options{Key: o.key, Listen: p2p.Anywhere(0), Agent: "agentsite/" + o.version}, Relays: peers}
	for _, j := range o.realms {
		r, err := discovery.ParseRealm(j.Realm)
		if err != nil {
			return nil, state.Mistake{Err: err}
		}
		all.Realms = append(all.Realms, internet.Realm{Realm: r, IPFS: j.IPFS})
	}
	o.in, err = internet.Join(all)
	return o.in, err
}

// Close leaves it.
func (o *outside) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.in == nil {
		return nil
	}
	return o.in.Close()
}
