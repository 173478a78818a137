package dht

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	kad "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	n := newNet(t, 3)
	home := realm(t, "home")
	discoverytest.Run(t, 10*time.Second, func(t *testing.T, key identity.Key) discovery.Medium {
		m := (&net{t: t, known: n.known}).open(key, Options{Realm: home})
		return m
	})
}

// TestLookups: every site is found by its capabilities, by every other. After a third of them and
// of the servers ended at once, the live sites are found, and no others.
func TestLookups(t *testing.T) {
	n := newNet(t, 6)
	home := realm(t, "home")
	kinds := []string{"switch", "measurement/temperature", "camera"}
	var sites []*node
	for i := range 20 {
		sites = append(sites, n.site(home, kinds[i%3], "level"))
	}
	check := func(live []*node) {
		t.Helper()
		for i, looks := range live {
			kind := kinds[i%3]
			var want []identity.ID
			for _, s := range live {
				if slices.Contains(s.card.Load().Capabilities, kind) {
					want = append(want, s.key.ID())
				}
			}
			before, start := looks.Requests(), time.Now()
			if got := looks.lookup(t, kind); !alike(got, want) {
				t.Errorf("%d of %d are found by %s", len(got), len(want), kind)
			}
			t.Logf("%d found: %d requests, %v", len(want), looks.Requests()-before, time.Since(start).Round(time.Millisecond))
		}
	}
	check(sites)
	if got := sites[0].lookup(t, "level"); !alike(got, ids(sites...)) {
		t.Errorf("%d of %d are found", len(got), len(sites))
	}
	if got := sites[0].lookup(t, "pump"); len(got) > 0 {
		t.Errorf("%v can do what nobody can", got)
	}
	sites[3].card.Store(&card.Card{Record: sites[3].card.Load().Record}) // the owner took away what it could do
	if got := sites[0].lookup(t, "level"); slices.Contains(got, sites[3].key.ID()) || len(got) != 19 {
		t.Error("a site is found by what it can do no more")
	}
	for _, dead := range append(sites[14:], n.servers[1], n.servers[4]) {
		dead.end()
	}
	check(sites[:14])
}

