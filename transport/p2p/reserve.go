package p2p

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	pb "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	// relayTimeout bounds how long a relay may take to answer.
	relayTimeout = 4 * time.Second

	// renewInterval is the pause between renewals. A reservation lasts for an hour, but callers have
	// to get through again ten seconds after a killed relay was restarted. QUIC alone notices that
	// after 45 s, as its keep-alives are too small for a stateless reset. Relays are renewed in
	// turn: callers use the others meanwhile.
	renewInterval = 8 * time.Second

	// maxAddrsPerRelay bounds the announced addresses through one relay.
	maxAddrsPerRelay = 4

	relayTag = "relay"
)

// relayAddrs holds the addresses through the relays with a reservation. The library's own
// client asks a relay again after five seconds at best, and its dialler may refuse that. The
// zero value has none.
type relayAddrs struct {
	mu sync.Mutex
	at map[peer.ID][]ma.Multiaddr // addresses through each relay
}

// add appends the addresses through relays to the host's own. The library omits them as soon as
// anybody reaches the host directly, and not everybody has IPv6.
func (r *relayAddrs) add(own []ma.Multiaddr) []ma.Multiaddr {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := own
	for _, at := range r.at {
		all = append(all, at...)
	}
	return all
}

// set stores the addresses through a relay, and reports whether they have changed.
func (r *relayAddrs) set(relay peer.ID, at []ma.Multiaddr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.EqualFunc(r.at[relay], at, ma.Multiaddr.Equal) {
		return false
	}
	if r.at == nil {
		r.at = make(map[peer.ID][]ma.Multiaddr)
	}
	r.at[relay] = at
	return true
}

// keepReservations keeps a reservation at each relay until everybody reaches the host
// directly, as confirmed by AutoNAT and by dial-backs of two relays.
func (h *Host) keepReservations(relays []peer.AddrInfo) error {
	changes, err := h.EventBus().Subscribe(new(event.EvtHostReachableAddrsChanged))
	if err != nil {
		return err
	}
	addrs, err := h.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated), eventbus.Stateful)
	if err != nil {
		return err
	}
	h.onClose(addrs.Close)
	begin := func() (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		turns := time.NewTicker(renewInterval)
		var keeping sync.WaitGroup
		for _, relay := range relays {
			keeping.Go(func() { h.keepReservation(ctx, relay, turns.C, addrs) })
		}
		return func() { cancel(); turns.Stop(); keeping.Wait() }
	}
	var (
		reachable atomic.Bool              // as AutoNAT has it
		look      = make(chan struct{}, 1) // at whether places are needed
		witnesses = newDialBacks(relays)
		following sync.WaitGroup
	)
	again := func() {
		select {
		case look <- struct{}{}:
		default:
		}
	}
	watch := &network.NotifyBundle{ConnectedF: func(_ network.Network, c network.Conn) {
		if witnesses.observe(c) {
			again()
		}
	}}
	h.Network().Notify(watch)
	ended := make(chan struct{})
	following.Go(func() { // the host blocks on a subscriber that does not drain its events
		defer close(ended)
		for e := range changes.Out() {
			reachable.Store(slices.ContainsFunc(e.(event.EvtHostReachableAddrsChanged).Reachable, isDirectIPv4))
			again()
		}
	})
	following.Go(func() {
		stop := begin()
		for {
			select {
			case <-look:
			case <-ended:
				if stop != nil {
					stop()
				}
				return
			}
			switch reached := reachable.Load() && witnesses.confirmed(); {
			case reached && stop != nil:
				stop()
				stop = nil
			case !reached && stop == nil:
				stop = begin()
			}
		}
	})
	h.onClose(func() error {
		h.Network().StopNotify(watch)
		err := changes.Close()
		following.Wait()
		return err
	})
	return nil
}

// isDirectIPv4 reports whether everybody can use an address: not everybody has IPv6.
func isDirectIPv4(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_IP4)
	return err == nil && !IsRelayed(a)
}

