package gossip

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/node/quota"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// forwarderTopic marks its subscribers as forwarders. They subscribe to other topics only for
// members, and two of them must not keep alive a topic without members.
const forwarderTopic = topics + "forwarders"

const (
	coalesceDelay = 50 * time.Millisecond // subscriptions that come together
	sweepInterval = time.Minute           // for topics of peers that have gone
)

var (
	// New topics in all and of one address prefix: each goes to all peers.
	changeRate       = quota.Rate{PerSecond: 0.5, Burst: 256}
	prefixChangeRate = quota.Rate{PerSecond: 0.05, Burst: 32}

	// Messages of one topic; of those, from one address prefix, separately from origins and from
	// peers that forward; and messages that one peer forwards.
	topicRate   = quota.Rate{PerSecond: 16, Burst: 2048}
	prefixRate  = quota.Rate{PerSecond: 2, Burst: 512}
	forwardRate = quota.Rate{PerSecond: 1, Burst: 256}
)

const (
	maxShares   = 64   // peers and prefixes of a topic with a share of their own
	maxPrefixes = 1024 // remembered

	prefixShare = 8 // the part of the topics reserved for one address prefix
)

// Limits bound a forwarder. The zero Limits are the defaults.
type Limits struct {
	Topics  int // at a time; 0 for 256
	PerPeer int // of one peer; 0 for 4

	// Allow reports whether a peer is served. nil allows all.
	Allow func(identity.ID) bool
}

// Forward forwards the gossip of realms that the host is not in, for its connected peers,
// until ctx ends. It returns nil then, and an error if it fails before. It knows no realm's
// secret: it checks signatures of origins and limits, and the members check the rest. A host
// runs one Medium or Forward at a time.
func Forward(ctx context.Context, h host.Host, l Limits) error {
	l.Topics, l.PerPeer = cmp.Or(l.Topics, 256), cmp.Or(l.PerPeer, 4)
	// Many stars rather than a mesh: most members are connected to nobody else.
	params := pubsub.DefaultGossipSubParams()
	params.D, params.Dlo, params.Dhi, params.Dscore, params.Dout = 256, 128, 512, 64, 0
	params.HistoryLength, params.HistoryGossip = 60, 15

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &forwarder{
		scores: newPeerScores(), limiter: newTopicLimiter(l.Topics), joined: make(map[string]joinedTopic),
		prefix: func(p peer.ID) netip.Prefix { return prefixOf(h.Network().ConnsToPeer(p)) },
	}
	f.selector = newTopicSelector(l, f.prefix)
	ps, err := start(ctx, h, f.scores, params, f.selector, scored(f.scores, nil),
		pubsub.WithDefaultValidator(f.validate, pubsub.WithValidatorInline(true)))
	if err != nil {
		return fmt.Errorf("cannot forward gossip (%w)", err)
	}
	f.ps = ps
	defer stop(h)
	defer cancel()
	if err := f.joinTopic(forwarderTopic); err != nil {
		return fmt.Errorf("cannot forward gossip (%w)", err)
	}
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.selector.changed:
			discovery.Sleep(ctx, coalesceDelay)
		case <-sweep.C:
			f.selector.prune(func(p peer.ID) bool { return h.Network().Connectedness(p) == network.Connected })
		}
		if err := f.setTopics(f.selector.selectTopics(time.Now())); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

type forwarder struct {
	ps       *pubsub.PubSub
	scores   *peerScores
	selector *topicSelector
	limiter  *topicLimiter
	prefix   func(peer.ID) netip.Prefix
	joined   map[string]joinedTopic
}

// prefixOf returns the network of a peer's first connection, the zero prefix without one.
func prefixOf(conns []network.Conn) netip.Prefix {
	for _, c := range conns {
		return quota.PrefixOf(c.RemoteMultiaddr())
	}
	return netip.Prefix{}
}

type joinedTopic struct {
	topic *pubsub.Topic
	leave pubsub.RelayCancelFunc
}

// setTopics forwards these topics and no others.
func (f *forwarder) setTopics(chosen []string) error {
	for name, h := range f.joined {
		if name != forwarderTopic && !slices.Contains(chosen, name) {
			delete(f.joined, name)
			h.leave()
			if err := h.topic.Close(); err != nil {
				return err
			}
		}
	}
	for _, name := range chosen {
		if err := f.joinTopic(name); err != nil {
			return err
		}
	}
	return nil
}

