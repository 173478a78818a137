package mdns

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"

	"agentsite/discovery"

	"github.com/miekg/dns"
)

// wire is a link without sockets.
type wire struct {
	*link
	in    chan packet
	fail  chan error
	wants func([]byte) bool // of who listens

	mu   sync.Mutex
	out  []sent
	seen []discovery.Sighting
}

type sent struct {
	*dns.Msg
	on int
	to netip.AddrPort
}

// newWire is a link with an interface for each list of addresses, numbered from 1.
func newWire(t *testing.T, own ...[]string) *wire {
	w := &wire{in: make(chan packet), fail: make(chan error, 1)}
	w.link = &link{own: make(map[int]iface), packets: w.in, failed: w.fail, close: func() {}}
	w.send = func(b []byte, on int, to netip.AddrPort) {
		m := new(dns.Msg)
		if err := m.Unpack(b); err != nil {
			t.Errorf("it sent %x: %v", b, err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.out = append(w.out, sent{m, on, to})
	}
	for n, nets := range own {
		i := iface{Interface: net.Interface{Index: n + 1, Name: "eth" + string(rune('0'+n))}}
		for _, a := range nets {
			i.nets = append(i.nets, netip.MustParsePrefix(a))
		}
		w.own[n+1] = i
	}
	return w
}

// say delivers a neighbour's message on the first interface.
func (w *wire) say(from string, m *dns.Msg) {
	w.sayBytes(from, pack(m))
}

func (w *wire) sayBytes(from string, b []byte) {
	if w.wants(b) {
		w.in <- packet{b, 1, netip.MustParseAddrPort(from)}
	}
	synctest.Wait()
}

// take returns the messages sent since the last call.
func (w *wire) take() []sent {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.out = nil }()
	return w.out
}

// see notes what a finder emits, and takes good records.
func (w *wire) see(s discovery.Sighting) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, s)
	if s.Record == nil {
		return nil
	}
	_, err := discovery.Open(s.Record)
	return err
}

// sightings are those so far.
func (w *wire) sightings() []discovery.Sighting {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

func rr(t *testing.T, text string) dns.RR {
	t.Helper()
	r, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
