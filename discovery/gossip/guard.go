package gossip

import (
	"errors"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
)

var (
	// What one peer may send here, for itself and for others: calls, and in each the
	// messages and subscriptions. A forwarder's first call has one for each topic.
	perPeer = rate{perSecond: 16, burst: 4096}

	// What one origin may say. We say less (ours).
	perOrigin = rate{perSecond: 0.1, burst: 48, debt: 64}

	// What an origin may say that is older than what was heard of it, in its own words: it
	// may have been restored from a backup, or its clock may have gone back.
	perOlder = rate{perSecond: 1. / 60, burst: 1}

	// Looks that are older than what was heard of their origins, of all origins: one has all
	// sites answer, which whoever plays back what he once forwarded would else keep from
	// answering those who look now.
	olderLooks = rate{perSecond: 1. / 60, burst: 4}

	// What a peer is forgiven. It is its score, and below graylist it is not heard.
	forgiven = rate{perSecond: 0.2, debt: 1000}
)

const (
	maxPeers   = 2048 // of whom something is remembered
	maxOrigins = 1024

	graylist = -80.0
	wrong    = 30.0  // what a message costs that only a hostile peer sends
	tooMuch  = 0.005 // what a message costs that was too much: a forwarder may be flooded by others
)

var errFlood = errors.New("the peer sends more than anybody needs to")

// guard says what is taken from whom. It is safe for concurrent use.
type guard struct {
	mu    sync.Mutex
	peers bounded[peer.ID, account]
}

type account struct{ sent, did budget }

func newGuard() *guard { return &guard{peers: newBounded[peer.ID, account](maxPeers)} }

// inspect is asked before a signature is looked at.
func (g *guard) inspect(from peer.ID, rpc *pubsub.RPC) error {
	if !g.take(time.Now(), from, 1+len(rpc.GetPublish())+len(rpc.GetSubscriptions())) {
		return errFlood
	}
	return nil
}

func (g *guard) take(now time.Time, from peer.ID, n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.peers.of(from, now)
	ok := a.sent.take(now, perPeer, float64(n))
	if !ok {
		a.did.take(now, forgiven, float64(n)*tooMuch)
	}
	return ok
}

// blame has a peer pay for what only a hostile one sends.
func (g *guard) blame(now time.Time, from peer.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peers.of(from, now).did.take(now, forgiven, wrong)
}

// verdict is what becomes of a message.
type verdict int

const (
	taken verdict = iota
	passedOver
	offence // of who sent it
)

// rule has pubsub follow a verdict. Nothing is ever rejected: pubsub would also have those
// pay who forward the same message, and cannot know.
func (g *guard) rule(now time.Time, from peer.ID, v verdict) pubsub.ValidationResult {
	if v == taken {
		return pubsub.ValidationAccept
	}
	if v == offence {
		g.blame(now, from)
	}
	return pubsub.ValidationIgnore
}

// score is what a peer owes, for pubsub.
func (g *guard) score(of peer.ID) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.peers.known(of); a != nil {
		return a.did.now(time.Now(), forgiven)
	}
	return 0
}

// origin is what is known of one.
type origin struct {
	rate, older      budget
	sequence, number uint64 // the record's, and the envelope's, of the last message
	looked           uint64 // the envelope's when it last looked
}

// judge says which messages of a realm are news. It is safe for concurrent use.
type judge struct {
	realm discovery.Realm

	mu      sync.Mutex
	origins bounded[identity.ID, origin]
	looks   budget // of those that are older
}

func newJudge(r discovery.Realm) *judge {
	return &judge{realm: r, origins: newBounded[identity.ID, origin](maxOrigins)}
}

// judge takes a message that is signed by its origin, with the number that its envelope
// has. Who forwards cannot read: only what comes from its origin itself is an offence, so
// that an outsider cannot have the forwarders blamed. Numbers grow while a process lasts
// and sequences over restarts too, so what is played back later is mostly none of either.
// A look, and an older record, pass all the same once a minute: a board whose clock went
// back, or that was restored, would otherwise be heard by nobody.
func (j *judge) judge(now time.Time, by identity.ID, direct bool, number uint64, b []byte) (message, verdict) {
	bad := passedOver
	if direct {
		bad = offence
	}
	m, err := read(j.realm, by, b)
	if err != nil {
		return m, bad
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	o := j.origins.of(by, now)
	same, older := m.Sequence == o.sequence && number <= o.number, m.Sequence < o.sequence
	switch m.Kind {
	case look:
		same, older = number == o.looked, number < o.looked
	case gone: // an older one ends nothing
		same, older = same || older, false
	}
	if same || older && !o.older.take(now, perOlder, 1) {
		return m, passedOver
	}
	if older && m.Kind == look && !j.looks.take(now, olderLooks, 1) {
		return m, passedOver
	}
	if !o.rate.take(now, perOrigin, 1) {
		if o.rate.left > -perOrigin.debt {
			bad = passedOver // it may have been restarted often
		}
		return m, bad
	}
	switch {
	case older: // what is newer stays known
	case m.Kind == look:
		o.looked = number
	default:
		o.sequence, o.number = m.Sequence, number
	}
	return m, taken
}