func (f *forwarder) joinTopic(name string) error {
	if _, ok := f.joined[name]; ok {
		return nil
	}
	topic, err := f.ps.Join(name)
	if err != nil {
		return err
	}
	leave, err := topic.Relay()
	if err != nil {
		return err
	}
	f.joined[name] = joinedTopic{topic, leave}
	return nil
}

// validate is called for each message. It penalizes peers that send invalid ones.
func (f *forwarder) validate(_ context.Context, from peer.ID, msg *pubsub.Message) pubsub.ValidationResult {
	v, now := invalid, time.Now()
	if _, err := idOf(msg.GetFrom()); err == nil && len(msg.Data) <= maxMessage && msg.GetTopic() != forwarderTopic {
		v = ignored
		if f.selector.allows(from) {
			v = f.limiter.check(now, msg.GetTopic(), from, f.prefix(from), from == msg.GetFrom())
		}
	}
	return f.scores.apply(now, from, v)
}

// topicLimiter limits forwarded messages. It is safe for concurrent use.
type topicLimiter struct {
	mu      sync.Mutex
	origins lru[peer.ID, quota.Bucket]
	topics  lru[string, *topicBuckets]
}

// topicBuckets are the buckets of one topic.
type topicBuckets struct {
	all      quota.Bucket
	peers    lru[peer.ID, quota.Bucket] // the messages that they forward
	prefixes lru[netip.Prefix, struct{ own, passedOn quota.Bucket }]
}

func newTopicLimiter(topics int) *topicLimiter {
	return &topicLimiter{origins: newLRU[peer.ID, quota.Bucket](maxPeers), topics: newLRU[string, *topicBuckets](topics)}
}

// check judges a message from a peer; direct says that the peer is its origin. Origins and
// forwarding peers have separate buckets, so that neither uses up the other's. A peer's own
// bucket and that of its prefix are used before the shared one.
func (c *topicLimiter) check(now time.Time, topic string, from peer.ID, prefix netip.Prefix, direct bool) verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.topics.get(topic)
	if *at == nil {
		*at = &topicBuckets{
			peers:    newLRU[peer.ID, quota.Bucket](maxShares),
			prefixes: newLRU[netip.Prefix, struct{ own, passedOn quota.Bucket }](maxShares),
		}
	}
	t := *at
	near := t.prefixes.get(prefix)
	share := &near.own
	if direct {
		b := c.origins.get(from)
		if !b.Take(now, originRate, 1) {
			if b.Tokens(now, originRate) > -originRate.Debt {
				return ignored // it may have been restarted often
			}
			return invalid
		}
	} else {
		if !t.peers.get(from).Take(now, forwardRate, 1) {
			return ignored
		}
		share = &near.passedOn
	}
	if !share.Take(now, prefixRate, 1) || !t.all.Take(now, topicRate, 1) {
		return ignored
	}
	return accepted
}

// topicSelector chooses the topics to forward from the subscriptions of peers. It is safe for
// concurrent use.
type topicSelector struct {
	limits  Limits
	prefix  func(peer.ID) netip.Prefix
	changed chan struct{}

	mu         sync.Mutex
	wants      map[peer.ID]*peerTopics
	forwarders map[peer.ID]bool // forwarders
	chosen     map[string]bool
	budget     quota.Bucket
	by         lru[netip.Prefix, quota.Bucket]
}

// peerTopics are the topics of one peer.
type peerTopics struct {
	prefix netip.Prefix
	topics []string // bounded, oldest first
}

var _ pubsub.SubscriptionFilter = (*topicSelector)(nil)

func newTopicSelector(l Limits, prefix func(peer.ID) netip.Prefix) *topicSelector {
	return &topicSelector{
		limits: l, prefix: prefix, changed: make(chan struct{}, 1),
		wants: make(map[peer.ID]*peerTopics), forwarders: make(map[peer.ID]bool), chosen: make(map[string]bool),
		by: newLRU[netip.Prefix, quota.Bucket](maxPrefixes),
	}
}

// CanSubscribe implements pubsub.SubscriptionFilter for this host's topics.
func (*topicSelector) CanSubscribe(topic string) bool {
	return topic == forwarderTopic || isTopic(topic)
}

