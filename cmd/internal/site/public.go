package site

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/node/acts"
	"agentsite/transport/p2p"
	"agentsite/transport/public"
	"agentsite/transport/public/certificate"
	"agentsite/transport/public/look"
	"agentsite/transport/web"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/errgroup"
)

// publicName is the site under a name that everybody reaches.
type publicName struct {
	own     string // the owner's own name, "" where a relay gives one
	relays  []peer.ID
	certs   *certificate.Manager
	listens net.Listener // of the site itself; nil for none
	proxies []netip.Addr // that alone may connect to listens, and end TLS before it; none where the site does
	staging bool
	handle  func(name string) http.Handler
	// certified returns the name of the stored certificate, "" for none.
	certified func() string

	handler atomic.Pointer[http.Handler] // of the name that is served
	silent  atomic.Bool                  // the last request came without its caller's address from a proxy

	mu      sync.Mutex
	answers map[peer.ID]answer
	name    string // that is served
	reached bool   // a relay brings its callers, or the site listens itself
	// missed is since when no relay gives the name that the site keeps; zero while one does.
	missed time.Time
}

// answer holds a relay's last words about the names.
type answer struct {
	public.Answer
	err error
}

// keepNameFor bounds the wait for the name of the stored certificate, or the one before, while its relay is away,
// before the site takes another: each name is a new order, and a connection of every client.
const keepNameFor = 10 * time.Minute

// openPublic makes the public name where the configuration has one.
func (s *site) openPublic() error {
	if s.internet == nil || s.internet.Public == "" {
		return nil
	}
	directory := s.internet.ACME
	switch {
	case directory == "":
		directory = certificate.LetsEncrypt
	case s.internet.Staging():
		directory = certificate.Staging
	}
	certs, err := certificate.Open(certificate.Options{
		Directory: directory, Now: s.access.Now, Read: s.Folder.Public, Write: s.Folder.WritePublic, Log: s.internet.CT,
		Given: s.internet.PublicName() == "",
	})
	if err != nil {
		return err
	}
	relays, err := p2p.ParsePeers(s.internet.Relays)
	if err != nil {
		return err
	}
	p := &publicName{
		own: s.internet.PublicName(), relays: public.IDs(relays), certs: certs, staging: s.internet.Staging(),
		missed: time.Now(), answers: make(map[peer.ID]answer), certified: func() string { return certs.Status().Name },
	}
	p.handle = s.handlePublic
	if s.internet.PublicListen != "" {
		if p.listens, err = net.Listen("tcp", s.internet.PublicListen); err != nil {
			return fmt.Errorf("the public name cannot listen: %w; choose another port under internet: public_listen", err)
		}
		s.onCleanUp(func() { p.listens.Close() })
	}
	for _, proxy := range s.internet.Proxies {
		ip, err := netip.ParseAddr(proxy)
		if err != nil {
			return err
		}
		p.proxies = append(p.proxies, ip)
	}
	if len(p.proxies) > 0 {
		return s.openBehindProxies(p)
	}
	s.public = p
	return nil
}

// openBehindProxies has the listener serve proxies: in plain HTTP those of this machine, and others by TLS with the
// certificate of the site's key, as an agent of the network gets it.
func (s *site) openBehindProxies(p *publicName) error {
	s.public = p
	if web.IsLoopback(p.listens.Addr()) {
		return nil
	}
	now := func() time.Time { t, _ := s.access.Now(); return t }
	secured, err := web.ServerTLS(s.key, s.hostNames(), now)
	if err != nil {
		return err
	}
	secured.ClientAuth = tls.NoClientCert
	p.listens = tls.NewListener(p.listens, secured)
	return nil
}

// servePublic serves the public name until ctx ends. The routes are complete.
func (s *site) servePublic(ctx context.Context, group *errgroup.Group) {
	p := s.public
	if p == nil {
		return
	}
	if len(p.relays) == 0 {
		p.choose()
	}
	if len(p.proxies) > 0 {
		group.Go(func() error { return web.Serve(ctx, p.listens, behindProxies{p}) })
		return
	}
	group.Go(func() error { p.certs.Run(ctx); return nil })
	passed := public.Listen(s.network, p.relays)
	for _, ln := range []net.Listener{passed, p.listens} {
		if ln != nil {
			group.Go(func() error { return web.Serve(ctx, tls.NewListener(ln, p.certs.Config()), p) })
		}
	}
	asker := &public.Asker{Host: s.network, Relays: p.relays, Own: p.own, Heard: p.heard}
	group.Go(func() error { asker.Run(ctx); return nil })
	late := time.AfterFunc(keepNameFor, p.choose)
	s.onCleanUp(func() { late.Stop() })
}

