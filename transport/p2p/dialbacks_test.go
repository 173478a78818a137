package p2p

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2"
	ma "github.com/multiformats/go-multiaddr"
)

// outbound is a connection that the host opened.
type outbound struct{ inbound }

func (*outbound) Stat() network.ConnStats {
	return network.ConnStats{Stats: network.Stats{Direction: network.DirOutbound}}
}

// TestDialBacks: a host is reached by everybody once relays of two networks have connected
// to it, which nobody else can make it believe.
func TestDialBacks(t *testing.T) {
	const a, b, c = "/ip4/192.0.2.1/tcp/", "/ip4/192.0.2.2/tcp/", "/ip4/192.0.2.3/tcp/"
	synctest.Test(t, func(t *testing.T) {
		ann, bob, eve := someone(t), someone(t), someone(t)
		relays := func(all ...peer.ID) (infos []peer.AddrInfo) {
			for _, p := range all {
				infos = append(infos, peer.AddrInfo{ID: p})
			}
			return infos
		}
		in := func(p peer.ID, at string) network.Conn { return &inbound{who: p, at: ma.StringCast(at)} }
		out := func(p peer.ID, at string) network.Conn { return &outbound{inbound{who: p, at: ma.StringCast(at)}} }
		for name, test := range map[string]struct {
			relays []peer.AddrInfo
			conns  []network.Conn
			want   bool
		}{
			"nobody":                   {relays(ann), []network.Conn{out(ann, a+"1")}, false},
			"the only relay":           {relays(ann), []network.Conn{out(ann, a+"1"), in(eve, a+"2")}, true},
			"a stranger":               {relays(ann), []network.Conn{out(ann, a+"1"), in(eve, c+"2"), in(someone(t), b+"2")}, false},
			"a stranger whom we call":  {relays(ann), []network.Conn{out(ann, a+"1"), out(eve, c+"1"), in(eve, c+"2")}, false},
			"through the relay":        {relays(ann), []network.Conn{out(ann, a+"1"), in(eve, a+"1/p2p/"+ann.String()+"/p2p-circuit")}, false},
			"one of two, often":        {relays(ann, bob), []network.Conn{out(ann, a+"1"), out(bob, b+"1"), in(eve, a+"2"), in(someone(t), a+"3")}, false},
			"both":                     {relays(ann, bob), []network.Conn{out(ann, a+"1"), out(bob, b+"1"), in(eve, a+"2"), in(eve, b+"3")}, true},
			"one, the other is away":   {relays(ann, bob), []network.Conn{out(ann, a+"1"), in(eve, a+"2")}, false},
			"two of one network":       {relays(ann, bob), []network.Conn{out(ann, a+"1"), out(bob, a+"2"), in(eve, a+"3")}, true},
			"where a relay was before": {relays(ann), []network.Conn{out(ann, a+"1"), in(eve, a+"2"), out(ann, b+"1")}, false},
		} {
			w := newDialBacks(test.relays)
			for _, c := range test.conns {
				w.observe(c)
			}
			if got := w.confirmed(); got != test.want {
				t.Errorf("%s: %v", name, got)
			}
			time.Sleep(dialBackTTL)
			if w.confirmed() {
				t.Errorf("%s: for ever", name)
			}
		}
	})
}

// TestStrangersServeNoAutoNAT: a site with relays asks only these whether it is reachable, and no
// other peer that offers AutoNAT.
func TestStrangersServeNoAutoNAT(t *testing.T) {
	relay, stranger := newHost(t, Options{Relay: &Relay{}}, overTCP), newHost(t, Options{}, overTCP)
	site := newHost(t, Options{Relays: []peer.AddrInfo{{ID: relay.ID(), Addrs: relay.Addrs()}}}, overTCP)
	alone := newHost(t, Options{}, overTCP) // it knows nobody better
	for _, h := range []*Host{site, alone} {
		for _, other := range []*Host{relay, stranger} {
			identified, err := h.EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted))
			if err != nil {
				t.Fatal(err)
			}
			h.Network().ClosePeer(other.ID())
			if err := h.Connect(t.Context(), peer.AddrInfo{ID: other.ID(), Addrs: other.Addrs()}); err != nil {
				t.Fatal(err)
			}
			for (<-identified.Out()).(event.EvtPeerIdentificationCompleted).Peer != other.ID() {
			}
			identified.Close()
			all, err := h.Peerstore().SupportsProtocols(other.ID(), autonatv2.DialProtocol)
			if want := h == alone || other == relay; err != nil || (len(all) > 0) != want {
				t.Errorf("asked: %v, want %v (%v)", len(all) > 0, want, err)
			}
		}
	}
}
