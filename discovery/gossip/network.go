package gossip

import (
	"context"
	"time"

	"agentsite/node/identity"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

const (
	// Protocol is gossipsub 1.2 under a name of its own: messages of other programs exceed the
	// limits here.
	Protocol protocol.ID = "/agentsite/meshsub/1.2.0"

	// A forwarder's first RPC names all its topics, of some 100 bytes each.
	maxRPC           = 32 << 10
	maxSubscriptions = 512
	queueSize        = 256
)

// start runs gossipsub on a host until ctx ends.
func start(ctx context.Context, h host.Host, g *peerScores, params pubsub.GossipSubParams, filter pubsub.SubscriptionFilter, opts ...pubsub.Option) (*pubsub.PubSub, error) {
	params.Connectors, params.PrunePeers = 0, 0 // nobody is told of peers, and none is believed
	params.MaxIHaveLength = 256
	opts = append([]pubsub.Option{
		pubsub.WithGossipSubProtocols([]protocol.ID{Protocol}, func(f pubsub.GossipSubFeature, _ protocol.ID) bool {
			return f == pubsub.GossipSubFeatureMesh || f == pubsub.GossipSubFeatureIdontwant
		}),
		pubsub.WithGossipSubParams(params),
		pubsub.WithPeerExchange(false),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictSign),
		pubsub.WithFloodPublish(true), // our messages are few
		pubsub.WithMaxMessageSize(maxRPC),
		pubsub.WithMaxControlMessageSize(maxRPC),
		pubsub.WithPeerOutboundQueueSize(queueSize),
		pubsub.WithValidateQueueSize(queueSize),
		pubsub.WithAppSpecificRpcInspector(g.inspect),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(filter, maxSubscriptions)),
	}, opts...)
	// Not NewGossipSub: its connection tags would protect any peer in the mesh,
	// strangers too, from having their connections ended.
	return pubsub.NewGossipSubWithRouter(ctx, recordless{h}, pubsub.DefaultGossipSubRouter(h), opts...)
}

// scored makes pubsub ignore peers that flood or break the protocol, and on these topics
// those that send unsigned messages.
func scored(g *peerScores, topics map[string]*pubsub.TopicScoreParams) pubsub.Option {
	return pubsub.WithPeerScore(
		&pubsub.PeerScoreParams{
			SkipAtomicValidation: true, Topics: topics,
			AppSpecificScore: g.score, AppSpecificWeight: 1,
			BehaviourPenaltyWeight: -10, BehaviourPenaltyThreshold: 6, BehaviourPenaltyDecay: 0.9,
			DecayInterval: time.Minute, DecayToZero: 0.01, RetainScore: 10 * time.Minute,
		},
		&pubsub.PeerScoreThresholds{GossipThreshold: graylist / 4, PublishThreshold: graylist / 2, GraylistThreshold: graylist})
}

// stop removes the remains of pubsub on the host after its context has ended.
func stop(h host.Host) {
	h.RemoveStreamHandler(Protocol)
	for _, c := range h.Network().Conns() {
		for _, s := range c.GetStreams() {
			if s.Protocol() == Protocol {
				_ = s.Reset()
			}
		}
	}
}

func idOf(p peer.ID) (identity.ID, error) { return identity.Parse(p.String()) }
