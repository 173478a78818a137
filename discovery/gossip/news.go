package gossip

import (
	"bytes"
	"crypto/sha256"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
)

const (
	atOnce     = 4  // sites that are asked
	maxWaiting = 64 // sites to ask
	maxRefused = 256

	refusedLeast = 10 * time.Second // before a site is asked again that did not answer
	refusedMost  = time.Hour

	refusedNews = 40 * time.Second // at most, where it has a newer record since

	doubt = 2 * time.Second // from a goodbye to the end: another record may follow it
)

// newerRecords is how many newer records of a site that did not answer have it asked again
// soon: it may have been away. Who always has one and never answers is not believed.
var newerRecords = rate{perSecond: 1. / 600, burst: 6}

// news is what a site says of its record.
type news struct {
	sequence uint64
	digest   [sha256.Size]byte
}

type known struct {
	news
	sighting discovery.Sighting
	until    time.Time
}

type refusal struct {
	until, at time.Time
	pause     time.Duration
	sequence  uint64 // of what it was asked for
	newer     budget // of records for which it is not waited that long
}

// newsroom decides what is asked of whom, and what is passed on. It knows no clock and no
// network, and is not safe for concurrent use. Bounded: discovery.MaxSites are known, and
// who is known stays while others are passed over.
type newsroom struct {
	holds   time.Duration // what was heard
	known   map[identity.ID]*known
	waiting map[identity.ID]news // to be asked
	asking  map[identity.ID]news
	refused bounded[identity.ID, refusal]
	leaving map[identity.ID]time.Time // those that said goodbye
}

func newNewsroom(holds time.Duration) *newsroom {
	return &newsroom{
		holds: holds,
		known: make(map[identity.ID]*known), waiting: make(map[identity.ID]news), asking: make(map[identity.ID]news),
		refused: newBounded[identity.ID, refusal](maxRefused), leaving: make(map[identity.ID]time.Time),
	}
}

// hear takes a message in. It returns what is known of the site if nothing is new.
func (n *newsroom) hear(now time.Time, from identity.ID, m message) (discovery.Sighting, bool) {
	k := n.known[from]
	switch {
	case m.Kind == gone:
		delete(n.waiting, from)
		if _, asked := n.asking[from]; asked || k != nil {
			n.leaving[from] = now.Add(doubt)
		}
	case m.Kind == here:
		delete(n.leaving, from)
		is := news{m.Sequence, m.Digest}
		if k != nil && k.news == is {
			k.until = now.Add(n.holds)
			return k.sighting, true
		}
		n.wait(from, is)
		n.soon(now, from, m.Sequence)
	}
	return discovery.Sighting{}, false
}

// soon has a site that did not answer be asked again before long for a newer record.
func (n *newsroom) soon(now time.Time, site identity.ID, sequence uint64) {
	r := n.refused.known(site)
	if r == nil || sequence <= r.sequence || !r.until.After(r.at.Add(refusedNews)) || !r.newer.take(now, newerRecords, 1) {
		return
	}
	r.sequence, r.until, r.pause = sequence, r.at.Add(refusedNews), refusedLeast
}

// wait notes whom to ask. Who says much pushes nobody out but at random.
func (n *newsroom) wait(from identity.ID, is news) {
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
func (n *newsroom) ask(now time.Time) (site identity.ID, ok bool) {
	if len(n.asking) >= atOnce {
		return site, false
	}
	for id := range n.waiting {
		_, asked := n.asking[id]
		if r := n.refused.known(id); asked || r != nil && r.until.After(now) {
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
func (n *newsroom) answered(now time.Time, site identity.ID, s discovery.Sighting, err error) (_ discovery.Sighting, ok bool) {
	is := n.asking[site]
	delete(n.asking, site)
	if err != nil || s.Site != site || s.Record == nil {
		if _, newer := n.waiting[site]; n.refuse(now, site, is.sequence) < refusedMost && !newer {
			n.wait(site, is) // it said that it is there
		}
		return s, false
	}
	k := n.known[site]
	if k == nil && !n.room(now) {
		return s, false
	}
	if k != nil && bytes.Equal(k.sighting.Record, s.Record) {
		n.refuse(now, site, is.sequence)
		if is.sequence < k.sequence { // it has said what is older
			is = k.news
		}
	} else {
		delete(n.refused.all, site)
	}
	s.For = n.holds
	n.known[site] = &known{is, s, now.Add(n.holds)}
	return s, true
}

// forget is for a site whose record nobody wants.
func (n *newsroom) forget(now time.Time, site identity.ID) {
	var sequence uint64
	if k := n.known[site]; k != nil {
		sequence = k.sequence
	}
	delete(n.known, site)
	n.refuse(now, site, sequence)
}

// refuse remembers that a site had nothing to say, for longer each time, and returns for
// how long.
func (n *newsroom) refuse(now time.Time, site identity.ID, sequence uint64) time.Duration {
	r := n.refused.of(site, now)
	r.at, r.sequence = now, max(r.sequence, sequence)
	r.pause = min(max(3*r.pause, refusedLeast), refusedMost)
	r.until = now.Add(r.pause)
	return r.pause
}

// room makes one for another site, if it can.
func (n *newsroom) room(now time.Time) bool {
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
func (n *newsroom) left(now time.Time) (sites []identity.ID) {
	for id, at := range n.leaving {
		if !at.After(now) {
			delete(n.leaving, id)
			if n.known[id] != nil {
				delete(n.known, id)
				sites = append(sites, id)
			}
		}
	}
	return sites
}

// next is when something is due, zero for nothing.
func (n *newsroom) next() (next time.Time) {
	soonest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, at := range n.leaving {
		soonest(at)
	}
	for id := range n.waiting { // one that is asked waits for its answer
		_, asked := n.asking[id]
		if r := n.refused.known(id); r != nil && !asked && len(n.asking) < atOnce {
			soonest(r.until)
		}
	}
	return next
}
