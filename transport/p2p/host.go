package p2p

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	bhost "github.com/libp2p/go-libp2p/p2p/host/basic"
	blankhost "github.com/libp2p/go-libp2p/p2p/host/blank"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	quicgo "github.com/quic-go/quic-go"
)

// Options configure a host.
type Options struct {
	Key identity.Key

	// Listen are multiaddrs of TCP and QUIC, as ListenAll returns them; none for a host that
	// only calls. Port 0 is any free port.
	Listen []string

	// Relays keep a reservation for the host, so that others reach it through them where they
	// do not reach it directly.
	Relays []peer.AddrInfo

	// Account returns the account that a peer's connections count for, "" for a stranger,
	// which takes no slot from accounts. It is called often and concurrently. nil makes all
	// peers strangers.
	Account func(identity.ID) string

	// PortMap makes the host ask the router for a port (UPnP, NAT-PMP).
	PortMap bool

	// Relay makes the host a relay for others; nil for none.
	Relay *Relay

	// Agent is the host's user agent, such as agentsite/1.2.
	Agent string

	// Background is a protocol whose streams do not keep a connection open.
	Background protocol.ID
}

// Host is a libp2p host with limits. It is safe for concurrent use.
type Host struct {
	host.Host
	basic      *bhost.BasicHost // the embedded host
	limiter    *connLimiter
	background protocol.ID
	punched    *punchTracker
	relayAddrs relayAddrs

	mu      sync.Mutex
	closers []func() error // in the order of creation; Close runs them backwards
	running sync.WaitGroup // goroutines that end with the connections
}

// setLibraryDefaults sets the library's process-wide variables.
var setLibraryDefaults = sync.OnceFunc(func() {
	// A host with two relays of its own does not have the library's four observers of its address.
	observedaddrs.ActivationThresh = 2
	circuit.DialTimeout, circuit.DialRelayTimeout, circuit.ReserveTimeout = relayTimeout, relayTimeout, relayTimeout
	swarm.BackoffMax = maxDialBackoff
	swarm.DefaultPerPeerRateLimit = maxDialsPerPeer
})

