package dht

import (
	"context"
	"encoding/base32"

	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	ds "github.com/ipfs/go-datastore"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// announcing announces a node until the test ends.
func (m *node) announcing(t *testing.T, record *discovery.Signed) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Announce(ctx, record) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// knows waits until a server knows a site under a key.
func (s *node) knows(t *testing.T, within time.Duration, site *node, purpose string, words ...string) {
	t.Helper()
	end := time.Now().Add(within)
	for {
		who, err := s.library.ProviderStore().GetProviders(t.Context(), site.hashOf(purpose, words...))
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(who, func(p peer.AddrInfo) bool { return p.ID == site.self }) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not know the site by %s %v after %v", purpose, words, within)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestNamedAfterDisconnect: servers still say where a site is that has disconnected from
// them, as it does when they have many connections.
func TestNamedAfterDisconnect(t *testing.T) {
	n := newNet(t, 2)
	r := realm(t, "home")
	site := n.site(r)
	for _, s := range n.servers {
		if err := s.host.Network().ClosePeer(site.self); err != nil {
			t.Fatal(err)
		}
	}
	client := n.open(identity.New(), Options{Realm: r})
	at, err := client.QuickLocate(t.Context(), site.key.ID())
	if err != nil || len(at.Addrs) == 0 {
		t.Errorf("the site is at %v: %v", at.Addrs, err)
	}
}

func (m *node) hashOf(purpose string, words ...string) []byte {
	return m.DHT.key(purpose, words...).Hash()
}

// TestServerReturns: a known server that was away when the site was announced is told
// within a minute of its return.
func TestServerReturns(t *testing.T) {
	t.Parallel()
	n := newNet(t, 2)
	away := n.servers[1]
	at := away.host.Addrs()[0].String()
	away.end()
	site := n.open(identity.New(), Options{Realm: realm(t, "home")})
	site.announcing(t, discoverytest.Record(site.key, 1))
	n.servers[0].knows(t, 30*time.Second, site, "site", site.self.String())
	h, err := p2p.New(p2p.Options{Key: away.key, Listen: []string{at}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	again := &node{host: h, key: away.key}
	if again.DHT, err = New(Options{Host: h, Server: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Close() })
	again.knows(t, time.Minute, site, "site", site.self.String())
	again.knows(t, time.Minute, site, "realm")
}

// TestEvicted: a site announces itself again to a known server that has lost one of its entries,
// and not to a server that has them all.
func TestEvicted(t *testing.T) {
	t.Parallel()
	n := newNet(t, 1)
	site, server := n.site(realm(t, "home"), "switch"), n.servers[0]
	s := newAnnounceState()
	s.announced(time.Now(), selectAddrs(site.host.Addrs()), nil, true, nil)
	keys, err := site.keys()
	if err != nil {
		t.Fatal(err)
	}
	for i, words := range [][]string{{"realm"}, {"site", site.self.String()}, {"capability", "switch"}} {
		text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString
		key := ds.NewKey(records.ProvidersKeyPrefix + text(keys[i].Hash()) + "/" + text([]byte(site.self)))
		if has, _ := server.store.Has(t.Context(), key); !has {
			t.Fatalf("the server does not have %v", words)
		}
		if err := server.store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		s.suspect(time.Now(), server.self)
		if err := site.recheck(t.Context(), s); err != nil || len(s.unconfirmed) > 0 {
			t.Fatalf("%v, %v", s.unconfirmed, err)
		}
		server.knows(t, 0, site, words[0], words[1:]...)
	}
	before := site.Requests()
	s.suspect(time.Now(), server.self)
	if err := site.recheck(t.Context(), s); err != nil || site.Requests()-before > 4 {
		t.Errorf("%d requests for nothing, %v", site.Requests()-before, err)
	}
}

// TestAnnounceBlocksNoEvents: while a server takes what it is told and says nothing,
// strangers come and go, and the host is there for others.
func TestAnnounceBlocksNoEvents(t *testing.T) {
	t.Parallel()
	hung := listen(t, identity.New(), false)
	t.Cleanup(func() { hung.Close() })
	asked := make(chan struct{}, 1000)
	hung.SetStreamHandler(Prefix+"/kad/1.0.0", func(s network.Stream) {
		asked <- struct{}{}
		io.Copy(io.Discard, s)
		<-t.Context().Done()
		s.Reset()
	})
	n := &net{t: t, known: []peer.AddrInfo{{ID: hung.ID(), Addrs: hung.Addrs()}}, patience: 30 * time.Second}
	site := n.open(identity.New(), Options{Realm: realm(t, "home")})
	site.announcing(t, discoverytest.Record(site.key, 1))
	<-asked
	start := time.Now()
	for range 60 {
		stranger := listen(t, identity.New(), false)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		err := stranger.Connect(ctx, site.at())
		cancel()
		stranger.Close()
		if err != nil {
			t.Fatalf("nobody can connect after %v: %v", time.Since(start), err)
		}
	}
}

// TestJoinEnds: a caller that waits for another's join waits no longer than its context.
func TestJoinEnds(t *testing.T) {
	t.Parallel()
	n := newNet(t, 0)
	m := n.open(identity.New(), Options{Realm: realm(t, "home")})
	m.joining <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.join(ctx) }()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits")
	}
	<-m.joining
}

// TestAnnounceState: the times at which known servers are asked, over all orders of events. A
// server that is back is asked within a minute. A server with flapping connections is asked only a
// few times in a minute.
func TestAnnounceState(t *testing.T) {
	t.Parallel()
	at := []ma.Multiaddr{ma.StringCast("/ip4/192.0.2.1/tcp/1")}
	server := peer.ID("server")
	// run simulates a server that is up as up returns, each second, and returns when it was asked.
	run := func(seconds int, up func(int) bool, event func(int) bool) (asked []int) {
		s := newAnnounceState()
		s.announced(start(0), at, map[peer.ID]bool{server: true}, true, nil)
		for i := range seconds {
			now := start(i)
			if event(i) {
				s.suspect(now, server)
			}
			if len(s.unconfirmed) > 0 && !now.Before(s.recheckAt) {
				asked = append(asked, i)
				if up(i) {
					clear(s.unconfirmed)
				}
				s.rechecked(now, up(i))
			}
		}
		return asked
	}
	never := func(int) bool { return false }
	asked := run(7200, func(i int) bool { return i > 3600 }, never)
	if last := asked[len(asked)-1]; last > 3660 || len(asked) > 3600/15+10 {
		t.Errorf("a server that returned after an hour is told %d s later, after %d attempts", last-3600, len(asked))
	}
	for name, up := range map[string]bool{"answers": true, "does not answer": false} {
		asked := run(3600, func(int) bool { return up }, func(i int) bool { return i%2 == 0 })
		if len(asked) > 5*60 {
			t.Errorf("a server whose connections come and go, and that %s, is asked %d times in an hour", name, len(asked))
		}
	}
	// All are told again after hours, and soon where none was reached.
	s := newAnnounceState()
	s.announced(start(0), at, nil, true, nil)
	if d := s.next().Sub(start(0)); d < minAnnounceInterval || d > maxAnnounceInterval {
		t.Error(d)
	}
	for range 20 {
		s.announced(start(0), at, nil, false, errUnreachable)
	}
	if d := s.next().Sub(start(0)); d > maxAwayPause {
		t.Error(d)
	}
	for range 20 {
		s.announced(start(0), at, nil, false, errors.New("most refuse"))
	}
	if d := s.next().Sub(start(0)); d < maxRetryPause/2 || d > maxRetryPause {
		t.Error(d)
	}
}

func start(second int) time.Time { return time.Unix(1, 0).Add(time.Duration(second) * time.Second) }
