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
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"github.com/libp2p/go-libp2p/x/rate"
	goyamux "github.com/libp2p/go-yamux/v5"
)

const (
	// A board with 512 MB, and connections beyond which some are ended that nobody
	// needs. A relay has a machine of its own.
	fewConns, mostConns           = 16, 32
	relayFewConns, relayMostConns = 512, 1024
	connGrace                     = 20 * time.Second

	// handshakePatience is how long who has said nothing holds a place.
	handshakePatience = 5 * time.Second

	// relayAgain is after what a relay is asked again that did not answer.
	relayAgain = 5 * time.Second
)

// newLimits bounds what all peers together may take up, before they are known too.
func newLimits(relay bool) (network.ResourceManager, error) {
	memory, files := int64(48<<20), 512
	few := rcmgr.ResourceLimits{Conns: 192, ConnsInbound: 128, ConnsOutbound: 128, Streams: 1024, StreamsInbound: 512, StreamsOutbound: 512, FD: rcmgr.LimitVal(files)}
	opts := []rcmgr.Option{rcmgr.WithMetricsDisabled()}
	if relay {
		memory, files = 512<<20, 8192
		few = rcmgr.ResourceLimits{Conns: 4096, ConnsInbound: 4096, ConnsOutbound: 1024, Streams: 16384, StreamsInbound: 16384, StreamsOutbound: 16384, FD: rcmgr.LimitVal(files)}
		// Many homes come from the few addresses of one provider.
		opts = append(opts,
			rcmgr.WithLimitPerSubnet(
				[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: 256}},
				[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: 256}}),
			rcmgr.WithConnRateLimiters(&rate.Limiter{
				NetworkPrefixLimits: []rate.PrefixLimit{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}, {Prefix: netip.MustParsePrefix("::1/128")}},
				SubnetRateLimiter: rate.SubnetLimiter{
					IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: rate.Limit{RPS: 20, Burst: 512}}},
					IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: rate.Limit{RPS: 20, Burst: 512}}},
					GracePeriod:      time.Minute,
				},
			}))
	}
	few.Memory = rcmgr.LimitVal64(memory)
	transient := few
	transient.Memory = few.Memory / 4
	limits := rcmgr.PartialLimitConfig{
		System: few, Transient: transient,
		ProtocolPeer: map[protocol.ID]rcmgr.ResourceLimits{ping.ID: {StreamsInbound: 2}},
	}
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits.Build(rcmgr.DefaultLimits.Scale(memory, files))), opts...)
}

func newConns(relay bool) (*connmgr.BasicConnMgr, error) {
	if relay {
		return connmgr.NewConnManager(relayFewConns, relayMostConns, connmgr.WithGracePeriod(connGrace))
	}
	return connmgr.NewConnManager(fewConns, mostConns, connmgr.WithGracePeriod(connGrace))
}

// muxers is yamux with less memory, and fewer of the wake-ups that keep a router's entry
// alive: over TCP these last for minutes.
var muxers = []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: thrifty()}}

func thrifty() network.Multiplexer {
	c := goyamux.DefaultConfig()
	c.MaxStreamWindowSize = 1 << 20
	c.KeepAliveInterval = time.Minute
	c.MeasureRTTInterval = 5 * time.Minute
	c.LogOutput = io.Discard
	c.ReadBufSize = 0 // the handshake's layer has one
	c.MaxIncomingStreams = 256
	return (*yamux.Transport)(c)
}