// ServeHTTP serves a caller under the public name.
func (p *publicName) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := p.handler.Load()
	if h == nil {
		w.Header().Set("Retry-After", "2")
		web.RefuseRPC(w, http.StatusServiceUnavailable, "the site's public name is not known yet: try again when a relay has answered")
		return
	}
	(*h).ServeHTTP(w, r)
}

// behindProxies serves callers whom proxies bring, which have ended their TLS.
type behindProxies struct{ *publicName }

func (b behindProxies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !slices.Contains(b.proxies, at.Addr().Unmap()) {
		http.Error(w, "only the proxies of this site's configuration may connect here", http.StatusForbidden)
		return
	}
	r = r.WithContext(r.Context())
	r.TLS = new(tls.ConnectionState) // at the proxy; a key that one proves is not the caller's
	from, ok := forwardedFor(r.Header, b.proxies)
	if ok {
		r.RemoteAddr = netip.AddrPortFrom(from, 0).String()
	}
	b.silent.Store(!ok)
	b.publicName.ServeHTTP(w, r)
}

// forwardedFor returns the last address in X-Forwarded-For that is not one of the proxies: what is before it is the
// caller's word. It is not ok where the proxies do not add it.
func forwardedFor(h http.Header, proxies []netip.Addr) (from netip.Addr, ok bool) {
	all := strings.Split(strings.Join(h.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(all) {
		text = strings.TrimSpace(text)
		at, err := netip.ParseAddrPort(text) // as some write it
		if from = at.Addr(); err != nil {
			if from, err = netip.ParseAddr(strings.Trim(text, "[]")); err != nil {
				return from, false
			}
		}
		if from = from.Unmap().WithZone(""); !slices.Contains(proxies, from) {
			return from, true
		}
	}
	return from, false
}

// heard takes a relay's answer.
func (p *publicName) heard(relay peer.ID, a public.Answer, err error) {
	p.mu.Lock()
	was := p.answers[relay]
	p.answers[relay] = answer{a, err}
	p.mu.Unlock()
	if a != was.Answer {
		slog.Info("a relay answered about the public name", "relay", relay, "name", a.Name, "own", a.Own, "why", a.Why)
	}
	p.choose()
}

// choose serves the owner's own name, or one that the relays give: that of the stored certificate as long as one
// of them gives it, and otherwise that of the first.
func (p *publicName) choose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := p.own
	p.reached = p.listens != nil
	if p.own != "" {
		for _, a := range p.answers {
			p.reached = p.reached || a.Own
		}
	} else {
		name = p.given()
		p.reached = name != ""
		if p.reached {
			p.missed = time.Time{}
		} else if p.missed.IsZero() {
			p.missed = time.Now()
		}
	}
	if name != "" && name != p.name {
		h := p.handle(name)
		p.handler.Store(&h)
		p.name = name
	}
	if !p.reached {
		name = ""
	}
	p.certs.SetName(name)
}

// given returns the name that the relays give; "" while the site waits for one. The lock is held.
func (p *publicName) given() (name string) {
	kept := cmp.Or(p.certified(), p.name)
	for _, relay := range p.relays {
		switch a := p.answers[relay]; {
		case a.err != nil || a.Name == "":
		case a.Name == kept:
			return kept
		case name == "":
			name = a.Name
		}
	}
	if kept != "" && (p.missed.IsZero() || time.Since(p.missed) < keepNameFor) {
		return ""
	}
	return name
}

// state returns how the name is.
func (p *publicName) state() acts.PublicState {
	c := p.certs.Status()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := acts.PublicState{
		Certificate: c.Name, Until: c.Until, Next: c.Next, Orders: c.Orders, LogRead: c.LogRead, LogErr: c.LogErr,
	}
	if p.name != "" {
		s.URL = "https://" + p.name + "/mcp"
	}
	problem := func(format string, args ...any) { s.Problems = append(s.Problems, fmt.Sprintf(format, args...)) }
	for _, relay := range p.relays {
		a, asked := p.answers[relay]
		why := a.Why
		switch {
		case !asked:
			why = "it was not asked yet"
		case a.err != nil:
			why = "it is not connected, or gives no public names: " + a.err.Error()
		}
		s.Relays = append(s.Relays, acts.PublicRelay{Relay: relay.String(), Why: why})
		if p.own != "" && a.Name != "" {
			s.Target = a.Name
		}
	}
	if p.own != "" && c.Account != "" && c.CAA != "" && !p.staging {
		s.CAA = p.own + `. CAA 0 issue "` + c.CAA + `; validationmethods=tls-alpn-01; accounturi=` + c.Account + `"`
	}
	if !p.reached {
		problem("no relay brings callers")
	}
	if p.silent.Load() {
		problem("the proxy does not say where a caller is (X-Forwarded-For), so that all callers share one caller's limits: " +
			"have it add that")
	}
	if len(p.proxies) > 0 {
		return s
	}
	if c.Waits != "" {
		problem("the certificate: %s", c.Waits)
	}
	if c.Err != "" {
		problem("the last order of a certificate failed: %s", c.Err)
	}
	for _, f := range c.Foreign {
		s.Alarms = append(s.Alarms, fmt.Sprintf("somebody else has a certificate for %.260q, and may read what clients say: "+
			"serial %s, by %.120q, until %s; "+
			"set the CAA record of your own name, or take a name of your own, and have the authority revoke it "+
			"(it may be one that this site ordered, and forgot with a lost public.json or by an older backup)",
			f.Name, f.Serial, f.Issuer, f.Until.Format(time.DateOnly)))
	}
	if c.Name != "" && c.Name != p.name && p.name != "" {
		problem("the certificate is for %s, and not for %s", c.Name, p.name)
	}
	if p.staging {
		problem("the certificate is for trials (acme: staging), and clients refuse it")
	}
	return s
}

// maxLooks bounds the relays through which the site looks at itself, and lookTime the time for all.
const (
	maxLooks = 2
	lookTime = 25 * time.Second
)

// publicState returns how the URL is at which programs sign in. It tells how a public name looks from outside if that
// is asked for.
func (s *site) publicState(ctx context.Context, from bool) acts.PublicState {
	state := acts.PublicState{URL: s.signInURL, Local: true}
	if s.public != nil {
		state = s.public.state()
	}
	state.SignIns = s.signIns.Arrivals()
	if _, sure := s.access.Now(); !sure {
		state.Problems = append(state.Problems, "the clock is not set, so that programs are put off: "+
			"agentsite clock --set on the site's own machine sets it")
	}
	if !s.access.Claimed() {
		state.Problems = append(state.Problems, "nobody owns this site yet, so that no program can sign in: claim it "+
			"with the line that it shows at its start")
	}
	if !from || s.public == nil || state.URL == "" {
		return state
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var all sync.WaitGroup
	for _, relay := range s.public.outsiders() {
		i := slices.IndexFunc(state.Relays, func(r acts.PublicRelay) bool { return r.Relay == relay.String() })
		all.Go(func() {
			state.Relays[i].Steps = look.At(ctx, state.URL, func(ctx context.Context, name string) (net.Conn, error) {
				return public.DialBy(ctx, s.network, relay, name)
			})
		})
	}
	all.Wait()
	return state
}

// outsiders returns relays that give public names and do not bring the callers of this one.
func (p *publicName) outsiders() (all []peer.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, relay := range p.relays {
		if a, asked := p.answers[relay]; asked && a.err == nil && !a.Own && a.Name != p.name && len(all) < maxLooks {
			all = append(all, relay)
		}
	}
	return all
}

// publicCarriers returns what answers under the public name, for the list of everything that listens.
func (s *site) publicCarriers() (all []acts.Carrier) {
	p := s.public
	p.mu.Lock()
	name := p.name
	p.mu.Unlock()
	var at []string
	if name != "" {
		at = append(at, "https://"+name)
	}
	if p.listens != nil {
		at = append(at, "https://"+p.listens.Addr().String())
	}
	routes := s.publicRoutes(s.signIns.at.Load())
	for _, a := range at {
		all = append(all, acts.Carrier{
			Kind: acts.PublicCarrier, Address: a, Routes: web.Patterns(routes, web.Owners), Public: web.Patterns(routes, web.Readers),
		})
	}
	return all
}
