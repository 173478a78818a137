package p2p

import (
	"time"

	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/peer"
	circuitrelay "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
)

// Relay is how a host is a relay: enough for calls, and for pictures, and a reason to
// punch a hole.
type Relay struct {
	// Allow reports whether a peer may have a place here. It is asked by many at a time.
	// nil allows everybody. Whoever has a place may be called by everybody: the site
	// there decides.
	Allow func(identity.ID) bool
}

const (
	relayPlaces  = 1024
	relayPerIP   = 64 // many homes share one address
	circuitTime  = 30 * time.Minute
	circuitBytes = 16 << 20 // each way
)

func (r *Relay) serve(h *Host) error {
	limits := circuitrelay.DefaultResources()
	limits.Limit = &circuitrelay.RelayLimit{Duration: circuitTime, Data: circuitBytes}
	limits.MaxReservations = relayPlaces
	limits.MaxCircuits = 4 * maxStrangers // a site ends those of strangers for others, once it is asked
	limits.MaxReservationsPerIP = relayPerIP
	limits.MaxReservationsPerASN = relayPlaces
	relay, err := circuitrelay.New(h.Host, circuitrelay.WithResources(limits), circuitrelay.WithACL(allowed{r.Allow}))
	if err != nil {
		return err
	}
	h.closing(relay.Close)
	return nil
}

type allowed struct{ known func(identity.ID) bool }

func (a allowed) AllowReserve(p peer.ID, _ ma.Multiaddr) bool {
	id, err := idOf(p)
	return a.known == nil || err == nil && a.known(id)
}

func (allowed) AllowConnect(peer.ID, ma.Multiaddr, peer.ID) bool { return true }
