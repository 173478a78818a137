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
	"agentsite/node/quota"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	announceInterval  = 10 * time.Minute // of a site's announcements
	heartbeatInterval = 10 * time.Second

	joinDelay      = 500 * time.Millisecond // from a new peer to a message: more peers may follow
	repeatDelay    = 2 * time.Second        // to the second message: the library may not have been ready for the first
	lastQueryDelay = 30 * time.Second       // from the first query to the last, ± a half
	answerSpread   = 2 * time.Second        // over which sites answer a query
	askTimeout     = 30 * time.Second       // of a request to a site
	goodbyeTimeout = 200 * time.Millisecond // for a goodbye to be sent

	enoughPeers  = 2           // peers that bring all messages, as two relays do: one more brings nothing new
	joinWindow   = time.Minute // in which those that a host begins with come
	returnWindow = time.Hour   // within which a peer returns
)

var (
	sendRate   = quota.Rate{PerSecond: 0.05, Burst: 24} // of this site's messages; below originRate
	answerRate = quota.Rate{PerSecond: 0.05, Burst: 12} // of answers to queries
)

// Options configure a Medium.
type Options struct {
	// Host is the libp2p host, which runs one Medium or Forward at a time.
	Host host.Host

	Realm discovery.Realm

	// Ask fetches the record with this sequence from a site that announced it. It may block
	// for half a minute, and is called four times concurrently.
	Ask func(ctx context.Context, site identity.ID, sequence uint64) (discovery.Sighting, error)

	// Digest returns a value that changes with the offer of the site, and must not let anybody guess
	// the offer. nil for none.
	Digest func() [32]byte

	// Every is the interval of announcements, ± a fifth; 0 for ten minutes. It is the same
	// in the whole realm: an announcement is valid for three intervals.
	Every time.Duration

	// Heartbeat is the library's heartbeat interval; 0 for ten seconds.
	Heartbeat time.Duration
}

// Medium is the gossip of a realm. It is safe for concurrent use.
type Medium struct {
	o      Options
	self   identity.ID
	ps     *pubsub.PubSub
	topic  *pubsub.Topic
	scores *peerScores
	filter *messageFilter

	ctx     context.Context
	cancel  context.CancelFunc
	working sync.WaitGroup

	joined, queried discovery.Notifier
	grafted         discovery.Notifier // a peer joined, or began to forward messages to this host
	peers           atomic.Int32       // subscribers of the topic that are connected

	mu      sync.Mutex
	events  lru[peerEvent, time.Time] // the last of each
	few     time.Time                 // when there were last no more than enoughPeers
	own     discovery.Sighting        // announced by this host
	sent    quota.Bucket
	answers quota.Bucket
}

var _ discovery.Medium = (*Medium)(nil)

// New joins the realm's gossip until Close: the medium forwards messages also while it
// neither announces nor finds.
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
		o.Every = announceInterval
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = heartbeatInterval
	}
	m := &Medium{o: o, self: self, scores: newPeerScores(), filter: newMessageFilter(o.Realm), events: newLRU[peerEvent, time.Time](maxOrigins)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if err := m.join(); err != nil {
		m.Close()
		return nil, fmt.Errorf("cannot join the gossip (%w)", err)
	}
	return m, nil
}

