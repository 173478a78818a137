package gossip

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	every     = 10 * time.Minute // a site says that it is there
	heartbeat = 10 * time.Second

	settling  = 500 * time.Millisecond // from a peer that joins to a message: others follow it
	twice     = 2 * time.Second        // to the second one: the library may not have been ready for the first
	lookLast  = 30 * time.Second       // from the first look to the last, give or take a half
	spread    = 2 * time.Second        // over which those who are there answer who looks
	patience  = 30 * time.Second       // with a site that is asked
	lingering = 200 * time.Millisecond // for a goodbye to leave this machine

	enough    = 8         // peers that bring all messages: one more brings nothing new
	returning = time.Hour // within which a peer comes back
)

var (
	ours    = rate{perSecond: 0.05, burst: 24} // what we say; less than others take
	answers = rate{perSecond: 0.05, burst: 12} // to who looks
)

// Options are what a medium is made with.
type Options struct {
	// Host is the libp2p host that it uses. A host has one Medium or Forward at a time.
	Host host.Host

	Realm discovery.Realm

	// Ask fetches the record from a site that had news: that its record has this sequence.
	// It may take half a minute, and is called by four at a time.
	Ask func(ctx context.Context, site identity.ID, sequence uint64) (discovery.Sighting, error)

	// Digest tells what the site offers now from what it offered before, and must not
	// let anybody guess at an offer. nil for no digest.
	Digest func() [32]byte

	// Every is how often the site says that it is there, give or take a fifth; 0 for ten
	// minutes. It is the same in all the realm: what was heard holds for three of them.
	Every time.Duration

	// Heartbeat is how often the library looks after its peers; 0 for ten seconds.
	Heartbeat time.Duration
}

// Medium is the gossip of a realm. It is safe for concurrent use.
type Medium struct {
	o     Options
	self  identity.ID
	ps    *pubsub.PubSub
	topic *pubsub.Topic
	guard *guard
	judge *judge

	ctx     context.Context
	cancel  context.CancelFunc
	working sync.WaitGroup

	joined, looked bell
	hearing        bell         // a peer joined, or began to pass on to us what others say
	peers          atomic.Int32 // of the topic, as far as they were told

	mu      sync.Mutex
	events  bounded[peerEvent, time.Time] // when each was last
	own     discovery.Sighting // what is announced here
	said    budget
	answers budget
}

var _ discovery.Medium = (*Medium)(nil)

