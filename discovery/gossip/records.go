package gossip

import (
	"slices"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
)

// recordless is a host on which gossipsub collects no signed peer records. It would keep one
// of each peer that ever connected, forever (docs/upstream.md), and needs them only for peer
// exchange, which is off.
type recordless struct{ host.Host }

func (h recordless) EventBus() event.Bus { return recordlessBus{h.Host.EventBus()} }

type recordlessBus struct{ event.Bus }

// Subscribe removes identification from a subscription to connectedness, which is that of
// gossipsub's address book.
func (b recordlessBus) Subscribe(types any, opts ...event.SubscriptionOpt) (event.Subscription, error) {
	if all, ok := types.([]any); ok && slices.ContainsFunc(all, isA[event.EvtPeerConnectednessChanged]) {
		types = slices.DeleteFunc(slices.Clone(all), isA[event.EvtPeerIdentificationCompleted])
	}
	return b.Bus.Subscribe(types, opts...)
}

func isA[T any](pointer any) bool { _, ok := pointer.(*T); return ok }