// join starts pubsub and follows the topic's peers.
func (m *Medium) join() (err error) {
	params := pubsub.DefaultGossipSubParams()
	// Forwarders want all members in their mesh, up to the connections that a host can have. A
	// pruned member would come back each minute, and until then announce each message each second.
	params.D, params.Dlo, params.Dhi, params.Dscore, params.Dout = 4, 3, 32, 2, 1
	params.Dlazy = 2
	params.HistoryLength, params.HistoryGossip = 6, 3
	params.HeartbeatInterval = m.o.Heartbeat
	topic := topicOf(m.o.Realm)
	m.ps, err = start(m.ctx, m.o.Host, m.scores, params, pubsub.NewAllowlistSubscriptionFilter(topic),
		pubsub.WithValidateWorkers(1), pubsub.WithEventTracer(m),
		scored(m.scores, map[string]*pubsub.TopicScoreParams{topic: {
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
			if e.Type == pubsub.PeerLeave {
				m.peers.Add(-1)
				continue
			}
			m.peers.Add(1)
			if m.isNew("join", e.Peer) {
				m.joined.Notify()
				m.grafted.Notify()
			}
		}
	})
	return nil
}

// Trace implements pubsub.EventTracer. A peer forwards messages only from its next heartbeat
// on: answers to an earlier query may be lost.
func (m *Medium) Trace(e *pb.TraceEvent) {
	if e.GetType() == pb.TraceEvent_GRAFT && m.isNew("graft", peer.ID(e.GetGraft().GetPeerID())) {
		m.grafted.Notify()
	}
}

// isNew reports whether an event of a peer may bring unknown sites. One that comes when others have been there for a
// while brings nothing that they did not bring: members connect to each other to fetch records. Nor does one that
// returns. All members answer the query that follows, so that each needless one costs hundreds of messages.
func (m *Medium) isNew(event string, p peer.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, now, peers := m.events.get(peerEvent{event, p}), time.Now(), m.peers.Load()
	defer func() { *last = now }()
	if peers <= enoughPeers {
		m.few = now
	}
	return now.Sub(m.few) < joinWindow && (peers <= 1 || now.Sub(*last) > returnWindow)
}

// peerEvent is a kind of event of one peer.
type peerEvent struct {
	kind string
	peer peer.ID
}

// Close leaves the gossip, after all Announce and Find have returned.
func (m *Medium) Close() error {
	m.cancel()
	m.working.Wait()
	stop(m.o.Host)
	return nil
}

// validate is called for each message of the realm.
func (m *Medium) validate(_ context.Context, from peer.ID, msg *pubsub.Message) pubsub.ValidationResult {
	now := time.Now()
	origin, err := idOf(msg.GetFrom())
	if err != nil {
		return m.scores.apply(now, from, invalid) // a forwarder would not have passed it on
	}
	if origin == m.self {
		return pubsub.ValidationAccept
	}
	said, v := m.filter.check(now, origin, from == msg.GetFrom(), number(msg), msg.Data)
	if v == accepted && said.Kind == query {
		m.queried.Notify()
	}
	return m.scores.apply(now, from, v)
}

// number returns the sequence number in pubsub's envelope.
func number(msg *pubsub.Message) uint64 {
	if n := msg.GetSeqno(); len(n) == 8 {
		return binary.BigEndian.Uint64(n)
	}
	return 0
}

// Announce implements discovery.Medium for a record of the host's own key. It sends an
// announcement at once, when peers join, on queries, and every interval.
func (m *Medium) Announce(ctx context.Context, record *discovery.Signed) error {
	if record.Site != m.self {
		return fmt.Errorf("the gossip of %v cannot announce another site, %v", m.self, record.Site)
	}
	joined, cancel := m.joined.Subscribe()
	defer cancel()
	looked, cancel := m.queried.Subscribe()
	defer cancel()
	m.setOwn(discovery.Sighting{Site: m.self, Record: record.Bytes()})
	defer m.setOwn(discovery.Sighting{})
	pause := repeatDelay
	for {
		if err := m.send(ctx, message{Kind: alive, Sequence: record.Sequence, Digest: m.o.Digest()}); err != nil {
			return err
		}
		again := time.NewTimer(pause)
		pause = m.o.Every*4/5 + rand.N(m.o.Every*2/5)
		select {
		case <-again.C:
		case <-joined:
			pause = repeatDelay
			discovery.Sleep(ctx, joinDelay)
		case <-looked:
			discovery.Sleep(ctx, rand.N(answerSpread))
			m.waitBudget(ctx, &m.answers, answerRate)
			drain(looked) // all hear the answer
		case <-ctx.Done():
		}
		again.Stop()
		if ctx.Err() != nil {
			return m.sendGoodbye(record.Sequence)
		}
	}
}

// sendGoodbye sends a goodbye, without waiting for a token.
func (m *Medium) sendGoodbye(sequence uint64) error {
	ctx, cancel := context.WithTimeout(m.ctx, goodbyeTimeout)
	defer cancel()
	if err := m.publish(ctx, message{Kind: goodbye, Sequence: sequence}); err != nil {
		return err
	}
	<-ctx.Done() // it is written by others, and the host may be closed next
	return nil
}

// send publishes a message once there is a token.
func (m *Medium) send(ctx context.Context, what message) error {
	m.waitBudget(ctx, &m.sent, sendRate)
	if ctx.Err() != nil {
		return nil
	}
	return m.publish(ctx, what)
}

func (m *Medium) publish(ctx context.Context, what message) error {
	if err := m.topic.Publish(ctx, what.seal(m.o.Realm, m.self)); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot publish a message (%w)", err)
	}
	return nil
}

// waitBudget takes a token from a bucket and waits until it is due.
func (m *Medium) waitBudget(ctx context.Context, b *quota.Bucket, r quota.Rate) {
	m.mu.Lock()
	pause := b.Wait(time.Now(), r)
	b.Take(time.Now(), quota.Rate{PerSecond: r.PerSecond, Burst: r.Burst, Debt: r.Burst}, 1)
	m.mu.Unlock()
	discovery.Sleep(ctx, pause)
}

func (m *Medium) setOwn(s discovery.Sighting) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own = s
}

func (m *Medium) getOwn() discovery.Sighting {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own
}

// drain discards a pending notification.
func drain(ear chan struct{}) {
	select {
	case <-ear:
	default:
	}
}
