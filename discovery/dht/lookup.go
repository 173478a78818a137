package dht

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"agentsite/discovery"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
)

const (
	maxActiveSites  = 16 // sites asked at a time, without slow ones
	maxRunningSites = 32
	maxCandidates   = 4096 // sites of one key
	// Sites named by one server, unknown or known, that may fail to answer before its other
	// names are ignored.
	maxSourceFailures, maxKnownSourceFailures = 48, 512
	maxTries                                  = 3  // of a site that unknown servers name
	maxRetries                                = 32 // sites that are asked once more
)

// runLookup asks for the cards of the sites that servers name for a key, and of besides. It emits
// each site that sends a valid card at once. It returns these and their addresses.
func (d *DHT) runLookup(ctx context.Context, key cid.Cid, besides []peer.AddrInfo, capability string, emit func(discovery.Sighting) error) (map[peer.ID]peer.AddrInfo, error) {
	l := &lookup{d: d, ctx: ctx, capability: capability, emit: emit, asked: make(map[peer.ID]bool), tries: make(map[peer.ID]int), found: make(map[peer.ID]peer.AddrInfo)}
	for _, p := range besides {
		l.add("", p)
	}
	err := d.providers(ctx, key, l.add)
	l.asking.Wait()
	l.retryFailed() // more may be known of them now, and less to do
	l.asking.Wait()
	return l.found, err
}

// lookup is one runLookup. It asks sites first that servers with the fewest false names name:
// hundreds of false names do not delay a real site.
type lookup struct {
	d          *DHT
	ctx        context.Context
	capability string
	emit       func(discovery.Sighting) error
	emitting   sync.Mutex
	asking     sync.WaitGroup

	mu              sync.Mutex
	sources         []*source // in the order of their answers
	candidates      int
	asked           map[peer.ID]bool // being asked, or found
	tries           map[peer.ID]int  // failed attempts
	active, running int              // how many are asked, of whom some are slow
	failed          []peer.AddrInfo  // to ask once more
	found           map[peer.ID]peer.AddrInfo
}

// source is a server that names sites.
type source struct {
	server     peer.ID // "" for this host
	known      bool
	candidates []peer.AddrInfo // not asked yet
	failures   int             // without a card, including those being asked
}

func (s *source) maxFailures() int {
	if s.known {
		return maxKnownSourceFailures
	}
	return maxSourceFailures
}

// add queues a site that a server names.
func (l *lookup) add(server peer.ID, p peer.AddrInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.d.o.Host.Peerstore().AddAddrs(p.ID, p.Addrs, peerstore.TempAddrTTL)
	i := slices.IndexFunc(l.sources, func(s *source) bool { return s.server == server })
	if i < 0 {
		i = len(l.sources)
		l.sources = append(l.sources, &source{server: server, known: server == "" || server == l.d.self || l.d.isKnown(server)})
	}
	if l.candidates < maxCandidates || l.sources[i].known {
		l.candidates++
		l.sources[i].candidates = append(l.sources[i].candidates, p)
	}
	l.askMore()
}

// retryFailed asks known servers' sites that failed once more.
func (l *lookup) retryFailed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &source{known: true, candidates: l.failed}
	l.failed = nil
	l.sources = []*source{s}
	l.askMore()
}

// askMore asks as many sites as allowed. The caller holds mu.
func (l *lookup) askMore() {
	for l.active < maxActiveSites && l.running < maxRunningSites && l.ctx.Err() == nil {
		s, p := l.next()
		if s == nil {
			return
		}
		l.asked[p.ID] = true
		s.failures++
		l.active++
		l.running++
		slow, done := false, false
		late := time.AfterFunc(hedgeAfter, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if !done {
				slow = true
				l.active--
				l.askMore()
			}
		})
		l.asking.Go(func() {
			shown := l.ask(p)
			late.Stop()
			l.mu.Lock()
			defer l.mu.Unlock()
			done = true
			l.running--
			if !slow {
				l.active--
			}
			if shown {
				s.failures--
			} else {
				delete(l.asked, p.ID) // another may know better where it is
				l.tries[p.ID]++
			}
			if !shown && s.known && len(l.failed) < maxRetries {
				l.failed = append(l.failed, p)
			}
			l.askMore()
		})
	}
}

// next returns the next site, of the source with the fewest failures. The caller holds mu.
func (l *lookup) next() (best *source, p peer.AddrInfo) {
	at := 0
	for _, s := range l.sources {
		s.candidates = slices.DeleteFunc(s.candidates, func(p peer.AddrInfo) bool { return !s.known && l.tries[p.ID] >= maxTries })
		i := slices.IndexFunc(s.candidates, func(p peer.AddrInfo) bool { return !l.asked[p.ID] })
		if i >= 0 && s.failures < s.maxFailures() && (best == nil || s.failures < best.failures || s.failures == best.failures && s.known && !best.known) {
			best, at = s, i
		}
	}
	if best == nil {
		return nil, p
	}
	p = best.candidates[at]
	best.candidates = slices.Delete(best.candidates, at, at+1)
	return best, p
}

// ask asks a site for its card, emits it, and reports whether it was valid.
func (l *lookup) ask(p peer.AddrInfo) bool {
	seen, names, err := l.d.ask(l.ctx, p)
	if err != nil {
		l.d.o.Log.Debug("no card from site", "peer", p.ID, "err", err)
		return false
	}
	if l.capability != "" && !slices.Contains(names, l.capability) {
		return true // it could once
	}
	l.mu.Lock()
	l.found[p.ID] = peer.AddrInfo{ID: p.ID, Addrs: selectAddrs(l.d.addresses(p.ID))}
	l.mu.Unlock()
	l.emitting.Lock()
	err = l.emit(seen) // whether it is taken there changes nothing here
	l.emitting.Unlock()
	var older *discovery.OlderError
	if errors.As(err, &older) && p.ID != l.d.self {
		l.d.sendNewer(l.ctx, p, older.Newest)
	}
	return true
}
