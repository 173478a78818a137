package gossip

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// forwarders is what a forwarder subscribes to so that others know it for one: what it
// subscribes to besides is not its own wish, and two of them must not keep alive what
// nobody else wants.
const forwarders = topics + "forwarders"

const (
	coalescing = 50 * time.Millisecond // subscriptions that come together
	sweeping   = time.Minute           // what a peer wanted that has gone
)

var (
	// Topics that change hands: each is told to all peers.
	changes = rate{perSecond: 0.5, burst: 256}

	// Messages of one topic, and of those the ones that others than their origin bring.
	perTopic = rate{perSecond: 16, burst: 2048}
	passedOn = rate{perSecond: 2, burst: 512}
)

// Limits are how much a forwarder forwards. The zero Limits are the usual ones.
type Limits struct {
	Topics  int // at a time; 0 for 256
	PerPeer int // of what one peer may want; 0 for 4

	// Allow reports whether a peer's wishes count. nil is for all.
	Allow func(identity.ID) bool
}

// Forward passes on the gossip of realms that the host is not in, for the peers that are
// connected to it, until ctx ends; it returns nil then, and otherwise why it cannot. It
// knows no realm's secret: it sees that a message is signed by its origin and is not too
// much, and the members see the rest. A host has one Medium or Forward at a time.
func Forward(ctx context.Context, h host.Host, l Limits) error {
	l.Topics, l.PerPeer = cmp.Or(l.Topics, 256), cmp.Or(l.PerPeer, 4)
	// Many stars rather than a mesh: most members are connected to nobody else.
	params := pubsub.DefaultGossipSubParams()
	params.D, params.Dlo, params.Dhi, params.Dscore, params.Dout = 256, 128, 512, 64, 0
	params.HistoryLength, params.HistoryGossip = 60, 15

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &forwarder{
		guard: newGuard(), shelf: newShelf(l), customs: newCustoms(l.Topics),
		held: make(map[string]held),
	}
	ps, err := start(ctx, h, f.guard, params, f.shelf, scored(f.guard, nil),
		pubsub.WithDefaultValidator(f.validate, pubsub.WithValidatorInline(true)))
	if err != nil {
		return fmt.Errorf("gossip cannot be forwarded: %w", err)
	}
	f.ps = ps
	defer stop(h)
	defer cancel()
	if err := f.hold(forwarders); err != nil {
		return fmt.Errorf("gossip cannot be forwarded: %w", err)
	}
	sweep := time.NewTicker(sweeping)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.shelf.changed:
			discovery.Sleep(ctx, coalescing)
		case <-sweep.C:
			f.shelf.keep(func(p peer.ID) bool { return h.Network().Connectedness(p) == network.Connected })
		}
		if err := f.follow(f.shelf.choose(time.Now())); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

type forwarder struct {
	ps      *pubsub.PubSub
	guard   *guard
	shelf   *shelf
	customs *customs
	held    map[string]held
}

type held struct {
	topic *pubsub.Topic
	leave pubsub.RelayCancelFunc
}

// follow holds these topics and no others.
func (f *forwarder) follow(chosen []string) error {
	for name, h := range f.held {
		if name != forwarders && !slices.Contains(chosen, name) {
			delete(f.held, name)
			h.leave()
			if err := h.topic.Close(); err != nil {
				return err
			}
		}
	}
	for _, name := range chosen {
		if err := f.hold(name); err != nil {
			return err
		}
	}
	return nil
}

func (f *forwarder) hold(name string) error {
	if _, ok := f.held[name]; ok {
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
	f.held[name] = held{topic, leave}
	return nil
}

// validate passes on what may be a message, and who sends too much pays.
func (f *forwarder) validate(_ context.Context, from peer.ID, msg *pubsub.Message) pubsub.ValidationResult {
	v, now := offence, time.Now()
	if _, err := idOf(msg.GetFrom()); err == nil && len(msg.Data) <= maxMessage && msg.GetTopic() != forwarders {
		v = f.customs.pass(now, msg.GetTopic(), msg.GetFrom(), from == msg.GetFrom())
	}
	return f.guard.rule(now, from, v)
}

// customs are how much of what passes. It is safe for concurrent use.
type customs struct {
	mu      sync.Mutex
	origins bounded[peer.ID, budget]
	topics  bounded[string, traffic]
}

type traffic struct{ all, passedOn budget }

func newCustoms(topics int) *customs {
	return &customs{origins: newBounded[peer.ID, budget](maxPeers), topics: newBounded[string, traffic](topics)}
}

// pass judges a message. What its origin brings itself is not held up by what others pass
// on, and they cannot use up what the origin may say.
func (c *customs) pass(now time.Time, topic string, origin peer.ID, direct bool) verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.topics.of(topic, now)
	if direct {
		b := c.origins.of(origin, now)
		if !b.take(now, perOrigin, 1) {
			if b.left > -perOrigin.debt {
				return passedOver // it may have been restarted often
			}
			return offence
		}
	} else if !t.passedOn.take(now, passedOn, 1) {
		return passedOver
	}
	if !t.all.take(now, perTopic, 1) {
		return passedOver
	}
	return taken
}