// New returns a host that listens and serves until Close.
func New(o Options) (h *Host, err error) {
	setLibraryDefaults()
	key, err := crypto.UnmarshalEd25519PrivateKey(o.Key.Private())
	if err != nil {
		return nil, err
	}
	h = &Host{punched: newPunchTracker(), background: o.Background}
	defer func(h *Host) { // a return of an error sets the result to nil
		if err != nil {
			h.Close()
		}
	}(h)
	limits, err := newLimits(o.Relay != nil)
	if err != nil {
		return nil, err
	}
	h.onClose(limits.Close)
	conns, err := newConnManager(o.Relay != nil)
	if err != nil {
		return nil, err
	}
	h.onClose(conns.Close)
	h.limiter = newConnLimiter(o.Account, conns, o.Relay != nil)

	bus := eventbus.NewBus()
	var server func(peer.ID) bool // AutoNAT servers; all peers, where no relay is known
	if len(o.Relays) > 0 {
		server = func(p peer.ID) bool {
			return slices.ContainsFunc(o.Relays, func(r peer.AddrInfo) bool { return r.ID == p })
		}
	}
	peers, err := newPeerStore(server, o.Relay != nil)
	if err != nil {
		return nil, err
	}
	main, err := h.swarm(key, peers, bus, limits, h.limiter, swarm.WithDialRanker(rankDials))
	if err != nil {
		return nil, err
	}
	observed, err := observedaddrs.NewManager(bus, main)
	if err != nil {
		return nil, err
	}
	observed.Start(main)
	h.onClose(observed.Close)
	reachable, err := h.autonat(limits)
	if err != nil {
		return nil, err
	}
	opts := &bhost.HostOpts{
		EventBus: bus, ConnManager: conns, UserAgent: o.Agent, ProtocolVersion: "agentsite/1", EnablePing: true,
		ObservedAddrsManager: observed, AutoNATv2: reachable, AddrsFactory: h.announcedAddrs,
	}
	if o.PortMap {
		opts.NATManager = bhost.NewNATManager
		opts.ObservedAddrsManager = delayedObservations{observed, time.Now().Add(portMapTimeout)}
	}
	basic, err := bhost.NewHost(streamLimiter{main, h.limiter}, opts)
	if err != nil {
		return nil, err
	}
	h.Host, h.basic = basic, basic
	h.limiter.reportCaller = h.reportCaller
	main.Notify(&network.NotifyBundle{DisconnectedF: h.limiter.disconnected})
	start := sync.OnceFunc(basic.Start)
	h.onClose(func() error {
		start() // the library cannot close a host that was not started
		return basic.Close()
	})
	if o.Relay != nil {
		err = o.Relay.serve(h)
	} else {
		err = h.startHolePunching(basic, observed)
	}
	if err != nil {
		return nil, err
	}
	up, err := newUpgrader(key, limits, h.limiter)
	if err != nil {
		return nil, err
	}
	if err := addCircuits(basic, main, up); err != nil {
		return nil, err
	}
	listen, err := parseMultiaddrs(o.Listen)
	if err != nil {
		return nil, err
	}
	for _, a := range listen { // the library accepts that all but one fail
		if err := main.Listen(a); err != nil {
			return nil, fmt.Errorf("cannot listen at %v (%w): another program may use the port", a, err)
		}
	}
	start()
	h.watchNetwork()
	if len(o.Relays) > 0 {
		if err := h.keepReservations(o.Relays); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Close closes all connections and blocks until everything has ended.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all error
	if h.Host != nil {
		// First: other parts tell all peers that they end, and wait for peers that are silently gone.
		all = h.Network().Close()
	}
	for _, end := range slices.Backward(h.closers) {
		all = errors.Join(all, end())
	}
	h.closers = nil
	h.running.Wait()
	return all
}

// spawn runs a function in a goroutine that Close waits for.
func (h *Host) spawn(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running.Go(f)
}

// onClose registers a function for Close to call.
func (h *Host) onClose(end func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closers = append(h.closers, end)
}

// swarm returns a swarm for TCP and QUIC, which closes its peerstore at the host's Close.
func (h *Host) swarm(key crypto.PrivKey, peers *peerStore, bus event.Bus, limits network.ResourceManager, gate connmgr.ConnectionGater, opts ...swarm.Option) (*swarm.Swarm, error) {
	h.onClose(peers.Close)
	self, err := peer.IDFromPublicKey(key.GetPublic())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(peers.AddPrivKey(self, key), peers.AddPubKey(self, key.GetPublic())); err != nil {
		return nil, err
	}
	udp, err := quicSockets(key, limits)
	if err != nil {
		return nil, err
	}
	h.onClose(udp.Close)
	s, err := swarm.NewSwarm(self, peers, bus, append(opts, swarm.WithResourceManager(limits), swarm.WithConnectionGater(gate),
		// The detectors take a hundred failed dials of one absent site for a network without
		// UDP, and then block QUIC to the relays.
		swarm.WithDialTimeoutLocal(localDialTimeout), swarm.WithUDPBlackHoleSuccessCounter(nil), swarm.WithIPv6BlackHoleSuccessCounter(nil))...)
	if err != nil {
		return nil, err
	}
	h.onClose(s.Close)
	up, err := newUpgrader(key, limits, gate)
	if err != nil {
		return nil, err
	}
	overTCP, err := tcp.NewTCPTransport(up, limits, nil)
	if err != nil {
		return nil, err
	}
	overQUIC, err := quic.NewTransport(key, udp, nil, gate, limits)
	if err != nil {
		return nil, err
	}
	return s, errors.Join(s.AddTransport(overTCP), s.AddTransport(overQUIC))
}

// quicSockets returns the manager of QUIC sockets. It asks the resource manager before a
// handshake costs anything.
func quicSockets(key crypto.PrivKey, limits network.ResourceManager) (*quicreuse.ConnManager, error) {
	raw, err := key.Raw()
	if err != nil {
		return nil, err
	}
	// A board's receive buffers are small, which no call needs: no warning.
	os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	reset, err1 := hkdf.Key(sha256.New, raw, nil, "libp2p quic stateless reset key", len(quicgo.StatelessResetKey{}))
	token, err2 := hkdf.Key(sha256.New, raw, nil, "libp2p quic token generator key", len(quicgo.TokenGeneratorKey{}))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return quicreuse.NewConnManager(quicgo.StatelessResetKey(reset), quicgo.TokenGeneratorKey(token),
		quicreuse.ConnContext(func(ctx context.Context, client *quicgo.ClientInfo) (context.Context, error) {
			from, _ := quicreuse.ToQuicMultiaddr(client.RemoteAddr, quicgo.Version1) // nil is fine
			scope, err := limits.OpenConnection(network.DirInbound, false, from)
			if err != nil {
				return ctx, err
			}
			context.AfterFunc(ctx, scope.Done)
			return network.WithConnManagementScope(ctx, scope), nil
		}),
		quicreuse.VerifySourceAddress(func(from net.Addr) bool { return limits.VerifySourceAddress(from) }),
	)
}

func newUpgrader(key crypto.PrivKey, limits network.ResourceManager, gate connmgr.ConnectionGater) (transport.Upgrader, error) {
	byTLS, err := libp2ptls.New(libp2ptls.ID, key, muxers)
	if err != nil {
		return nil, err
	}
	byNoise, err := noise.New(noise.ID, key, muxers)
	if err != nil {
		return nil, err
	}
	return upgrader.New([]sec.SecureTransport{byTLS, byNoise}, muxers, nil, limits, gate, upgrader.WithAcceptTimeout(handshakeTimeout))
}

// autonat returns the service that asks others whether they reach this host. It also dials
// back for others, with another key and from other sockets.
func (h *Host) autonat(limits network.ResourceManager) (*autonatv2.AutoNAT, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, err
	}
	peers, err := newPeerStore(nil, false)
	if err != nil {
		return nil, err
	}
	s, err := h.swarm(key, peers, eventbus.NewBus(), limits, outboundOnly{},
		swarm.WithDialRanker(swarm.NoDelayDialRanker), swarm.WithReadOnlyBlackHoleDetector())
	if err != nil {
		return nil, err
	}
	dialer := blankhost.NewBlankHost(s)
	h.onClose(dialer.Close)
	return autonatv2.New(dialer)
}

// parseMultiaddrs parses addresses, and returns with an error those before the first bad one.
func parseMultiaddrs(all []string) (read []ma.Multiaddr, err error) {
	for _, text := range all {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			return nil, fmt.Errorf("%.160q is not a multiaddr, such as /ip4/192.0.2.7/udp/8475/quic-v1 (%w)", text, err)
		}
		read = append(read, a)
	}
	return read, nil
}
