package p2p

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"
	"agentsite/node/quota"
	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	pb "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"
	ma "github.com/multiformats/go-multiaddr"
	quicgo "github.com/quic-go/quic-go"
	"pgregory.net/rapid"
)

// halfOpen asks a relay for a circuit to a site, and says nothing through it. It reports
// whether the relay gave one.
func (h *Host) halfOpen(ctx context.Context, relay, site *Host) bool {
	s, err := h.NewStream(network.WithNoDial(ctx, limitedReason), relay.ID(), proto.ProtoIDv2Hop)
	if err != nil {
		return false
	}
	s.SetDeadline(time.Now().Add(patience))
	m := &pb.HopMessage{Type: pb.HopMessage_CONNECT.Enum(), Peer: util.PeerInfoToPeerV2(peer.AddrInfo{ID: site.ID()})}
	if util.NewDelimitedWriter(s).WriteMsg(m) != nil {
		return false
	}
	r := util.NewDelimitedReader(s, maxHopRequest)
	defer r.Close()
	var answer pb.HopMessage
	return r.ReadMsg(&answer) == nil && answer.GetStatus() == pb.Status_OK
}

// from is where a host has to listen that is to call from an address of its own.
func from(n int) string { return fmt.Sprintf("/ip4/127.0.0.%d/tcp/0", n) }

