package p2p

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
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
	// reachTimeout bounds how long it takes to reach a site.
	reachTimeout = 10 * time.Second
	// directHeadStart is the time for which only direct addresses are dialled.
	directHeadStart = 250 * time.Millisecond

	// localDialTimeout bounds the dial of a local address, at which a remote site never
	// answers.
	localDialTimeout = 2 * time.Second

	// limitedReason allows a stream on a limited connection, through a relay.
	limitedReason = "a call does with what a relay allows"
)

// Path is how a site is reached.
type Path string

const (
	Direct  Path = "direct"
	Punched Path = "punched" // through routers that admit no inbound connection
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

// hasDirectConn reports whether a peer is connected without a relay.
func (h *Host) hasDirectConn(who peer.ID) bool {
	return slices.ContainsFunc(h.Network().ConnsToPeer(who), func(c network.Conn) bool {
		return !c.IsClosed() && !IsRelayed(c.RemoteMultiaddr())
	})
}

// Reach connects to a site, unless it is connected, at one of addrs or of the addresses that the
// site gave earlier. It dials them all, those through relays a moment later. It blocks for ten
// seconds at most.
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
		return errors.Join(bad, fmt.Errorf("no known address of %v", who))
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	h.clearBackoff(who)
	for _, r := range relaysOf(h.Peerstore().Addrs(who)) {
		h.clearBackoff(r.ID)
		h.Peerstore().AddAddrs(r.ID, r.Addrs, peerstore.TempAddrTTL)
	}
	return dialFailure(h.Connect(network.WithAllowLimitedConn(ctx, limitedReason), peer.AddrInfo{ID: who}), bad)
}

// dialFailure shortens the library's error of a connection attempt, which has a line for each
// address. bad is the error of addresses that could not be parsed, nil for none.
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
		return errors.New("none of its addresses can be dialled from here")
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

// ErrRefused is returned where something answers at a site's address or relay, and closes the
// connection.
var ErrRefused = errors.New("the site, or its relay, closes connections at once: too many are open from this key or this network, or another program has its address")

// isRefused reports whether something answered at an address and closed the connection: the
// limit of a site or a relay, before or after the handshake.
func isRefused(e swarm.TransportError) bool {
	var q *quicgo.TransportError
	return errors.Is(e.Cause, io.EOF) || errors.As(e.Cause, &q) && q.Remote && q.ErrorCode == quicgo.ConnectionRefused ||
		strings.Contains(e.Cause.Error(), pb.Status_RESOURCE_LIMIT_EXCEEDED.String())
}

// isConnected reports whether there is a connection, also through a relay.
func (h *Host) isConnected(who peer.ID) bool {
	c := h.Network().Connectedness(who)
	return c == network.Connected || c == network.Limited
}

// clearBackoff lets a peer be dialled again that did not answer a moment ago.
func (h *Host) clearBackoff(who peer.ID) {
	if s, ok := h.Network().(interface{ Backoff() *swarm.DialBackoff }); ok {
		s.Backoff().Clear(who)
	}
}

// relaysOf returns the relays that addresses lead through, each by QUIC and by TCP.
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

// PingResult is the path and the address of a ping, and its round-trip time.
type PingResult struct {
	Path    Path
	Address string
	RTT     time.Duration
}

// Ping reaches a site at its known addresses and measures the round-trip time.
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

// ping measures the second of two exchanges: the first includes opening the stream.
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
