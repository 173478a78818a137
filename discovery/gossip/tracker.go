package gossip

import (
	"bytes"
	"crypto/sha256"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/node/quota"
)

const (
	maxAsking   = 4  // sites at a time
	maxWaiting  = 64 // sites
	maxBackoffs = 256

	minBackoff = 10 * time.Second // after the first failure of a site to answer
	maxBackoff = time.Hour

	maxBackoffNewer = 40 * time.Second // at most, if it has announced a newer record since

	goodbyeDelay = 2 * time.Second // from a goodbye to the site's end: another record may follow it
)

// newerRecordRate limits the newer records for which a site is asked again soon after it did
// not answer: it may have been away. A site that announces ever new ones and never answers is
// not believed.
var newerRecordRate = quota.Rate{PerSecond: 1. / 600, Burst: 6}

// announcement identifies a version of a site's record.
type announcement struct {
	sequence uint64
	digest   [sha256.Size]byte
}

type knownSite struct {
	announcement
	sighting discovery.Sighting
	until    time.Time
}

// backoff delays the next request to a site.
type backoff struct {
	until, at time.Time
	pause     time.Duration
	sequence  uint64       // the record's that was asked for
	newer     quota.Bucket // of retries for newer records
}

// recordTracker decides which sites to ask, and which records to emit. It has no clock and no
// network, and is not safe for concurrent use. It holds discovery.MaxSites; once full, it
// keeps the known sites.
type recordTracker struct {
	ttl      time.Duration // of an announcement
	known    map[identity.ID]*knownSite
	waiting  map[identity.ID]announcement // to be asked
	asking   map[identity.ID]announcement
	backoffs lru[identity.ID, backoff]
	goodbyes map[identity.ID]time.Time // when each ends
}

func newRecordTracker(holds time.Duration) *recordTracker {
	return &recordTracker{
		ttl:   holds,
		known: make(map[identity.ID]*knownSite), waiting: make(map[identity.ID]announcement), asking: make(map[identity.ID]announcement),
		backoffs: newLRU[identity.ID, backoff](maxBackoffs), goodbyes: make(map[identity.ID]time.Time),
	}
}

// handle processes a message. It returns the known sighting of a site that announced nothing
// new.
func (n *recordTracker) handle(now time.Time, from identity.ID, m message) (discovery.Sighting, bool) {
	k := n.known[from]
	switch {
	case m.Kind == goodbye:
		delete(n.waiting, from)
		if _, asked := n.asking[from]; asked || k != nil {
			n.goodbyes[from] = now.Add(goodbyeDelay)
		}
	case m.Kind == alive:
		delete(n.goodbyes, from)
		is := announcement{m.Sequence, m.Digest}
		if k != nil && k.announcement == is {
			k.until = now.Add(n.ttl)
			return k.sighting, true
		}
		n.enqueue(from, is)
		n.retrySoon(now, from, m.Sequence)
	}
	return discovery.Sighting{}, false
}

// retrySoon shortens the back-off of a site that announces a newer record.
func (n *recordTracker) retrySoon(now time.Time, site identity.ID, sequence uint64) {
	r := n.backoffs.find(site)
	if r == nil || sequence <= r.sequence || !r.until.After(r.at.Add(maxBackoffNewer)) || !r.newer.Take(now, newerRecordRate, 1) {
		return
	}
	r.sequence, r.until, r.pause = sequence, r.at.Add(maxBackoffNewer), minBackoff
}

// enqueue stores a site to ask. When the queue is full, a random entry is evicted.
func (n *recordTracker) enqueue(from identity.ID, is announcement) {
	if n.asking[from] == is {
		return
	}
	if _, waits := n.waiting[from]; !waits && len(n.waiting) >= maxWaiting {
		for some := range n.waiting {
			delete(n.waiting, some)
			break
		}
	}
	n.waiting[from] = is
}

// nextSite returns a site to ask now, known ones first.
func (n *recordTracker) nextSite(now time.Time) (site identity.ID, ok bool) {
	if len(n.asking) >= maxAsking {
		return site, false
	}
	for id := range n.waiting {
		_, asked := n.asking[id]
		if r := n.backoffs.find(id); asked || r != nil && r.until.After(now) {
			continue
		}
		if site, ok = id, true; n.known[id] != nil {
			break
		}
	}
	if ok {
		n.asking[site] = n.waiting[site]
		delete(n.waiting, site)
	}
	return site, ok
}

// handleAnswer processes a site's answer. ok reports whether to emit it; reject follows if
// that is refused. A site that announces again and again, and then sends the known record, is
// asked less often too.
func (n *recordTracker) handleAnswer(now time.Time, site identity.ID, s discovery.Sighting, err error) (_ discovery.Sighting, ok bool) {
	is := n.asking[site]
	delete(n.asking, site)
	if err != nil || s.Site != site || s.Record == nil {
		if _, newer := n.waiting[site]; n.backOff(now, site, is.sequence) < maxBackoff && !newer {
			n.enqueue(site, is) // it said that it is there
		}
		return s, false
	}
	k := n.known[site]
	if k == nil && !n.makeRoom(now) {
		return s, false
	}
	if k != nil && bytes.Equal(k.sighting.Record, s.Record) {
		n.backOff(now, site, is.sequence)
		if is.sequence < k.sequence { // it has said what is older
			is = k.announcement
		}
	} else {
		n.backoffs.Remove(site)
	}
	s.For = n.ttl
	n.known[site] = &knownSite{is, s, now.Add(n.ttl)}
	return s, true
}

// reject forgets a site whose record was refused.
func (n *recordTracker) reject(now time.Time, site identity.ID) {
	var sequence uint64
	if k := n.known[site]; k != nil {
		sequence = k.sequence
	}
	delete(n.known, site)
	n.backOff(now, site, sequence)
}

// backOff starts or doubles a site's back-off and returns it.
func (n *recordTracker) backOff(now time.Time, site identity.ID, sequence uint64) time.Duration {
	r := n.backoffs.get(site)
	r.at, r.sequence = now, max(r.sequence, sequence)
	r.pause = min(max(3*r.pause, minBackoff), maxBackoff)
	r.until = now.Add(r.pause)
	return r.pause
}

// makeRoom reports whether there is room for another site, after removing an expired one if
// need be.
func (n *recordTracker) makeRoom(now time.Time) bool {
	if len(n.known) < discovery.MaxSites {
		return true
	}
	for id, k := range n.known {
		if !k.until.After(now) {
			delete(n.known, id)
			return true
		}
	}
	return false
}

// expiredGoodbyes removes and returns the sites whose goodbye no record has followed.
func (n *recordTracker) expiredGoodbyes(now time.Time) (sites []identity.ID) {
	for id, at := range n.goodbyes {
		if !at.After(now) {
			delete(n.goodbyes, id)
			if n.known[id] != nil {
				delete(n.known, id)
				sites = append(sites, id)
			}
		}
	}
	return sites
}

// nextDue returns when something is due, zero for nothing.
func (n *recordTracker) nextDue() (next time.Time) {
	soonest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, at := range n.goodbyes {
		soonest(at)
	}
	for id := range n.waiting { // a site being asked waits for its answer
		_, asked := n.asking[id]
		if r := n.backoffs.find(id); r != nil && !asked && len(n.asking) < maxAsking {
			soonest(r.until)
		}
	}
	return next
}
