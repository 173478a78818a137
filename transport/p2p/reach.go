package p2p

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	pb "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	ma "github.com/multiformats/go-multiaddr"
	quicgo "github.com/quic-go/quic-go"
)

const (
	// reachPatience is how long it may take to reach a site, by whatever way.
	reachTimeout = 10 * time.Second
	// straightFirst is how long relays are left alone while the site may answer itself: so
	// long they are not met, and then so long nobody calls through them.
	directHeadStart = 250 * time.Millisecond
	// relayPatience is how long a relay may take to answer.
	relayDialTimeout = 3 * time.Second

	// nearPatience is how long an address of a network at home may take, at which a site
	// elsewhere will never answer.
	localDialTimeout = 2 * time.Second

	// why is for libp2p, which uses relays only where a reason is given.
	limitedReason = "a call does with what a relay allows"
)

// Path is the kind of way to a site.
type Path string

const (
	Direct  Path = "direct"
	Punched Path = "punched" // through routers that let nobody in
	Relayed Path = "relayed"
)

func (h *Host) path(c network.Conn) Path {
	switch {
	case IsRelayed(c.RemoteMultiaddr()):
		return Relayed
	case h.punched.to(c.RemotePeer()):
		return Punched
	}
	return Direct
}

// straight reports whether a peer is connected without a relay.
func (h *Host) hasDirectConn(who peer.ID) bool {
	return slices.ContainsFunc(h.Network().ConnsToPeer(who), func(c network.Conn) bool {
		return !c.IsClosed() && !IsRelayed(c.RemoteMultiaddr())
	})
}

// Reach connects to a site, where it is not connected yet, at one of the addresses, which
// are multiaddrs, or at one that the site gave earlier. Relays are used where nothing else
// goes. It blocks for ten seconds at most.
func (h *Host) Reach(ctx context.Context, site identity.ID, addrs []string) error {
	who, err := PeerID(site)
	if err != nil {
		return err
	}
	return h.reach(ctx, who, addrs)
}

