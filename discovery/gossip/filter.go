package gossip

import (
	"errors"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/node/quota"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
)

var (
	// What one peer may send here, for itself and for others: calls, and in each the
	// messages and subscriptions. A forwarder's first call has one for each topic.
	peerRate = quota.Rate{PerSecond: 16, Burst: 4096}

	// What one origin may say. We say less (ours).
	originRate = quota.Rate{PerSecond: 0.1, Burst: 48, Debt: 64}

	// What an origin may say that is older than what was heard of it, in its own words: it
	// may have been restored from a backup, or its clock may have gone back.
	olderRecordRate = quota.Rate{PerSecond: 1. / 60, Burst: 1}

	// Looks that are older than what was heard of their origins, of all origins: one has all
	// sites answer, which whoever plays back what he once forwarded would else keep from
	// answering those who look now.
	olderQueryRate = quota.Rate{PerSecond: 1. / 60, Burst: 4}

	// What a peer is forgiven. It is its score, and below graylist it is not heard.
	penaltyRate = quota.Rate{PerSecond: 0.2, Debt: 1000}
)

const (
	maxPeers   = 2048 // of whom something is remembered
	maxOrigins = 1024

	graylist       = -80.0
	invalidPenalty = 30.0  // what a message costs that only a hostile peer sends
	floodPenalty   = 0.005 // what a message costs that was too much: a forwarder may be flooded by others
)

var errFlood = errors.New("the peer sends more than anybody needs to")

// guard says what is taken from whom. It is safe for concurrent use.
type peerScores struct {
	mu    sync.Mutex
	peers lru[peer.ID, peerAccount]
}

type peerAccount struct{ sent, penalty quota.Bucket }

func newPeerScores() *peerScores { return &peerScores{peers: newLRU[peer.ID, peerAccount](maxPeers)} }

// inspect is asked before a signature is looked at.
func (g *peerScores) inspect(from peer.ID, rpc *pubsub.RPC) error {
	if !g.allow(time.Now(), from, 1+len(rpc.GetPublish())+len(rpc.GetSubscriptions())) {
		return errFlood
	}
	return nil
}

func (g *peerScores) allow(now time.Time, from peer.ID, n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.peers.get(from)
	ok := a.sent.Take(now, peerRate, float64(n))
	if !ok {
		a.penalty.Take(now, penaltyRate, float64(n)*floodPenalty)
	}
	return ok
}

// blame has a peer pay for what only a hostile one sends.
func (g *peerScores) penalize(now time.Time, from peer.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peers.get(from).penalty.Take(now, penaltyRate, invalidPenalty)
}

// verdict is what becomes of a message.
type verdict int

const (
	accepted verdict = iota
	ignored
	invalid // of who sent it
)

// rule has pubsub follow a verdict. Nothing is ever rejected: pubsub would also have those
// pay who forward the same message, and cannot know.
func (g *peerScores) apply(now time.Time, from peer.ID, v verdict) pubsub.ValidationResult {
	if v == accepted {
		return pubsub.ValidationAccept
	}
	if v == invalid {
		g.penalize(now, from)
	}
	return pubsub.ValidationIgnore
}

// score is what a peer owes, for pubsub.
func (g *peerScores) score(of peer.ID) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.peers.find(of); a != nil {
		return a.penalty.Tokens(time.Now(), penaltyRate)
	}
	return 0
}

// origin is what is known of one.
type originState struct {
	rate, older      quota.Bucket
	sequence, number uint64 // the record's, and the envelope's, of the last message
	lastQuery        uint64 // the envelope's when it last looked
}

// judge says which messages of a realm are news. It is safe for concurrent use.
type messageFilter struct {
	realm discovery.Realm

	mu           sync.Mutex
	origins      lru[identity.ID, originState]
	olderQueries quota.Bucket // of those that are older
}

func newMessageFilter(r discovery.Realm) *messageFilter {
	return &messageFilter{realm: r, origins: newLRU[identity.ID, originState](maxOrigins)}
}

// judge takes a message that is signed by its origin, with the number that its envelope
// has. Who forwards cannot read: only what comes from its origin itself is an offence, so
// that an outsider cannot have the forwarders blamed. Numbers grow while a process lasts
// and sequences over restarts too, so what is played back later is mostly none of either.
// A look, and an older record, pass all the same once a minute: a board whose clock went
// back, or that was restored, would otherwise be heard by nobody.
func (j *messageFilter) check(now time.Time, by identity.ID, direct bool, number uint64, b []byte) (message, verdict) {
	bad := ignored
	if direct {
		bad = invalid
	}
	m, err := decode(j.realm, by, b)
	if err != nil {
		return m, bad
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	o := j.origins.get(by)
	same, older := m.Sequence == o.sequence && number <= o.number, m.Sequence < o.sequence
	switch m.Kind {
	case query:
		same, older = number == o.lastQuery, number < o.lastQuery
	case goodbye: // an older one ends nothing
		same, older = same || older, false
	}
	if same || older && !o.older.Take(now, olderRecordRate, 1) {
		return m, ignored
	}
	if older && m.Kind == query && !j.olderQueries.Take(now, olderQueryRate, 1) {
		return m, ignored
	}
	if !o.rate.Take(now, originRate, 1) {
		if o.rate.Tokens(now, originRate) > -originRate.Debt {
			bad = ignored // it may have been restarted often
		}
		return m, bad
	}
	switch {
	case older: // what is newer stays known
	case m.Kind == query:
		o.lastQuery = number
	default:
		o.sequence, o.number = m.Sequence, number
	}
	return m, accepted
}
