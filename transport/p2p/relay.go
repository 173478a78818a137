package p2p

import (
	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/p2p/host/pstoremanager"
	circuitrelay "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
)

// Relay is how a host is a relay: enough for calls, and for pictures, and a reason to
// punch a hole.
type Relay struct {
	// Allow reports whether a peer may have a place here. It is asked by many at a time.
	// nil allows everybody. Whoever has a place may be called by everybody: the site
	// there decides.
	Allow func(identity.ID) bool
}

func (r *Relay) serve(h *Host) error {
	c := newCircuits(h.Host, r.Allow)
	limits := circuitrelay.DefaultResources()
	limits.Limit = &circuitrelay.RelayLimit{Duration: circuitTime, Data: circuitBytes}
	limits.ReservationTTL = reservationTTL
	// What is bounded below is bounded in circuits, which counts by network and spares
	// those that are known.
	limits.MaxReservations, limits.MaxReservationsPerIP, limits.MaxReservationsPerASN = 2*maxReservations, 2*maxReservations, 2*maxReservations
	limits.MaxCircuits = 2 * relayCircuits
	relay, err := circuitrelay.New(c, circuitrelay.WithResources(limits))
	if err != nil {
		return err
	}
	h.onClose(relay.Close)
	c.start()
	// The host has one of these too, which remembers for a minute who has left.
	peers, err := pstoremanager.NewPeerstoreManager(h.Peerstore(), h.EventBus(), h.Network(), pstoremanager.WithGracePeriod(releaseInterval), pstoremanager.WithCleanupInterval(releaseInterval))
	if err != nil {
		return err
	}
	peers.Start()
	h.onClose(peers.Close)
	return nil
}
