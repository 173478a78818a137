package p2p

import (
	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/p2p/host/pstoremanager"
	circuitrelay "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
)

// Relay configures a relay, whose limits suffice for calls, pictures and hole punching.
type Relay struct {
	// Allow reports whether a peer may have a reservation. It is called concurrently. nil
	// allows everybody. Anybody may call a site with a reservation: the site decides.
	Allow func(identity.ID) bool
}

func (r *Relay) serve(h *Host) error {
	c := newCircuits(h.Host, r.Allow)
	limits := circuitrelay.DefaultResources()
	limits.Limit = &circuitrelay.RelayLimit{Duration: circuitTime, Data: circuitBytes}
	limits.ReservationTTL = reservationTTL
	// circuits enforces tighter limits than these; it counts by network and spares known callers.
	limits.MaxReservations, limits.MaxReservationsPerIP, limits.MaxReservationsPerASN = 2*maxReservations, 2*maxReservations, 2*maxReservations
	limits.MaxCircuits = 2 * relayCircuits
	relay, err := circuitrelay.New(c, circuitrelay.WithResources(limits))
	if err != nil {
		return err
	}
	h.onClose(relay.Close)
	c.start()
	// The host has one of these too, which remembers disconnected peers for a minute.
	peers, err := pstoremanager.NewPeerstoreManager(h.Peerstore(), h.EventBus(), h.Network(), pstoremanager.WithGracePeriod(releaseInterval), pstoremanager.WithCleanupInterval(releaseInterval))
	if err != nil {
		return err
	}
	peers.Start()
	h.onClose(peers.Close)
	return nil
}