// FilterIncomingSubscriptions stores a peer's subscriptions and returns the accepted ones.
func (s *topicSelector) FilterIncomingSubscriptions(from peer.ID, all []*pb.RPC_SubOpts) ([]*pb.RPC_SubOpts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.allows(from) {
		return nil, nil
	}
	if slices.ContainsFunc(all, func(o *pb.RPC_SubOpts) bool { return o.GetTopicid() == forwarderTopic }) {
		s.forwarders[from] = true
		delete(s.wants, from)
	}
	other := s.forwarders[from]
	return pubsub.FilterSubscriptions(slices.DeleteFunc(slices.Clone(all), func(o *pb.RPC_SubOpts) bool {
		if other {
			return o.GetSubscribe() && !s.chosen[o.GetTopicid()]
		}
		return !s.update(from, o.GetTopicid(), o.GetSubscribe())
	}), s.CanSubscribe), nil
}

// allows reports whether a peer is served.
func (s *topicSelector) allows(p peer.ID) bool {
	id, err := idOf(p)
	return err == nil && (s.limits.Allow == nil || s.limits.Allow(id))
}

// update stores a subscription and reports whether it is accepted.
func (s *topicSelector) update(from peer.ID, topic string, wants bool) bool {
	w := s.wants[from]
	if w == nil {
		w = &peerTopics{prefix: s.prefix(from)}
	}
	has := slices.Contains(w.topics, topic)
	switch {
	case !isTopic(topic) || wants && !has && len(w.topics) >= s.limits.PerPeer:
		return false
	case wants && !has:
		w.topics = append(w.topics, topic)
		s.wants[from] = w
	case !wants && has:
		s.drop(from, topic)
	default:
		return true
	}
	s.wake()
	return true
}

func (s *topicSelector) drop(from peer.ID, topic string) {
	w := s.wants[from]
	w.topics = slices.DeleteFunc(w.topics, func(t string) bool { return t == topic })
	if len(w.topics) == 0 {
		delete(s.wants, from)
	}
}

func (s *topicSelector) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// prune forgets peers that are not connected or not allowed any more.
func (s *topicSelector) prune(there func(peer.ID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.wants {
		if !there(p) || !s.allows(p) {
			delete(s.wants, p)
		}
	}
	for p := range s.forwarders {
		if !there(p) {
			delete(s.forwarders, p)
		}
	}
}

// topicDemand is a topic and the demand for it.
type topicDemand struct {
	topic    string
	turn     int // the least position among its peers' topics: 0 is somebody's first
	peers    int
	held     bool                  // forwarded already
	from     map[netip.Prefix]bool // prefixes of its peers
	reserved bool                  // within the share of one of these prefixes
}

// compare orders by position among a peer's topics, then forwarded ones, then by number of
// prefixes and of peers.
func (w *topicDemand) compare(o *topicDemand) int {
	return cmp.Or(cmp.Compare(w.turn, o.turn), compareBool(o.held, w.held),
		cmp.Compare(len(o.from), len(w.from)), cmp.Compare(o.peers, w.peers), cmp.Compare(w.topic, o.topic))
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// rankTopics returns all topics in order, those within a prefix's share first.
func (s *topicSelector) rankTopics() []*topicDemand {
	by := make(map[string]*topicDemand)
	for _, all := range s.wants {
		for turn, t := range all.topics {
			w := by[t]
			if w == nil {
				w = &topicDemand{topic: t, turn: turn, held: s.chosen[t], from: make(map[netip.Prefix]bool)}
				by[t] = w
			}
			w.turn = min(w.turn, turn)
			w.peers++
			w.from[all.prefix] = true
		}
	}
	all := slices.SortedFunc(maps.Values(by), (*topicDemand).compare)
	has := make(map[netip.Prefix]int)
	for _, w := range all {
		for p := range w.from {
			w.reserved = w.reserved || has[p] < max(1, s.limits.Topics/prefixShare)
		}
		for p := range w.from {
			has[p]++
		}
	}
	slices.SortStableFunc(all, func(a, b *topicDemand) int { return compareBool(b.reserved, a.reserved) })
	return all
}

// selectTopics returns the topics to forward.
func (s *topicSelector) selectTopics(now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.rankTopics()
	all = all[:min(len(all), s.limits.Topics)]
	chosen := make(map[string]bool, len(all))
	var topics []string
	for _, w := range all {
		if w.held || s.allowChange(now, w) {
			chosen[w.topic] = true
			topics = append(topics, w.topic)
		}
	}
	s.chosen = chosen
	return topics
}

// allowChange takes a token for another topic from the shared bucket and from that of one of
// its prefixes, or returns false.
func (s *topicSelector) allowChange(now time.Time, w *topicDemand) bool {
	for p := range w.from {
		if b := s.by.get(p); b.Tokens(now, prefixChangeRate) >= 1 {
			return s.budget.Take(now, changeRate, 1) && b.Take(now, prefixChangeRate, 1)
		}
	}
	return false
}
