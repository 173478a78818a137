package p2p

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"agentsite/node/quota"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// dialBackTTL is how long an inbound connection from a relay's network proves that the host
// is reachable. The library asks one relay an hour, at random.
const dialBackTTL = 24 * time.Hour

// dialBacks records from which relays' networks the host was connected to, as relays do for
// AutoNAT. One relay alone can answer AutoNAT again and again, but it cannot connect from
// another's network.
type dialBacks struct {
	mu     sync.Mutex
	relays map[peer.ID]netip.Prefix // the network of each at its last connection; zero before
	seen   map[netip.Prefix]time.Time
}

func newDialBacks(relays []peer.AddrInfo) *dialBacks {
	w := &dialBacks{relays: make(map[peer.ID]netip.Prefix), seen: make(map[netip.Prefix]time.Time)}
	for _, r := range relays {
		w.relays[r.ID] = netip.Prefix{}
	}
	return w
}

// observe records a connection, and reports whether confirmed may have changed. It does not
// block.
func (w *dialBacks) observe(c network.Conn) bool {
	at := c.RemoteMultiaddr()
	if IsRelayed(at) {
		return false
	}
	from := quota.PrefixOf(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Stat().Direction == network.DirOutbound {
		if _, ok := w.relays[c.RemotePeer()]; ok {
			w.relays[c.RemotePeer()] = from
		}
		return false
	}
	for _, of := range w.relays {
		if of == from {
			w.seen[from] = time.Now()
			return true
		}
	}
	return false
}

// confirmed reports whether relays of two networks have connected to the host, or the only
// one.
func (w *dialBacks) confirmed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	var networks []netip.Prefix
	need, have := 0, 0
	for _, of := range w.relays {
		if !of.IsValid() { // it was never connected, and may be anywhere
			need++
		} else if !slices.Contains(networks, of) {
			networks = append(networks, of)
			need++
			if at, ok := w.seen[of]; ok && time.Since(at) < dialBackTTL {
				have++
			}
		}
	}
	return have >= min(2, need)
}
