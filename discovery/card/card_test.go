package card

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, key identity.Key, relay *p2p.Relay) *p2p.Host {
	t.Helper()
	h, err := p2p.New(p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Relay: relay})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func at(h *p2p.Host) peer.AddrInfo { return peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()} }

func realm(t testing.TB, name string) discovery.Realm {
	t.Helper()
	r, err := discovery.NewRealm(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCard(t *testing.T) {
	key := identity.New()
	site, asker, home := open(t, key, nil), open(t, identity.New(), nil), realm(t, "home")
	record := discoverytest.Record(key, 7).Bytes()
	says := Card{record, []string{"switch", "measurement/temperature", "switch"}}
	stop := Serve(site, home, func() Card { return says }, nil)
	defer stop()

	c, err := Fetch(t.Context(), asker, home, at(site))
	if err != nil || !bytes.Equal(c.Record, record) || !slices.Equal(c.Capabilities, []string{"measurement/temperature", "switch"}) {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, other := range []discovery.Realm{realm(t, "home"), realm(t, "away"), discovery.PublicRealm()} {
		if c, err := Fetch(t.Context(), asker, other, at(site)); err == nil {
			t.Errorf("%#v reads the card of home: %+v", other, c)
		}
	}
	says = Card{discoverytest.Record(identity.New(), 1).Bytes(), nil}
	if c, err := Fetch(t.Context(), asker, home, at(site)); err == nil {
		t.Errorf("a site shows the record of another: %+v", c)
	}
	says = Card{record, []string{"Bad Name"}}
	if c, err := Fetch(t.Context(), asker, home, at(site)); err == nil {
		t.Errorf("a bad name is taken: %+v", c)
	}
}

// TestOutsider: a peer outside the realm gets not a byte, whatever it sends.
func TestOutsider(t *testing.T) {
	key := identity.New()
	site, asker, home := open(t, key, nil), open(t, identity.New(), nil), realm(t, "home")
	defer Serve(site, home, func() Card { return Card{Record: discoverytest.Record(key, 1).Bytes()} }, nil)()
	if err := asker.Connect(t.Context(), at(site)); err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, nonceSize)
	for what, says := range map[string][]byte{
		"nothing": nil, "little": []byte("GET / HTTP/1.1\r\n\r\n"), "zeroes": make([]byte, nonceSize+proofSize), "much": make([]byte, 1<<16),
		"the public realm":  append(nonce, proof(discovery.PublicRealm(), "ask", site.ID(), asker.ID(), nonce, nil)...),
		"another's proof":   append(nonce, proof(home, "ask", site.ID(), site.ID(), nonce, nil)...),
		"to another":        append(nonce, proof(home, "ask", asker.ID(), asker.ID(), nonce, nil)...),
		"an answer":         append(nonce, proof(home, "answer", site.ID(), asker.ID(), nonce, nil)...),
		"with another once": append(bytes.Repeat([]byte{1}, nonceSize), proof(home, "ask", site.ID(), asker.ID(), nonce, nil)...),
	} {
		s, err := asker.NewStream(t.Context(), site.ID(), Protocol)
		if err != nil {
			t.Fatal(err)
		}
		s.Write(says)
		s.CloseWrite()
		if b, err := io.ReadAll(s); len(b) > 0 || err == nil {
			t.Errorf("who says %s is answered %x, %v", what, b, err)
		}
		s.Reset()
	}
}

// TestNewer: a site is told of a newer record, which has to be its own, by one of its realm.
func TestNewer(t *testing.T) {
	key := identity.New()
	site, asker, home := open(t, key, nil), open(t, identity.New(), nil), realm(t, "home")
	heard := make(chan uint64, 10)
	defer Serve(site, home, func() Card { return Card{} }, func(r *discovery.Signed) { heard <- r.Sequence })()
	if err := SendNewer(t.Context(), asker, home, at(site), discoverytest.Record(key, 7)); err != nil || <-heard != 7 {
		t.Error(err)
	}
	if SendNewer(t.Context(), asker, home, at(site), discoverytest.Record(identity.New(), 8)) == nil {
		t.Error("another's record is taken")
	}
	if SendNewer(t.Context(), asker, realm(t, "home"), at(site), discoverytest.Record(key, 8)) == nil {
		t.Error("an outsider is heard")
	}
	if len(heard) > 0 {
		t.Errorf("the site was told of %d", <-heard)
	}
}

// TestBrokenOff: a connection that ends just when it is used is no refusal.
func TestBrokenOff(t *testing.T) {
	key := identity.New()
	site, asker, home := open(t, key, nil), open(t, identity.New(), nil), realm(t, "home")
	asked := 0
	defer Serve(site, home, func() Card {
		if asked++; asked == 1 {
			site.Network().ClosePeer(asker.ID())
		}
		return Card{Record: discoverytest.Record(key, 1).Bytes()}
	}, nil)()
	if _, err := Fetch(t.Context(), asker, home, at(site)); err != nil || asked != 2 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}

// TestCallerLimit: a caller that keeps requests open has few slots, and others are served.
func TestCallerLimit(t *testing.T) {
	key := identity.New()
	site, stranger, home := open(t, key, nil), open(t, identity.New(), nil), realm(t, "home")
	defer Serve(site, home, func() Card { return Card{Record: discoverytest.Record(key, 1).Bytes()} }, nil)()
	if err := stranger.Connect(t.Context(), at(site)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, maxServedPerPeer+1)
	for range maxServedPerPeer + 1 {
		s, err := stranger.NewStream(t.Context(), site.ID(), Protocol)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Reset()
		if _, err := s.Write([]byte("so")); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := io.ReadAll(s)
			ended <- err
		}()
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("who has too many is answered")
		}
	case <-time.After(timeout / 2):
		t.Error("one has more places than each may")
	}
	if _, err := Fetch(t.Context(), open(t, identity.New(), nil), home, at(site)); err != nil {
		t.Error(err)
	}
}

