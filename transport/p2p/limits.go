package p2p

import (
	"io"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"github.com/libp2p/go-libp2p/x/rate"
	goyamux "github.com/libp2p/go-yamux/v5"
	ma "github.com/multiformats/go-multiaddr"
)

const (
	// Above connsHigh, unprotected connections are closed down to connsLow: a board may have
	// 512 MB. A relay has a machine of its own, and connections beyond its reservations.
	connsLow, connsHigh           = 16, 32
	relayConnsLow, relayConnsHigh = maxReservations + 512, maxReservations + 1024
	connGrace                     = 20 * time.Second

	// maxDialsPerPeer bounds the addresses of a peer that are dialled at a time. Further ones wait, for
	// seconds where the first do not answer.
	maxDialsPerPeer = 32

	// handshakeTimeout bounds how long a connection may take to prove its peer.
	handshakeTimeout = 5 * time.Second
)

// newLimits returns the resource manager, which limits all peers together, also before they
// are known.
func newLimits(relay bool) (network.ResourceManager, error) {
	memory, files := int64(48<<20), 512
	few := rcmgr.ResourceLimits{Conns: 192, ConnsInbound: 128, ConnsOutbound: 128, Streams: 1024, StreamsInbound: 512, StreamsOutbound: 512, FD: rcmgr.LimitVal(files)}
	each, often := 32, rate.Limit{RPS: 5, Burst: 64} // each command of an owner's is a connection
	if relay {
		memory, files = 512<<20, 8192
		few = rcmgr.ResourceLimits{Conns: 4096, ConnsInbound: 4096, ConnsOutbound: 1024, Streams: 16384, StreamsInbound: 16384, StreamsOutbound: 16384, FD: rcmgr.LimitVal(files)}
		each, often = 256, rate.Limit{RPS: 20, Burst: 512} // many homes come from the few addresses of one provider
	}
	few.Memory = rcmgr.LimitVal64(memory)
	transient := few
	transient.Memory = few.Memory / 4
	limits := rcmgr.PartialLimitConfig{
		System: few, Transient: transient,
		// More than places gives a key: those that are on their way, and those that have ended.
		PeerDefault: rcmgr.ResourceLimits{
			Conns: 2*maxPerPeer + maxDialsPerPeer, ConnsInbound: 2 * maxPerPeer,
			ConnsOutbound: maxDialsPerPeer, FD: 2*maxPerPeer + maxDialsPerPeer,
		},
		Protocol:     map[protocol.ID]rcmgr.ResourceLimits{proto.ProtoIDv2Hop: {Streams: 4096, StreamsInbound: 4096}},
		ProtocolPeer: map[protocol.ID]rcmgr.ResourceLimits{ping.ID: {StreamsInbound: maxPerPeer}},
	}
	m, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits.Build(rcmgr.DefaultLimits.Scale(memory, files))),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: each}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: each}}),
		rcmgr.WithConnRateLimiters(&rate.Limiter{
			NetworkPrefixLimits: []rate.PrefixLimit{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}, {Prefix: netip.MustParsePrefix("::1/128")}}, // as often as they like
			SubnetRateLimiter: rate.SubnetLimiter{
				IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: often}},
				IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: often}},
				GracePeriod:      time.Minute,
			},
		}))
	return inboundLimits{m}, err
}

// inboundLimits applies the limits of an address only to inbound direct connections. The library
// also applies them to outbound connections, and counts all callers through a relay as the relay. A
// few strangers would then keep out the other callers, and this host from the relay.
type inboundLimits struct{ network.ResourceManager }

func (m inboundLimits) OpenConnection(way network.Direction, file bool, to ma.Multiaddr) (network.ConnManagementScope, error) {
	if way == network.DirOutbound || IsRelayed(to) {
		to = unlimitedAddr
	}
	return m.ResourceManager.OpenConnection(way, file, to)
}

// unlimitedAddr is an address without per-address limits. All connections without an IP
// address would share one.
var unlimitedAddr = ma.StringCast("/ip4/127.0.0.1")

func newConnManager(relay bool) (*connmgr.BasicConnMgr, error) {
	if relay {
		return connmgr.NewConnManager(relayConnsLow, relayConnsHigh, connmgr.WithGracePeriod(connGrace))
	}
	return connmgr.NewConnManager(connsLow, connsHigh, connmgr.WithGracePeriod(connGrace))
}

// muxers is yamux with less memory, and fewer keep-alives: a router keeps a TCP entry for
// minutes.
var muxers = []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: yamuxConfig()}}

func yamuxConfig() network.Multiplexer {
	c := goyamux.DefaultConfig()
	c.MaxStreamWindowSize = 1 << 20
	c.KeepAliveInterval = time.Minute
	c.MeasureRTTInterval = 5 * time.Minute
	c.LogOutput = io.Discard
	c.ReadBufSize = 0 // the handshake's layer has one
	c.MaxIncomingStreams = 256
	return (*yamux.Transport)(c)
}