// TestLate: a late member finds all of the realm at once.
func TestLate(t *testing.T) {
	n := newNet(t, 4)
	home := realm(t, "home")
	want := map[identity.ID]bool{}
	for range 30 {
		want[n.site(home).key.ID()] = true
	}
	late := n.open(identity.New(), Options{Realm: home})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	for look := 1; len(want) > 0 && ctx.Err() == nil; look++ { // a busy machine answers some requests too late
		if err := late.Find(ctx, func(s discovery.Sighting) error {
			if delete(want, s.Site); len(want) == 0 {
				t.Logf("30 sites after %v, in look %d", time.Since(start).Round(time.Millisecond), look)
				cancel()
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(want) > 0 {
		t.Errorf("%d are not found", len(want))
	}
}

// TestUnlinkable: outsiders cannot derive a realm's keys on servers from names.
func TestUnlinkable(t *testing.T) {
	n := newNet(t, 2)
	home, public := realm(t, "home"), discovery.PublicRealm()
	site := n.site(home, "switch", "measurement/temperature")
	open := n.site(public, "camera")
	guesses := func(r discovery.Realm, site *node) (keys []string) {
		for _, words := range [][]string{{"realm"}, {"site", site.host.ID().String()}, {"capability", "switch"}, {"capability", "measurement/temperature"}, {"capability", "camera"}} {
			h := r.Hash(words[0], words[1:]...)
			keys = append(keys, string(h[:]))
		}
		return keys
	}
	s := n.servers[0].library.ProviderStore()
	holds := func(r discovery.Realm, site *node) (known int) {
		for _, digest := range guesses(r, site) {
			who, err := s.GetProviders(t.Context(), append([]byte{0x12, 0x20}, digest...))
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(who, func(p peer.AddrInfo) bool { return p.ID == site.host.ID() }) {
				known++
			}
		}
		return known
	}
	if got := holds(home, site); got != 4 {
		t.Errorf("of a site of home %d keys are held, not 4", got)
	}
	if got := holds(public, open); got != 3 {
		t.Errorf("of an open site %d keys are held, not 3", got)
	}
	for _, other := range []discovery.Realm{public, realm(t, "home"), {}} {
		if got := holds(other, site); got != 0 {
			t.Errorf("%#v knows %d keys of home", other, got)
		}
	}
	if _, err := n.servers[0].library.GetValue(t.Context(), keyOf(site.host.ID())); err == nil {
		t.Error("servers hold the record of a site of home")
	}
	if _, err := n.servers[0].library.GetValue(t.Context(), keyOf(open.host.ID())); err != nil {
		t.Errorf("servers do not hold the record of an open site: %v", err)
	}
	for _, other := range []discovery.Realm{public, realm(t, "home")} {
		if got := n.open(identity.New(), Options{Realm: other}).lookup(t, "switch"); len(got) > 0 {
			t.Errorf("%#v finds %v", other, got)
		}
	}
}

// TestLocate: a site is found by who it is, directly and where its record says.
func TestLocate(t *testing.T) {
	n := newNet(t, 3)
	home := realm(t, "home")
	site := n.site(home)
	looks := n.open(identity.New(), Options{Realm: home})
	at, err := looks.located(t.Context(), site.key.ID())
	if err != nil || !slices.ContainsFunc(at, func(a ma.Multiaddr) bool { return ma.Contains(site.host.Addrs(), a) }) {
		t.Fatalf("%v, %v", at, err)
	}
	if got, err := looks.located(t.Context(), identity.New().ID()); err == nil {
		t.Errorf("who is nowhere is at %v", got)
	}

	key := identity.New()
	relayed := fmt.Sprintf("/ip4/192.0.2.1/udp/8475/quic-v1/p2p/%v/p2p-circuit", n.known[0].ID)
	r := discoverytest.Record(key, 1).Record
	r.Addresses = append(r.Addresses, relayed)
	signed, err := r.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	open := n.open(key, Options{Realm: discovery.PublicRealm()})
	if _, _, err := open.announce(t.Context(), signed, selectAddrs(open.host.Addrs())); err != nil {
		t.Fatal(err)
	}
	looks = n.open(identity.New(), Options{Realm: discovery.PublicRealm()})
	if at, err := looks.located(t.Context(), key.ID()); err != nil || !ma.Contains(at, ma.StringCast(relayed)) {
		t.Errorf("%v, %v", at, err)
	}
}

// TestForgetful: a server that starts anew is told again.
func TestForgetful(t *testing.T) {
	n := newNet(t, 1)
	home := realm(t, "home")
	key := identity.New()
	site := n.open(key, Options{Realm: home})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- site.Announce(ctx, discoverytest.Record(key, 1)) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	seen := make(chan bool, 1)
	look := func() {
		t.Helper()
		looks := n.open(identity.New(), Options{Realm: home})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		go func() {
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-tick.C:
					looks.Refresh()
				}
			}
		}()
		_ = looks.Find(ctx, func(s discovery.Sighting) error {
			if s.Site == key.ID() && s.Record != nil {
				select {
				case seen <- true:
				default:
				}
				cancel()
			}
			return nil
		})
		select {
		case <-seen:
		default:
			t.Fatal("the site is not found")
		}
	}
	look()
	old := n.servers[0]
	at := old.host.Addrs()[0].String()
	old.end()
	h, err := p2p.New(p2p.Options{Key: old.key, Listen: []string{at}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	again, err := New(Options{Host: h, Server: true})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	look()
}

// TestRestored: a site with an older record than others know is sent the newer one, by a peer that
// finds it, and in the public realm by the servers.
func TestRestored(t *testing.T) {
	n := newNet(t, 2)
	home := realm(t, "home")
	key := identity.New()
	site := n.open(key, Options{Realm: home})
	t.Cleanup(site.show(home, discoverytest.Record(key, 5)))
	if _, _, err := site.announce(t.Context(), discoverytest.Record(key, 5), selectAddrs(site.host.Addrs())); err != nil {
		t.Fatal(err)
	}
	looks := n.open(identity.New(), Options{Realm: home})
	known := discoverytest.Record(key, 100)
	err := looks.Lookup(t.Context(), "", func(discovery.Sighting) error { return &discovery.OlderError{Newest: known} })
	if r := site.told.Load(); err != nil || r == nil || r.Sequence != 100 {
		t.Errorf("the site is told of %v, %v", r, err)
	}

	key = identity.New()
	open := n.open(key, Options{Realm: discovery.PublicRealm()})
	for _, sequence := range []uint64{100, 5} {
		if sequence == 5 { // it has forgotten all
			open.end()
			open = n.open(key, Options{Realm: discovery.PublicRealm()})
		}
		if _, _, err := open.announce(t.Context(), discoverytest.Record(key, sequence), selectAddrs(open.host.Addrs())); err != nil {
			t.Fatal(err)
		}
	}
	if r := open.told.Load(); r == nil || r.Sequence != 100 {
		t.Errorf("an open site is told of %v", r)
	}
}

func TestRefuses(t *testing.T) {
	n := newNet(t, 0)
	for name, o := range map[string]Options{
		"a client of no realm": {}, "a server of IPFS": {Server: true, Realm: discovery.PublicRealm(), Prefix: Amino},
	} {
		o.Host = free(t)
		if d, err := New(o); err == nil {
			d.Close()
			t.Errorf("%s is made", name)
		}
	}
	alone := n.open(identity.New(), Options{Realm: realm(t, "home")})
	if err := alone.Lookup(t.Context(), "switch", nil); err == nil {
		t.Error("who knows nobody finds all")
	}
	if err := alone.Lookup(t.Context(), "Switch!", nil); err == nil {
		t.Error("a bad name is looked up")
	}
	if err := alone.DHT.Announce(t.Context(), discoverytest.Record(identity.New(), 1)); err == nil {
		t.Error("a host announces another's site")
	}
}

// TestAmino: a site is found in a network of the library's own servers, whose rules are not
// ours, by the prefix of IPFS.
func TestAmino(t *testing.T) {
	n := newNet(t, 0)
	for range 6 {
		h := free(t)
		server, err := kad.New(h, kad.Mode(kad.ModeServer))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		for _, other := range n.known {
			if err := h.Connect(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			if _, err := server.RoutingTable().TryAddPeer(other.ID, true, false); err != nil {
				t.Fatal(err)
			}
		}
		n.known = append(n.known, peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()})
	}
	home := realm(t, "home")
	n.known = n.known[:2]
	site := n.open(identity.New(), Options{Realm: home, Prefix: Amino})
	record := discoverytest.Record(site.key, current)
	t.Cleanup(site.show(home, record, "switch"))
	if _, _, err := site.announce(t.Context(), record, selectAddrs(site.host.Addrs())); err != nil {
		t.Fatal(err)
	}
	n.known = n.known[1:]
	if found := n.open(identity.New(), Options{Realm: home, Prefix: Amino}).lookup(t, "switch"); len(found) != 1 || found[0] != site.key.ID() {
		t.Errorf("found %v", found)
	}
}

// TestClose: a DHT may be closed while it is asked, and nothing goes on after that.
func TestClose(t *testing.T) {
	n := newNet(t, 1)
	for range 10 {
		h := listen(t, identity.New(), false)
		d, err := New(Options{Host: h, Realm: realm(t, "home"), Bootstrap: []peer.AddrInfo{n.servers[0].at()}})
		if err != nil {
			t.Fatal(err)
		}
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				for range 100 {
					_ = d.join(t.Context())
					_ = d.walk(t.Context(), d.key("realm"), func(peer.ID, []*peer.AddrInfo) {})
				}
			})
		}
		d.Close()
		asking.Wait()
		h.Close()
	}
}
