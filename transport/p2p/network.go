package p2p

import (
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	ma "github.com/multiformats/go-multiaddr"
)

// dialBackoff is the longest time for which the library refuses to dial an address that did
// not answer; it doubled that up to five minutes. What returns is found within a minute.
const dialBackoff = 20 * time.Second

// followNetwork forgives all peers that did not answer when the host's own addresses change:
// on another network they may answer. Relays' addresses do not count.
func (h *Host) followNetwork() error {
	changes, err := h.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated))
	if err != nil {
		return err
	}
	h.closing(changes.Close)
	go func() { // it ends with changes, and waits for nobody
		var before []ma.Multiaddr
		for e := range changes.Out() {
			var now []ma.Multiaddr
			for _, a := range e.(event.EvtLocalAddressesUpdated).Current {
				if !OverRelay(a.Address) {
					now = append(now, a.Address)
				}
			}
			if slices.ContainsFunc(now, func(a ma.Multiaddr) bool { return !ma.Contains(before, a) }) {
				for _, p := range h.Peerstore().PeersWithAddrs() {
					h.forgive(p)
				}
			}
			before = now
		}
	}()
	return nil
}