// New makes a medium, which takes part in the realm's gossip until Close: it passes on
// what others say, also while nothing is announced and nobody looks.
func New(o Options) (*Medium, error) {
	if !o.Realm.Exists() || o.Host == nil || o.Ask == nil {
		return nil, errors.New("gossip needs a host, a realm and a way to ask sites")
	}
	self, err := idOf(o.Host.ID())
	if err != nil {
		return nil, err
	}
	if o.Digest == nil {
		o.Digest = func() (none [32]byte) { return none }
	}
	if o.Every == 0 {
		o.Every = every
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = heartbeat
	}
	m := &Medium{o: o, self: self, guard: newGuard(), judge: newJudge(o.Realm), events: newBounded[peerEvent, time.Time](maxOrigins)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if err := m.join(); err != nil {
		m.Close()
		return nil, fmt.Errorf("gossip cannot be joined: %w", err)
	}
	return m, nil
}

// join has the host take part.
func (m *Medium) join() (err error) {
	params := pubsub.DefaultGossipSubParams()
	// Forwarders want all members, so none is sent away that a host can have connections
	// to: it would come back each minute, and until then tell of each message each second.
	params.D, params.Dlo, params.Dhi, params.Dscore, params.Dout = 4, 3, 32, 2, 1
	params.Dlazy = 2
	params.HistoryLength, params.HistoryGossip = 6, 3
	params.HeartbeatInterval = m.o.Heartbeat
	topic := topicOf(m.o.Realm)
	m.ps, err = start(m.ctx, m.o.Host, m.guard, params, pubsub.NewAllowlistSubscriptionFilter(topic),
		pubsub.WithValidateWorkers(1), pubsub.WithEventTracer(m),
		scored(m.guard, map[string]*pubsub.TopicScoreParams{topic: {
			SkipAtomicValidation: true, TopicWeight: 1, TimeInMeshQuantum: time.Minute, // that must not be 0
			InvalidMessageDeliveriesWeight: -10, InvalidMessageDeliveriesDecay: 0.9,
		}}))
	if err != nil {
		return err
	}
	if err := m.ps.RegisterTopicValidator(topic, m.validate, pubsub.WithValidatorInline(true)); err != nil {
		return err
	}
	if m.topic, err = m.ps.Join(topic); err != nil {
		return err
	}
	if _, err := m.topic.Relay(); err != nil {
		return err
	}
	events, err := m.topic.EventHandler()
	if err != nil {
		return err
	}
	m.working.Go(func() {
		for {
			e, err := events.NextPeerEvent(m.ctx)
			if err != nil {
				return
			}
			switch {
			case e.Type == pubsub.PeerLeave:
				m.peers.Add(-1)
			case m.peers.Add(1) <= enough && m.isNew("join", e.Peer):
				m.joined.ring()
				m.hearing.ring()
			}
		}
	})
	return nil
}

// Trace is pubsub's, and tells of a peer that passes on to us what others say. It may do so
// only from its next heartbeat on: who looked before that has not heard all the answers.
func (m *Medium) Trace(e *pb.TraceEvent) {
	if e.GetType() == pb.TraceEvent_GRAFT && m.peers.Load() <= enough && m.isNew("graft", peer.ID(e.GetGraft().GetPeerID())) {
		m.hearing.ring()
	}
}

// isNew reports whether an event of a peer matters: a peer that comes back, as members do to
// fetch a record, brings nothing that the peers did not bring that stayed.
func (m *Medium) isNew(event string, p peer.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, now := m.events.of(peerEvent{event, p}, time.Now()), time.Now()
	defer func() { *last = now }()
	return m.peers.Load() <= 1 || now.Sub(*last) > returning
}

// peerEvent is a kind of event of one peer.
type peerEvent struct {
	kind string
	peer peer.ID
}

// Close leaves the gossip. It is called once no Announce and no Find lasts.
func (m *Medium) Close() error {
	m.cancel()
	m.working.Wait()
	stop(m.o.Host)
	return nil
}

// validate says what of the realm's messages is taken and passed on.
func (m *Medium) validate(_ context.Context, from peer.ID, msg *pubsub.Message) pubsub.ValidationResult {
	now := time.Now()
	origin, err := idOf(msg.GetFrom())
	if err != nil {
		return m.guard.rule(now, from, offence) // a forwarder would not have passed it on
	}
	if origin == m.self {
		return pubsub.ValidationAccept
	}
	said, v := m.judge.judge(now, origin, from == msg.GetFrom(), number(msg), msg.Data)
	if v == taken && said.Kind == look {
		m.looked.ring()
	}
	return m.guard.rule(now, from, v)
}

// number is the one that pubsub gave a message.
func number(msg *pubsub.Message) uint64 {
	if n := msg.GetSeqno(); len(n) == 8 {
		return binary.BigEndian.Uint64(n)
	}
	return 0
}

// Announce is that of discovery.Medium. The record is that of the host's own key. It is
// said at once, when peers join, when somebody looks, and now and then.
func (m *Medium) Announce(ctx context.Context, record *discovery.Signed) error {
	if record.Site != m.self {
		return fmt.Errorf("gossip of %v cannot announce %v: a site speaks for itself", m.self, record.Site)
	}
	joined, looked := m.joined.listen(), m.looked.listen()
	defer m.joined.leave(joined)
	defer m.looked.leave(looked)
	m.show(discovery.Sighting{Site: m.self, Record: record.Bytes()})
	defer m.show(discovery.Sighting{})
	pause := twice
	for {
		if err := m.say(ctx, message{Kind: here, Sequence: record.Sequence, Digest: m.o.Digest()}); err != nil {
			return err
		}
		again := time.NewTimer(pause)
		pause = m.o.Every*4/5 + rand.N(m.o.Every*2/5)
		select {
		case <-again.C:
		case <-joined:
			pause = twice
			discovery.Sleep(ctx, settling)
		case <-looked:
			discovery.Sleep(ctx, rand.N(spread))
			m.afford(ctx, &m.answers, answers)
			drain(looked) // they hear it too
		case <-ctx.Done():
		}
		again.Stop()
		if ctx.Err() != nil {
			return m.leave(record.Sequence)
		}
	}
}

// leave says goodbye, which no budget delays.
func (m *Medium) leave(sequence uint64) error {
	ctx, cancel := context.WithTimeout(m.ctx, lingering)
	defer cancel()
	if err := m.publish(ctx, message{Kind: gone, Sequence: sequence}); err != nil {
		return err
	}
	<-ctx.Done() // it is written by others, and the host may be closed next
	return nil
}

// say publishes a message as soon as that is not too much.
func (m *Medium) say(ctx context.Context, what message) error {
	m.afford(ctx, &m.said, ours)
	if ctx.Err() != nil {
		return nil
	}
	return m.publish(ctx, what)
}

func (m *Medium) publish(ctx context.Context, what message) error {
	if err := m.topic.Publish(ctx, what.write(m.o.Realm, m.self)); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the gossip does not take a message: %w", err)
	}
	return nil
}

// afford waits until there is enough of a budget, and takes it.
func (m *Medium) afford(ctx context.Context, b *budget, r rate) {
	m.mu.Lock()
	pause := b.until(time.Now(), r)
	b.take(time.Now(), rate{r.perSecond, r.burst, r.burst}, 1)
	m.mu.Unlock()
	discovery.Sleep(ctx, pause)
}

func (m *Medium) show(s discovery.Sighting) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own = s
}

func (m *Medium) shown() discovery.Sighting {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own
}

func drain(ear chan struct{}) {
	select {
	case <-ear:
	default:
	}
}

// bell wakes whoever listens. Those who are awake are woken once more.
type bell struct {
	mu   sync.Mutex
	ears map[chan struct{}]bool
}

func (b *bell) listen() chan struct{} {
	ear := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ears == nil {
		b.ears = make(map[chan struct{}]bool)
	}
	b.ears[ear] = true
	return ear
}

func (b *bell) leave(ear chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.ears, ear)
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ear := range b.ears {
		select {
		case ear <- struct{}{}:
		default:
		}
	}
}