// join connects hosts to a relay.
func join(t testing.TB, relay *Host, all ...*Host) {
	t.Helper()
	for _, h := range all {
		if err := h.Connect(t.Context(), peer.AddrInfo{ID: relay.ID(), Addrs: relay.Addrs()}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHalfOpenCircuits: one stranger who opens circuits to a site without an end, and says
// nothing through them, keeps none of fifteen callers from it.
func TestHalfOpenCircuits(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	relay, site := newHost(t, Options{Relay: &Relay{}}, overTCP), newHost(t, Options{})
	serve(t, site, nil)
	at := over(t, relay, site)
	stranger := newHost(t, Options{}, from(2))
	join(t, relay, stranger)
	var hostile sync.WaitGroup
	stop, end := context.WithCancel(ctx)
	defer hostile.Wait()
	defer end()
	full := make(chan bool, 1)
	for range 70 {
		hostile.Go(func() {
			for stop.Err() == nil {
				if !stranger.halfOpen(stop, relay, site) {
					select {
					case full <- true:
					default:
					}
					time.Sleep(10 * time.Millisecond) // or it does harm to this machine
				}
			}
		})
	}
	<-full
	through := 0
	for i := range uint64(15) {
		caller := newHost(t, Options{})
		c := caller.Caller(site.id(t), func() []string { return at }, rpc.CBOR)
		if _, err := c.Call(ctx, ask(i, "echo", "x"), nil); err != nil {
			t.Logf("call %d: %v", i, err)
		} else {
			through++
		}
		caller.Close()
	}
	if through < 15 {
		t.Errorf("%d of 15 calls got through", through)
	}
}

// TestKnownCallersReserve: strangers of many networks have all circuits to a site that strangers
// may have. A caller that the site knows gets through.
func TestKnownCallersReserve(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := identity.New()
	relay := newHost(t, Options{Relay: &Relay{}}, overTCP)
	site := newHost(t, Options{Account: func(id identity.ID) string {
		if id == key.ID() {
			return "owner"
		}
		return ""
	}})
	serve(t, site, nil)
	at := over(t, relay, site)
	learnt := make(chan bool, 1)
	report := site.limiter.reportCaller
	site.limiter.reportCaller = func(relay, caller peer.ID) bool { taken := report(relay, caller); learnt <- taken; return taken }
	call := func(key identity.Key) error {
		owner := newHost(t, Options{Key: key})
		defer owner.Close()
		_, err := owner.Caller(site.id(t), func() []string { return at }, rpc.CBOR).Call(ctx, ask(1, "echo", "x"), nil)
		return err
	}
	if err := call(key); err != nil {
		t.Fatal(err)
	}
	<-learnt
	open := 0
	for i := range siteStranger/prefixToSiteStranger + 1 {
		for range prefixToSiteStranger / keyToSiteStranger {
			h := newHost(t, Options{}, from(2+i))
			join(t, relay, h)
			for range keyToSiteStranger {
				if h.halfOpen(ctx, relay, site) {
					open++
				}
			}
		}
	}
	if open < siteStranger-2 || open > siteStranger {
		t.Errorf("strangers have %d circuits", open)
	}
	if err := call(identity.New()); !errors.Is(err, ErrRefused) {
		t.Errorf("a stranger is told %v", err)
	}
	if err := call(key); err != nil {
		t.Errorf("one who is known does not get through: %v", err)
	}
}

// TestRefused: a refused caller is told so, and not that the site does not answer.
func TestRefused(t *testing.T) {
	for err, want := range map[error]bool{
		io.EOF: true,
		&quicgo.TransportError{Remote: true, ErrorCode: quicgo.ConnectionRefused}:        true,
		fmt.Errorf("error opening relay circuit: %v", pb.Status_RESOURCE_LIMIT_EXCEEDED): true,
		fmt.Errorf("error opening relay circuit: %v", pb.Status_NO_RESERVATION):          false,
		syscall.ECONNREFUSED:       false,
		&quicgo.IdleTimeoutError{}: false,
		context.DeadlineExceeded:   false,
	} {
		all := &swarm.DialError{DialErrors: []swarm.TransportError{{Address: unlimitedAddr, Cause: context.Canceled}, {Address: unlimitedAddr, Cause: fmt.Errorf("failed: %w", err)}}}
		if got := errors.Is(dialFailure(all, nil), ErrRefused); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestRelayForgets: a restarted relay is told again which of its callers a site knows, before any
// of them calls.
func TestRelayForgets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	relay, key := newHost(t, Options{Relay: &Relay{}}, overTCP), identity.New()
	site := newHost(t, Options{
		Account: func(id identity.ID) string { return map[bool]string{true: "owner"}[id == key.ID()] },
		Relays:  []peer.AddrInfo{{ID: relay.ID(), Addrs: relay.Addrs()}},
	})
	serve(t, site, nil)
	at := []string{relay.at()[0] + "/p2p/" + relay.ID().String() + "/p2p-circuit"}
	owner := newHost(t, Options{Key: key})
	for c := owner.Caller(site.id(t), func() []string { return at }, rpc.CBOR); ; {
		if _, err := c.Call(ctx, ask(1, "echo", "x"), nil); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err) // the site has no place
		}
	}
	who := owner.ID()
	owner.Close()
	told := make(chan peer.ID, maxCallers)
	relay.SetStreamHandler(callersProtocol, func(s network.Stream) {
		defer s.Close()
		b, _ := io.ReadAll(s)
		told <- peer.ID(b)
	})
	relay.Network().ClosePeer(site.ID())
	select {
	case got := <-told:
		if got != who {
			t.Errorf("it is told of %v", got)
		}
	case <-ctx.Done():
		t.Error("it is told of nobody")
	}
}

// TestReservationsByPrefix: one network has its share of a relay's places, whatever addresses it
// has, and who has a place keeps it.
func TestReservationsByPrefix(t *testing.T) {
	c := newCircuits(nil, nil)
	net := func(n, host int) netip.Prefix {
		return quota.Prefix(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 0, byte(n), byte(host), 15: byte(host)}))
	}
	honest := peer.ID("honest")
	if !c.reserve(honest, net(1, 0)) {
		t.Fatal("there is room")
	}
	places := 0
	for n := range 4 {
		for i := range 2 * maxReservations / 4 {
			if c.reserve(peer.ID(fmt.Sprint(n, i)), net(n, i)) {
				places++
			}
		}
	}
	if places != 4*maxReservationsPerPrefix-1 {
		t.Errorf("four networks have %d of %d places", places, maxReservations)
	}
	if !c.reserve(honest, net(1, 0)) {
		t.Error("who had a place does not keep it")
	}
	if !c.reserve(peer.ID("another"), net(5, 0)) {
		t.Error("another network has none")
	}
	for who := range c.reservations {
		c.deactivate(who)
	}
	if n := c.held.Held(reservationsFrom{}) + len(c.reservations); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// TestCircuitShares is a model: whatever strangers of a few networks do, callers from other
// networks reach a site, and the counts equal the open circuits.
func TestCircuitShares(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCircuits(nil, nil)
			site, owner := peer.ID("site"), peer.ID("owner")
			home := netip.MustParsePrefix("192.0.2.200/32")
			c.reserve(site, home)
			c.reservations[site].callers = []peer.ID{owner}
			var open []*openCircuit
			enter := func(who peer.ID, from netip.Prefix) bool {
				g := c.admitCircuit(&hopStream{Stream: silent{}}, route{who, site}, from)
				if g != nil {
					open = append(open, g)
				}
				return g != nil
			}
			for range rapid.IntRange(1, 200).Draw(rt, "steps") {
				switch rapid.IntRange(0, 3).Draw(rt, "does") {
				case 0:
					time.Sleep(time.Duration(rapid.IntRange(0, 5000).Draw(rt, "ms")) * time.Millisecond)
				case 1:
					if len(open) > 0 {
						i := rapid.IntRange(0, len(open)-1).Draw(rt, "ends")
						open[i].remove()
					}
				default:
					net := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(1, 4).Draw(rt, "net"))}), 32)
					enter(peer.ID(fmt.Sprint(rapid.IntRange(1, 40).Draw(rt, "key"))), net)
				}
			}
			if !enter("visitor", netip.MustParsePrefix("198.51.100.1/32")) {
				t.Error("a visitor does not get through")
			}
			for range 2 * keyToSite {
				if !enter(owner, home) {
					t.Error("the owner does not get through")
				}
			}
			synctest.Wait()
			counted := 0
			for _, all := range c.open {
				counted += len(all)
			}
			if n := c.held.Held(toSite{site}); n != counted || n > siteCircuits {
				t.Errorf("%d are counted, %d open", n, counted)
			}
			for _, g := range open {
				g.remove()
			}
			if n := c.held.Held(nil); n != 0 || len(c.open) > 0 {
				t.Errorf("%d circuits are left", n)
			}
		})
	})
}

