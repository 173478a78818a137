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
	// relayPatient is how long a relay may take to answer.
	relayTimeout = 4 * time.Second

	// relayCheck is how often a place is asked for anew, though it would last for an hour:
	// who calls has to be able to within ten seconds after a relay was killed and begun
	// anew. QUIC alone notices that after 45 s, for its keep-alives are too small to be
	// answered by who does not know what they belong to. Relays take turns: who has places
	// at several is called through the others meanwhile.
	renewInterval = 8 * time.Second

	// maxRelayed is how many addresses through one relay are told.
	maxAddrsPerRelay = 4

	relayTag = "relay"
)

// reserved are the places that a host has at relays, so that it is called there where it
// is not reached itself. The library's own keeper of places asks a relay again after five
// seconds at best, and its dialler may refuse that then. The zero value has none.
type relayAddrs struct {
	mu sync.Mutex
	at map[peer.ID][]ma.Multiaddr // where the host is called through each
}

// add adds the addresses that lead through relays to those of the host: the library does
// only while there is no other that anybody reaches, and not all have IPv6.
func (r *relayAddrs) add(own []ma.Multiaddr) []ma.Multiaddr {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := own
	for _, at := range r.at {
		all = append(all, at...)
	}
	return all
}

// set reports whether this is news: where the host is called through a relay.
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

// reserve keeps places at all relays until everybody reaches the host directly, on the word
// of AutoNAT and of two of them.
func (h *Host) keepReservations(relays []peer.AddrInfo) error {
	changes, err := h.EventBus().Subscribe(new(event.EvtHostReachableAddrsChanged))
	if err != nil {
		return err
	}
	news, err := h.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated), eventbus.Stateful)
	if err != nil {
		return err
	}
	h.onClose(news.Close)
	begin := func() (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		turns := time.NewTicker(renewInterval)
		var keeping sync.WaitGroup
		for _, relay := range relays {
			keeping.Go(func() { h.keepReservation(ctx, relay, turns.C, news) })
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
	following.Go(func() { // the host waits for who does not drain its events
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

// byAll reports whether everybody has a way to an address: not all have IPv6.
func isDirectIPv4(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_IP4)
	return err == nil && !IsRelayed(a)
}

// keep keeps a reservation at a relay until ctx ends, and announces the host's addresses
// when they change. Of the relays that have given one, the one that was asked longest ago
// takes the next of the turns.
func (h *Host) keepReservation(ctx context.Context, relay peer.AddrInfo, turns <-chan time.Time, news event.Emitter) {
	tell := func(at []ma.Multiaddr) {
		if h.relayAddrs.set(relay.ID, at) {
			_ = news.Emit(event.EvtAutoRelayAddrsUpdated{RelayAddrs: h.relayAddrs.add(nil)})
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

// renewPause is the least time between connections that renew ends: a stranger whose hole
// cannot be punched, on purpose or not, costs no more than one.
const reconnectInterval = 10 * time.Minute

// renew ends a connection to a relay that is older than the last hole which could not be
// punched, once nobody calls through it. Routers get other addresses, at night mostly, and
// QUIC lives on through that: then nobody knows where this host is. The next one tells.
// last is when it did so last.
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

// callsThrough reports whether anybody is connected through a relay.
func (h *Host) hasCallsThrough(relay peer.ID) bool {
	return slices.ContainsFunc(h.Network().Conns(), func(c network.Conn) bool {
		id, err := c.RemoteMultiaddr().ValueForProtocol(ma.P_P2P) // the first is the relay's
		return err == nil && id == relay.String() && IsRelayed(c.RemoteMultiaddr())
	})
}

// place asks a relay for a place, and returns where the host is called then. Without dial
// it fails where there is no connection.
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
