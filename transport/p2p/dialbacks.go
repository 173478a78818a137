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

// witnessTime is how long a connection from a relay's network shows that the host is
// reached. The library asks one of them an hour, at random.
const dialBackTTL = 24 * time.Hour

// witnesses tell from how many relays' networks the host was connected to, which is what
// they do on its behalf when AutoNAT asks them. One of them alone can answer AutoNAT again
// and again, but it cannot connect from another's network.
type dialBacks struct {
	mu     sync.Mutex
	relays map[peer.ID]netip.Prefix // where each was connected to last; the zero one before
	seen   map[netip.Prefix]time.Time
}

func newDialBacks(relays []peer.AddrInfo) *dialBacks {
	w := &dialBacks{relays: make(map[peer.ID]netip.Prefix), seen: make(map[netip.Prefix]time.Time)}
	for _, r := range relays {
		w.relays[r.ID] = netip.Prefix{}
	}
	return w
}

// connected notes a connection, and reports whether it may be news. It does not block.
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

// agree reports whether two relays of different networks have connected to the host, or the
// only one where there is but one.
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
