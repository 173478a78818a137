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
	// Messages and subscriptions that one peer may send, with one more for each RPC. A
	// forwarder's first RPC has one subscription for each topic.
	peerRate = quota.Rate{PerSecond: 16, Burst: 4096}

	// Messages of one origin; a site sends fewer (sendRate).
	originRate = quota.Rate{PerSecond: 0.1, Burst: 48, Debt: 64}

	// Messages of one origin that are older than the last: it may have been restored from a
	// backup, or its clock may have gone back.
	olderRecordRate = quota.Rate{PerSecond: 1. / 60, Burst: 1}

	// Queries of all origins that are older than their last. Each makes all sites answer, so that a
	// replay of recorded queries would use up the answers to new ones.
	olderQueryRate = quota.Rate{PerSecond: 1. / 60, Burst: 4}

	// Decay of a peer's penalties, which are its score: below graylist it is ignored.
	penaltyRate = quota.Rate{PerSecond: 0.2, Debt: 1000}
)

const (
	maxPeers   = 2048 // remembered
	maxOrigins = 1024

	graylist       = -80.0
	invalidPenalty = 30.0  // for a message that only a hostile peer sends
	floodPenalty   = 0.005 // for a message beyond peerRate: a forwarder may be flooded by others
)

var errFlood = errors.New("the peer sends too much")

// peerScores limits and scores the peers that send messages. It is safe for concurrent use.
type peerScores struct {
	mu    sync.Mutex
	peers lru[peer.ID, peerAccount]
}

type peerAccount struct{ sent, penalty quota.Bucket }

func newPeerScores() *peerScores { return &peerScores{peers: newLRU[peer.ID, peerAccount](maxPeers)} }

// inspect is called before signatures are verified.
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

// penalize is called for a message that only a hostile peer sends.
func (g *peerScores) penalize(now time.Time, from peer.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peers.get(from).penalty.Take(now, penaltyRate, invalidPenalty)
}

// verdict is the result of checking a message.
type verdict int

const (
	accepted verdict = iota
	ignored
	invalid // the sender is at fault
)

// apply returns pubsub's result for a verdict. It never rejects a message: pubsub would
// penalize honest peers that forward it, too.
func (g *peerScores) apply(now time.Time, from peer.ID, v verdict) pubsub.ValidationResult {
	if v == accepted {
		return pubsub.ValidationAccept
	}
	if v == invalid {
		g.penalize(now, from)
	}
	return pubsub.ValidationIgnore
}

// score returns a peer's score, for pubsub.
func (g *peerScores) score(of peer.ID) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.peers.find(of); a != nil {
		return a.penalty.Tokens(time.Now(), penaltyRate)
	}
	return 0
}

// originState is the state that a filter keeps for an origin.
type originState struct {
	rate, older      quota.Bucket
	sequence, number uint64 // the record's and the envelope's, of the last message
	lastQuery        uint64 // the envelope's number of its last query
}

// messageFilter decides which messages of a realm are new. It is safe for concurrent use.
type messageFilter struct {
	realm discovery.Realm

	mu           sync.Mutex
	origins      lru[identity.ID, originState]
	olderQueries quota.Bucket
}

func newMessageFilter(r discovery.Realm) *messageFilter {
	return &messageFilter{realm: r, origins: newLRU[identity.ID, originState](maxOrigins)}
}

// check judges a message that its origin signed, with the number of its envelope. A forwarder
// cannot read messages, so that only a message directly from its origin can be invalid. Otherwise
// an outsider could make others penalize the forwarders. Numbers grow while a process runs and
// sequences over restarts, so that usually neither of a replayed message is new. A query, or an
// older record, passes once a minute nevertheless: otherwise a board that was restored, or whose
// clock went back, would not be heard.
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
	case older: // the newer one stays known
	case m.Kind == query:
		o.lastQuery = number
	default:
		o.sequence, o.number = m.Sequence, number
	}
	return m, accepted
}