// TestOwnSites: keys of four networks have places, report each other, and call each other
// and everybody else as often as they can. Strangers of another network get through, and who
// is known does, also with the network's own address.
func TestOwnSites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuits(nil, nil)
		net := func(n int) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 32) }
		var hostile []peer.ID
		for i := range 40 {
			hostile = append(hostile, peer.ID(fmt.Sprint("hostile", i)))
			c.reserve(hostile[i], net(i%4))
			c.reservations[hostile[i]].callers = hostile
		}
		for i := range 50 {
			site := peer.ID(fmt.Sprint("site", i))
			c.reserve(site, net(100+i))
			c.reservations[site].callers = []peer.ID{"owner"}
			hostile = append(hostile, site) // is called by them too
		}
		for range 20 {
			for i := range 40 {
				for _, to := range hostile {
					c.admitCircuit(&hopStream{Stream: silent{}}, route{hostile[i], to}, net(i%4))
				}
			}
			time.Sleep(time.Second)
		}
		t.Logf("they have %d circuits, and %d of the reserve", c.held.Held(nil), c.held.Held(reserveOf{}))
		for i := range 50 {
			site := peer.ID(fmt.Sprint("site", i))
			if c.admitCircuit(&hopStream{Stream: silent{}}, route{"visitor", site}, net(200)) == nil {
				t.Errorf("a visitor does not get through to %v", site)
			}
			if c.admitCircuit(&hopStream{Stream: silent{}}, route{"owner", site}, net(0)) == nil {
				t.Errorf("an owner does not get through to %v", site)
			}
		}
	})
}