// TestRelayed: a card is read over a relay too.
func TestRelayed(t *testing.T) {
	key := identity.New()
	site, asker, relay := open(t, key, nil), open(t, identity.New(), nil), open(t, identity.New(), new(p2p.Relay))
	defer Serve(site, discovery.PublicRealm(), func() Card { return Card{Record: discoverytest.Record(key, 1).Bytes()} }, nil)()
	if _, err := circuit.Reserve(t.Context(), site, at(relay)); err != nil {
		t.Fatal(err)
	}
	over := ma.StringCast(fmt.Sprintf("%v/p2p/%v/p2p-circuit", relay.Addrs()[0], relay.ID()))
	if _, err := Fetch(t.Context(), asker, discovery.PublicRealm(), peer.AddrInfo{ID: site.ID(), Addrs: []ma.Multiaddr{over}}); err != nil {
		t.Fatal(err)
	}
	if !asker.Network().ConnsToPeer(site.ID())[0].Stat().Limited {
		t.Error("it did not go over the relay")
	}
}

// TestRelayedStrangers: silent strangers over a relay, as many as a site has connections for, keep
// out no other caller over the same relay.
func TestRelayedStrangers(t *testing.T) {
	const strangers = 15
	key := identity.New()
	site, relay := open(t, key, nil), open(t, identity.New(), new(p2p.Relay))
	defer Serve(site, discovery.PublicRealm(), func() Card { return Card{Record: discoverytest.Record(key, 1).Bytes()} }, nil)()
	if _, err := circuit.Reserve(t.Context(), site, at(relay)); err != nil {
		t.Fatal(err)
	}
	over := ma.StringCast(fmt.Sprintf("%v/p2p/%v/p2p-circuit", relay.Addrs()[0], relay.ID()))
	there := peer.AddrInfo{ID: site.ID(), Addrs: []ma.Multiaddr{over}}
	ctx := network.WithAllowLimitedConn(t.Context(), "card")
	for i := range strangers {
		h, err := p2p.New(p2p.Options{Key: identity.New(), Listen: []string{fmt.Sprintf("/ip4/127.0.0.%d/tcp/0", 2+i%5)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		if err := h.Connect(ctx, there); err != nil {
			t.Fatal(err)
		}
		for range maxServedPerPeer {
			if s, err := h.NewStream(ctx, site.ID(), Protocol); err == nil {
				s.Write([]byte("so"))
			}
		}
	}
	if _, err := Fetch(t.Context(), open(t, identity.New(), nil), discovery.PublicRealm(), there); err != nil {
		t.Error(err)
	}
}

// TestImpostor: a peer that is no site of the realm answers in vain, and holds nobody up.
func TestImpostor(t *testing.T) {
	impostor, asker, home := open(t, identity.New(), nil), open(t, identity.New(), nil), realm(t, "home")
	for what, answer := range map[string]func(network.Stream){
		"much":   func(s network.Stream) { s.Write(make([]byte, 1<<20)) },
		"zeroes": func(s network.Stream) { s.Write(make([]byte, 200)) },
		"echo":   func(s network.Stream) { io.Copy(s, s) },
		"reset":  func(s network.Stream) { s.Reset() },
		"drips": func(s network.Stream) {
			for every := time.NewTicker(100 * time.Millisecond); ; <-every.C {
				if _, err := s.Write([]byte{0}); err != nil {
					return
				}
			}
		},
	} {
		var done sync.WaitGroup
		done.Add(1)
		impostor.SetStreamHandler(Protocol, func(s network.Stream) {
			defer done.Done()
			defer s.Close()
			answer(s)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		start := time.Now()
		if c, err := Fetch(ctx, asker, home, at(impostor)); err == nil {
			t.Errorf("who answers with %s has the card %+v", what, c)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("who answers with %s holds up for %v", what, took)
		}
		cancel()
		done.Wait()
	}
}

func TestCapabilities(t *testing.T) {
	for _, good := range []string{"switch", "measurement/temperature", "a_b-9/c"} {
		if err := CheckCapability(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "/", "a/", "/a", "a/b/c", "A", "a b", "a\n", strings.Repeat("a", 25), "ü"} {
		if err := CheckCapability(bad); err == nil {
			t.Errorf("%q is a capability", bad)
		}
	}
	key := identity.New()
	c := Card{Record: bytes.Repeat([]byte{1}, discovery.MaxRecord)}
	for i := range maxCapabilities {
		c.Capabilities = append(c.Capabilities, fmt.Sprintf("%s/%024d", strings.Repeat("a", 24), i))
	}
	if b, err := c.write(); err != nil || len(b) > maxCard {
		t.Errorf("the largest card has %d bytes, %v", len(b), err)
	}
	c.Capabilities = append(c.Capabilities, "b")
	if _, err := c.write(); err == nil {
		t.Error("a card has more capabilities than it may")
	}
	for _, names := range [][]string{{"b", "a"}, {"a", "a"}} {
		b, err := form.Encode(Card{discoverytest.Record(key, 1).Bytes(), names})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read(b, key.ID()); err == nil {
			t.Errorf("%q is taken", names)
		}
	}
}

// both are the two directions of a stream.
type both struct {
	io.Reader
	io.Writer
}

func (both) CloseWrite() error { return nil }

// FuzzCard: any input of a stranger, as a card, an answer or a question, decodes to a card of the
// site in its canonical form, or to an error.
func FuzzCard(f *testing.F) {
	key := discoverytest.Key()
	b, err := Card{discoverytest.Record(key, 1).Bytes(), []string{"switch", "measurement/temperature"}}.write()
	if err != nil {
		f.Fatal(err)
	}
	public := discovery.PublicRealm()
	f.Add(b)
	f.Add(append(make([]byte, proofSize), b...))
	f.Add([]byte{0xa1, 1, 0x40})
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := read(b, key.ID()); err == nil {
			if again, err := c.write(); err != nil || !bytes.Equal(again, b) {
				t.Fatalf("%x is written as %x, %v", b, again, err)
			}
		}
		if c, err := exchange(both{bytes.NewReader(b), io.Discard}, public, "asker", key.ID(), "site"); err == nil {
			t.Fatalf("an answer to no question is taken: %+v", c)
		}
	})
}