func (h *Host) reach(ctx context.Context, who peer.ID, addrs []string) error {
	if h.isConnected(who) {
		return nil
	}
	at, bad := parseMultiaddrs(addrs)
	h.Peerstore().AddAddrs(who, at, peerstore.TempAddrTTL)
	if len(h.Peerstore().Addrs(who)) == 0 {
		return errors.Join(bad, fmt.Errorf("no address of %v is known", who))
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	h.clearBackoff(who)
	relays := relaysOf(h.Peerstore().Addrs(who))
	if len(relays) == 0 {
		return dialFailure(h.Connect(ctx, peer.AddrInfo{ID: who}), bad)
	}
	var trying sync.WaitGroup
	defer trying.Wait()
	defer cancel()
	straight := make(chan error, 1)
	trying.Go(func() { straight <- h.Connect(network.WithForceDirectDial(ctx, limitedReason), peer.AddrInfo{ID: who}) })
	select {
	case err := <-straight:
		if err == nil {
			return nil
		}
	case <-time.After(directHeadStart):
	}
	h.connectAny(ctx, relays)
	return dialFailure(h.Connect(network.WithAllowLimitedConn(ctx, limitedReason), peer.AddrInfo{ID: who}), bad)
}

// unanswered is why somebody was not reached, in a sentence: the library's has a line for
// each address. What is bad are addresses that are none, which matters no more once one answers.
func dialFailure(err, bad error) error {
	var all *swarm.DialError
	switch {
	case err == nil:
		return nil
	case bad != nil:
		return bad
	case !errors.As(err, &all):
		return err
	case len(all.DialErrors) == 0:
		return errors.New("none of its addresses leads anywhere from here")
	}
	said := fmt.Sprintf("none of its %d addresses answers", len(all.DialErrors)+all.Skipped)
	if strings.Contains(err.Error(), pb.Status_NO_RESERVATION.String()) {
		said += ", and it is not at its relay now"
	}
	if slices.ContainsFunc(all.DialErrors, isRefused) {
		return fmt.Errorf("%s; %w", said, ErrRefused)
	}
	return errors.New(said)
}

// ErrRefused is why a site was not reached where somebody answers, it or its relay.
var ErrRefused = errors.New("a connection is ended at once where it is: too many are open from this key or this network just now, or another program has its address")

// refused reports whether somebody answered at an address, and ended it at once: a bound of
// a site or a relay, before or after the handshake.
func isRefused(e swarm.TransportError) bool {
	var q *quicgo.TransportError
	return errors.Is(e.Cause, io.EOF) || errors.As(e.Cause, &q) && q.Remote && q.ErrorCode == quicgo.ConnectionRefused ||
		strings.Contains(e.Cause.Error(), pb.Status_RESOURCE_LIMIT_EXCEEDED.String())
}

// connected reports whether there is a connection, be it over a relay.
func (h *Host) isConnected(who peer.ID) bool {
	c := h.Network().Connectedness(who)
	return c == network.Connected || c == network.Limited
}

// forgive has a peer be dialled though it did not answer a moment ago: somebody asks now.
func (h *Host) clearBackoff(who peer.ID) {
	if s, ok := h.Network().(interface{ Backoff() *swarm.DialBackoff }); ok {
		s.Backoff().Clear(who)
	}
}

// relaysOf are those over which some addresses lead, by QUIC and by TCP.
func relaysOf(addrs []ma.Multiaddr) []peer.AddrInfo {
	var relays []peer.AddrInfo
	for _, a := range addrs {
		relay, rest := ma.SplitFunc(a, func(c ma.Component) bool { return c.Protocol().Code == ma.P_CIRCUIT })
		if rest == nil || relay == nil {
			continue
		}
		if r, err := peer.AddrInfoFromP2pAddr(relay); err == nil {
			r.Addrs = addOtherTransport(r.Addrs)
			relays = append(relays, *r)
		}
	}
	return relays
}

// meet connects to relays until one answers. Each tells besides where it sees this host, so
// that the site can punch a hole to there.
func (h *Host) connectAny(ctx context.Context, relays []peer.AddrInfo) {
	ctx, cancel := context.WithTimeout(ctx, relayDialTimeout)
	defer cancel()
	var trying sync.WaitGroup
	for _, r := range relays {
		trying.Go(func() {
			h.clearBackoff(r.ID)
			if h.Connect(ctx, r) == nil {
				cancel()
			}
		})
	}
	trying.Wait()
}

// Pong is what came of a ping: by which way, to which address, and how long it took there
// and back.
type PingResult struct {
	Path    Path
	Address string
	RTT     time.Duration
}

// Ping reaches a site, at the addresses that are known already, and measures how far it is.
func (h *Host) Ping(ctx context.Context, site identity.ID) (PingResult, error) {
	who, err := PeerID(site)
	if err != nil {
		return PingResult{}, err
	}
	if err := h.reach(ctx, who, nil); err != nil {
		return PingResult{}, err
	}
	return h.ping(ctx, who)
}

// ping measures the second of two exchanges: the first one opens the stream as well.
func (h *Host) ping(ctx context.Context, who peer.ID) (PingResult, error) {
	s, err := h.openStream(ctx, who, ping.ID)
	if err != nil {
		return PingResult{}, err
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	pong := PingResult{Path: h.path(s.Conn()), Address: s.Conn().RemoteMultiaddr().String()}
	said, heard := make([]byte, ping.PingSize), make([]byte, ping.PingSize)
	for range 2 {
		rand.Read(said)
		begun := time.Now()
		if _, err := s.Write(said); err != nil {
			return PingResult{}, errors.Join(ctx.Err(), err)
		}
		if _, err := io.ReadFull(s, heard); err != nil {
			return PingResult{}, errors.Join(ctx.Err(), err)
		}
		pong.RTT = time.Since(begun)
	}
	return pong, nil
}
