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
	maxAsking   = 4  // sites that are asked
	maxWaiting  = 64 // sites to ask
	maxBackoffs = 256

	minBackoff = 10 * time.Second // before a site is asked again that did not answer
	maxBackoff = time.Hour

	maxBackoffNewer = 40 * time.Second // at most, where it has a newer record since

	goodbyeDelay = 2 * time.Second // from a goodbye to the end: another record may follow it
)

// newerRecords is how many newer records of a site that did not answer have it asked again
// soon: it may have been away. Who always has one and never answers is not believed.
var newerRecordRate = quota.Rate{PerSecond: 1. / 600, Burst: 6}

// news is what a site says of its record.
type announcement struct {
	sequence uint64
	digest   [sha256.Size]byte
}

type knownSite struct {
	announcement
	sighting discovery.Sighting
	until    time.Time
}

type backoff struct {
	until, at time.Time
	pause     time.Duration
	sequence  uint64       // of what it was asked for
	newer     quota.Bucket // of records for which it is not waited that long
}

// newsroom decides what is asked of whom, and what is passed on. It knows no clock and no
// network, and is not safe for concurrent use. Bounded: discovery.MaxSites are known, and
// who is known stays while others are passed over.
type recordTracker struct {
	ttl      time.Duration // what was heard
	known    map[identity.ID]*knownSite
	waiting  map[identity.ID]announcement // to be asked
	asking   map[identity.ID]announcement
	backoffs lru[identity.ID, backoff]
	goodbyes map[identity.ID]time.Time // those that said goodbye
}

func newRecordTracker(holds time.Duration) *recordTracker {
	return &recordTracker{
		ttl:   holds,
		known: make(map[identity.ID]*knownSite), waiting: make(map[identity.ID]announcement), asking: make(map[identity.ID]announcement),
		backoffs: newLRU[identity.ID, backoff](maxBackoffs), goodbyes: make(map[identity.ID]time.Time),
	}
}

// hear takes a message in. It returns what is known of the site if nothing is new.
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

// soon has a site that did not answer be asked again before long for a newer record.
func (n *recordTracker) retrySoon(now time.Time, site identity.ID, sequence uint64) {
	r := n.backoffs.find(site)
	if r == nil || sequence <= r.sequence || !r.until.After(r.at.Add(maxBackoffNewer)) || !r.newer.Take(now, newerRecordRate, 1) {
		return
	}
	r.sequence, r.until, r.pause = sequence, r.at.Add(maxBackoffNewer), minBackoff
}

// wait notes whom to ask. Who says much pushes nobody out but at random.
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

// ask says who is to be asked now, those first who are known.
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

// answered takes what was asked for. ok reports whether it may be passed on; forget
// follows where it was not taken. Who has news again and again, and then the record that
// is known, is asked less often too.
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

// forget is for a site whose record nobody wants.
func (n *recordTracker) reject(now time.Time, site identity.ID) {
	var sequence uint64
	if k := n.known[site]; k != nil {
		sequence = k.sequence
	}
	delete(n.known, site)
	n.backOff(now, site, sequence)
}

// refuse remembers that a site had nothing to say, for longer each time, and returns for
// how long.
func (n *recordTracker) backOff(now time.Time, site identity.ID, sequence uint64) time.Duration {
	r := n.backoffs.get(site)
	r.at, r.sequence = now, max(r.sequence, sequence)
	r.pause = min(max(3*r.pause, minBackoff), maxBackoff)
	r.until = now.Add(r.pause)
	return r.pause
}

// room makes one for another site, if it can.
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

// left are the goodbyes that no other record has followed.
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

// next is when something is due, zero for nothing.
func (n *recordTracker) nextDue() (next time.Time) {
	soonest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, at := range n.goodbyes {
		soonest(at)
	}
	for id := range n.waiting { // one that is asked waits for its answer
		_, asked := n.asking[id]
		if r := n.backoffs.find(id); r != nil && !asked && len(n.asking) < maxAsking {
			soonest(r.until)
		}
	}
	return next
}
