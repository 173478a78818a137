package dht

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// current is the sequence of the sites' records. Older ones are about.
const current = 2

// net is a network on loopback: servers, which know each other, and who uses them.
type net struct {
	t        testing.TB
	servers  []*node
	known    []peer.AddrInfo
	patience time.Duration // of who uses them, if not the usual
}

// node is a DHT with its own host. Its card has its announcement.
type node struct {
	*DHT
	host *p2p.Host
	key  identity.Key
	card atomic.Pointer[card.Card]
	told atomic.Pointer[discovery.Signed] // of a newer record of its own
	end  func()                           // once
}

func newNet(t testing.TB, servers int) *net {
	n := &net{t: t}
	for range servers {
		s := n.open(identity.New(), Options{Server: true})
		n.servers = append(n.servers, s)
		if len(n.known) < 2 {
			n.known = append(n.known, s.at())
		}
		if err := s.join(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func listen(t testing.TB, key identity.Key, server bool) *p2p.Host {
	t.Helper()
	o := p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}}
	if server {
		o.Relay = &p2p.Relay{}
	}
	h, err := p2p.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// open makes a node, which ends with the test or before.
func (n *net) open(key identity.Key, o Options) *node {
	n.t.Helper()
	m := &node{host: listen(n.t, key, o.Server), key: key}
	o.Host, o.Bootstrap = m.host, n.known
	if o.Capabilities == nil {
		o.Capabilities = func() []string {
			if c := m.card.Load(); c != nil {
				return c.Capabilities
			}
			return nil
		}
	}
	o.Newer = func(r *discovery.Signed) { m.told.Store(r) }
	var err error
	if m.DHT, err = New(o); err != nil {
		n.t.Fatal(err)
	}
	if n.patience > 0 {
		m.sender.timeout = n.patience
	}
	m.end = sync.OnceFunc(func() {
		if err := m.DHT.Close(); err != nil {
			n.t.Error(err)
		}
		m.host.Close()
	})
	n.t.Cleanup(m.end)
	return m
}

func (m *node) at() peer.AddrInfo { return peer.AddrInfo{ID: m.host.ID(), Addrs: m.host.Addrs()} }

// site makes a node that has been announced, with what it can do.
func (n *net) site(realm discovery.Realm, capabilities ...string) *node {
	n.t.Helper()
	m := n.open(identity.New(), Options{Realm: realm})
	r := discoverytest.Record(m.key, current)
	n.t.Cleanup(m.show(realm, r, capabilities...))
	m.announced.Store(r)
	if _, _, err := m.announce(n.t.Context(), r, selectAddrs(m.host.Addrs())); err != nil {
		n.t.Fatal(err)
	}
	return m
}

// show serves the node's card.
func (m *node) show(realm discovery.Realm, record *discovery.Signed, capabilities ...string) (stop func()) {
	m.card.Store(&card.Card{Record: record.Bytes(), Capabilities: capabilities})
	return card.Serve(m.host, realm, func() card.Card { return *m.card.Load() }, func(r *discovery.Signed) { m.told.Store(r) })
}

// Announce is that of the node's DHT, with the card beside it.
func (m *node) Announce(ctx context.Context, record *discovery.Signed) error {
	defer m.show(m.o.Realm, record)()
	return m.DHT.Announce(ctx, record)
}

func realm(t testing.TB, name string) discovery.Realm {
	t.Helper()
	r, err := discovery.NewRealm(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lookup returns the sites that a node finds.
func (m *node) lookup(t testing.TB, capability string) (found []identity.ID) {
	t.Helper()
	err := m.Lookup(t.Context(), capability, func(s discovery.Sighting) error {
		r, err := discovery.Open(s.Record)
		if err != nil || r.Site != s.Site || r.Sequence != current || s.For <= 0 {
			t.Errorf("%v was found with %v, %v for %v", s.Site, r, err, s.For)
		}
		if slices.Contains(found, s.Site) {
			t.Errorf("%v was found twice", s.Site)
		}
		found = append(found, s.Site)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// located returns the addresses that a node finds of a site.
func (m *node) located(ctx context.Context, site identity.ID) (all []ma.Multiaddr, err error) {
	err = m.Locate(ctx, site, func(some []ma.Multiaddr) { all = append(all, some...) })
	return all, err
}

func ids(sites ...*node) (all []identity.ID) {
	for _, s := range sites {
		all = append(all, s.key.ID())
	}
	return all
}

func alike(a, b []identity.ID) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(id identity.ID) bool { return !slices.Contains(b, id) })
}

func free(t *testing.T) *p2p.Host {
	h := listen(t, identity.New(), false)
	t.Cleanup(func() { h.Close() })
	return h
}