// TestForgotten: the known callers of returning sites are remembered, although many keys of one
// network connect, report callers and leave.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuits(nil, nil)
		net := func(n int) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 32) }
		come := func(who peer.ID, n int) {
			if !c.reserve(who, net(n)) {
				t.Fatalf("%v has no place", who)
			}
			if len(c.reservations[who].callers) == 0 {
				c.reservations[who].callers = []peer.ID{"owner"}
			}
		}
		for i := range 3 * maxReservations {
			come(peer.ID(fmt.Sprint("hostile", i)), 1)
			c.deactivate(peer.ID(fmt.Sprint("hostile", i)))
		}
		come("site", 2)
		c.deactivate("site")
		if len(c.reservations) > maxReservationsPerPrefix+1 {
			t.Errorf("%d sites are remembered", len(c.reservations))
		}
		if p := c.reservations["site"]; p == nil || len(p.callers) == 0 {
			t.Error("a site's callers are forgotten")
		}
		come("site", 3)
		time.Sleep(2 * reservationTTL)
		come("another", 4)
		c.expire(time.Now().Add(2 * reservationTTL))
		for _, group := range []any{reservationsFrom{}, reservationsFrom{net(3)}, inactiveFrom{}, inactiveFrom{net(1)}, inactiveFrom{net(2)}} {
			if n := c.held.Held(group); n != 0 {
				t.Errorf("%d are left of %v", n, group)
			}
		}
	})
}

// silent is a stream that takes everything, and of which nothing becomes.
type silent struct{ network.Stream }

func (silent) Reset() error                { return nil }
func (silent) SetDeadline(time.Time) error { return nil }
func (silent) Write(b []byte) (int, error) { return len(b), nil }
func (silent) Read(b []byte) (int, error)  { return len(b), nil }

// connect is the stream of a caller who asks for a circuit to a site.
type connect struct {
	silent
	said *bytes.Reader
}

func newConnect(to peer.ID) connect {
	var said bytes.Buffer
	util.NewDelimitedWriter(&said).WriteMsg(&pb.HopMessage{Type: pb.HopMessage_CONNECT.Enum(), Peer: util.PeerInfoToPeerV2(peer.AddrInfo{ID: to})})
	return connect{said: bytes.NewReader(said.Bytes())}
}

func (c connect) Read(b []byte) (int, error)     { return c.said.Read(b) }
func (connect) Conn() network.Conn               { return visitor{} }
func (connect) SetReadDeadline(time.Time) error  { return nil }
func (connect) SetWriteDeadline(time.Time) error { return nil }
func (connect) Close() error                     { return nil }

type visitor struct{ network.Conn }

func (visitor) RemotePeer() peer.ID           { return "visitor" }
func (visitor) RemoteMultiaddr() ma.Multiaddr { return ma.StringCast("/ip4/192.0.2.1/tcp/1") }

// TestCircuitsAtOnce: a caller that asks for more circuits at once than it may have loses the
// oldest of them, also if that was counted a moment ago.
func TestCircuitsAtOnce(t *testing.T) {
	c, site := newCircuits(nil, nil), identity.New().ID()
	to, err := PeerID(site)
	if err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	for range 4 * keyToSiteStranger {
		asking.Go(func() { c.admitRequest(newConnect(to)) })
	}
	asking.Wait()
	if n := c.held.Held(toSite{to}); n != keyToSiteStranger {
		t.Errorf("it has %d circuits", n)
	}
}

// TestLeastUsedCircuit: a caller with the maximum number of circuits loses the one that was silent
// for longest, be that seconds or hours.
func TestLeastUsedCircuit(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, 3 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c, who := newCircuits(nil, nil), route{"visitor", "site"}
			var all []*openCircuit
			for range keyToSiteStranger + 2 {
				all = append(all, c.admitCircuit(&hopStream{Stream: silent{}}, who, netip.Prefix{}))
				time.Sleep(pause)
			}
			if open := c.open[who]; !slices.Equal(open, all[2:]) {
				t.Errorf("with pauses of %v, the last %d are not those that stay", pause, len(open))
			}
		})
	}
}