// shelf is what peers want to have forwarded. It is safe for concurrent use.
type shelf struct {
	limits  Limits
	changed chan struct{}

	mu     sync.Mutex
	wants  map[peer.ID][]string // at most so many each, in the order in which they came
	others map[peer.ID]bool     // forwarders
	chosen map[string]bool
	budget budget
}

var _ pubsub.SubscriptionFilter = (*shelf)(nil)

func newShelf(l Limits) *shelf {
	return &shelf{
		limits: l, changed: make(chan struct{}, 1),
		wants: make(map[peer.ID][]string), others: make(map[peer.ID]bool), chosen: make(map[string]bool),
	}
}

// CanSubscribe is asked of our own topics.
func (*shelf) CanSubscribe(topic string) bool { return topic == forwarders || isTopic(topic) }

// FilterIncomingSubscriptions notes what a peer wants, and passes on what counts.
func (s *shelf) FilterIncomingSubscriptions(from peer.ID, all []*pb.RPC_SubOpts) ([]*pb.RPC_SubOpts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, err := idOf(from); err != nil || s.limits.Allow != nil && !s.limits.Allow(id) {
		return nil, nil
	}
	if slices.ContainsFunc(all, func(o *pb.RPC_SubOpts) bool { return o.GetTopicid() == forwarders }) {
		s.others[from] = true
		delete(s.wants, from)
	}
	other := s.others[from]
	return pubsub.FilterSubscriptions(slices.DeleteFunc(slices.Clone(all), func(o *pb.RPC_SubOpts) bool {
		if other {
			return o.GetSubscribe() && !s.chosen[o.GetTopicid()]
		}
		return !s.note(from, o.GetTopicid(), o.GetSubscribe())
	}), s.CanSubscribe), nil
}

// note reports whether a subscription counts.
func (s *shelf) note(from peer.ID, topic string, wants bool) bool {
	has := slices.Contains(s.wants[from], topic)
	switch {
	case !isTopic(topic) || wants && !has && len(s.wants[from]) >= s.limits.PerPeer:
		return false
	case wants && !has:
		s.wants[from] = append(s.wants[from], topic)
	case !wants && has:
		s.drop(from, topic)
	default:
		return true
	}
	s.wake()
	return true
}

func (s *shelf) drop(from peer.ID, topic string) {
	s.wants[from] = slices.DeleteFunc(s.wants[from], func(t string) bool { return t == topic })
	if len(s.wants[from]) == 0 {
		delete(s.wants, from)
	}
}

func (s *shelf) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// keep forgets what peers wanted that are not there any more.
func (s *shelf) keep(there func(peer.ID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.wants {
		if !there(p) {
			delete(s.wants, p)
		}
	}
	for p := range s.others {
		if !there(p) {
			delete(s.others, p)
		}
	}
}

// choose returns the topics to forward. Each peer's first wish comes before anybody's
// second, then what many want, then what is forwarded already.
func (s *shelf) choose(now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	type wish struct{ turn, peers int }
	wishes := make(map[string]wish)
	for _, topics := range s.wants {
		for turn, t := range topics {
			w, ok := wishes[t]
			if !ok || turn < w.turn {
				w.turn = turn
			}
			w.peers++
			wishes[t] = w
		}
	}
	all := make([]string, 0, len(wishes))
	for t := range wishes {
		all = append(all, t)
	}
	place := func(t string) int {
		if s.chosen[t] {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(wishes[a].turn, wishes[b].turn), cmp.Compare(wishes[b].peers, wishes[a].peers),
			cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
	all = all[:min(len(all), s.limits.Topics)]
	chosen := make(map[string]bool, len(all))
	for _, t := range all {
		if s.chosen[t] || s.budget.take(now, changes, 1) {
			chosen[t] = true
		}
	}
	s.chosen = chosen
	return slices.DeleteFunc(all, func(t string) bool { return !chosen[t] })
}