// keepReservation keeps a reservation at a relay until ctx ends, and announces changed
// addresses. Of all relays with a reservation, the one renewed longest ago receives the next
// of the renewals.
func (h *Host) keepReservation(ctx context.Context, relay peer.AddrInfo, turns <-chan time.Time, addrs event.Emitter) {
	tell := func(at []ma.Multiaddr) {
		if h.relayAddrs.set(relay.ID, at) {
			_ = addrs.Emit(event.EvtAutoRelayAddrsUpdated{RelayAddrs: h.relayAddrs.add(nil)})
		}
	}
	held := func() bool { return h.Network().Connectedness(relay.ID) == network.Connected }
	lost := make(chan struct{}, 1)
	watch := &network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) {
		if c.RemotePeer() == relay.ID && !held() {
			select {
			case lost <- struct{}{}:
			default:
			}
		}
	}}
	h.Network().Notify(watch)
	h.ConnManager().Protect(relay.ID, relayTag)
	defer func() {
		h.Network().StopNotify(watch)
		h.ConnManager().Unprotect(relay.ID, relayTag)
		tell(nil)
	}()
	var renewed time.Time
	var reminding sync.WaitGroup
	defer reminding.Wait()
	ask := func(ctx context.Context, dial bool) ([]ma.Multiaddr, error) {
		dial = h.closeStale(relay.ID, &renewed) || dial
		at, err := h.requestReservation(ctx, relay, dial)
		if err == nil && dial {
			reminding.Go(func() { h.limiter.resendCallers(ctx, relay.ID) })
		}
		return at, err
	}
	(&reservationKeeper{ask, held, lost, turns, tell}).run(ctx)
}

// reconnectInterval is the minimum time between connections that closeStale closes. It limits the
// cost of strangers whose hole punches fail, on purpose or not.
const reconnectInterval = 10 * time.Minute

// closeStale closes a connection to a relay that is older than the last failed hole punch,
// unless a caller uses it. A router gets another address, at night mostly, and QUIC survives
// that: then nobody knows this host's new address. The next connection tells it. last is when
// closeStale closed one.
func (h *Host) closeStale(relay peer.ID, last *time.Time) (closed bool) {
	failed := h.punched.lastFailure()
	if time.Since(*last) < reconnectInterval {
		return false
	}
	for _, c := range h.Network().ConnsToPeer(relay) {
		if c.Stat().Opened.Before(failed) && !h.hasCallsThrough(relay) {
			c.Close()
			closed, *last = true, time.Now()
		}
	}
	return closed
}

// hasCallsThrough reports whether a peer is connected through a relay.
func (h *Host) hasCallsThrough(relay peer.ID) bool {
	return slices.ContainsFunc(h.Network().Conns(), func(c network.Conn) bool {
		return relayOf(c.RemoteMultiaddr()) == relay
	})
}

// requestReservation reserves at a relay and returns the host's addresses through it. Without
// dial it fails where there is no connection.
func (h *Host) requestReservation(ctx context.Context, relay peer.AddrInfo, dial bool) ([]ma.Multiaddr, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*relayTimeout)
	defer cancel()
	if dial {
		h.clearBackoff(relay.ID)
		if err := h.Connect(ctx, relay); err != nil {
			return nil, err
		}
	}
	place, err := circuit.Reserve(network.WithNoDial(ctx, limitedReason), h, relay)
	if err != nil {
		if silent := new(circuit.ReservationError); errors.As(err, silent) && silent.Status == pb.Status_CONNECTION_FAILED {
			h.Network().ClosePeer(relay.ID) // QUIC has not noticed yet
		}
		return nil, err
	}
	through, err := ma.NewMultiaddr("/p2p/" + relay.ID.String() + "/p2p-circuit")
	if err != nil {
		return nil, err
	}
	var at []ma.Multiaddr
	for _, a := range relay.Addrs { // as the owner wrote them, and by its other protocols
		at = append(at, a.Encapsulate(through))
	}
	for _, a := range place.Addrs {
		if bare, _ := peer.SplitAddr(a); bare != nil && manet.IsPublicAddr(bare) {
			at = append(at, bare.Encapsulate(through))
		}
	}
	at = ma.Unique(at)
	return at[:min(len(at), maxAddrsPerRelay)], nil
}
