package gossip

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
)

// TestRecordTracker: the requests to sites, and the records that are passed on.
func TestRecordTracker(t *testing.T) {
	n := newRecordTracker(30 * time.Minute)
	id := identity.New().ID()
	s := discovery.Sighting{Site: id, Record: []byte{1}}
	hear := func(at time.Duration, m message, known bool) {
		t.Helper()
		if _, ok := n.handle(after(at), id, m); ok != known {
			t.Errorf("%+v: known %v", m, ok)
		}
	}
	ask := func(at time.Duration, want bool) {
		t.Helper()
		if _, ok := n.nextSite(after(at)); ok != want {
			t.Errorf("it is asked after %v: %v", at, ok)
		}
	}
	hear(0, message{Kind: goodbye, Sequence: 1}, false)
	hear(0, message{Kind: query}, false)
	ask(0, false)
	hear(0, is(1), false)
	ask(0, true)
	hear(0, is(1), false)
	ask(0, false) // it is being asked
	if got, ok := n.handleAnswer(after(0), id, s, nil); !ok || got.For != 30*time.Minute {
		t.Errorf("%+v", got)
	}
	hear(time.Minute, is(1), true)
	ask(time.Minute, false)

	hear(time.Minute, message{Kind: alive, Sequence: 1, Digest: [32]byte{1}}, false)
	ask(time.Minute, true)
	n.handleAnswer(after(time.Minute), id, s, nil) // the record that it had
	hear(time.Minute, is(2), false)
	ask(time.Minute, false) // not at once
	if next := n.nextDue(); !next.Equal(after(time.Minute + minBackoff)) {
		t.Error(next)
	}
	ask(time.Minute+minBackoff, true)
	s.Record = []byte{2}
	n.handleAnswer(after(2*time.Minute), id, s, nil)

	hear(3*time.Minute, message{Kind: goodbye, Sequence: 2}, false)
	hear(3*time.Minute, is(2), true)
	if left := n.expiredGoodbyes(after(4 * time.Minute)); len(left) > 0 {
		t.Error("a goodbye that was taken back is passed on")
	}
	hear(4*time.Minute, message{Kind: goodbye, Sequence: 2}, false)
	if left := n.expiredGoodbyes(after(4 * time.Minute)); len(left) > 0 {
		t.Error("a goodbye is passed on at once: another record may follow")
	}
	if left := n.expiredGoodbyes(n.nextDue()); !slices.Equal(left, []identity.ID{id}) {
		t.Error(left)
	}
	if !n.nextDue().IsZero() {
		t.Error("something is due")
	}
}

// TestReturns: a site that did not answer for long, whatever it announced meanwhile, is asked
// within a minute of its first newer record once it is back.
func TestReturns(t *testing.T) {
	for away := time.Minute; away < 6*time.Hour; away += 7 * time.Minute {
		n := newRecordTracker(30 * time.Minute)
		id := identity.New().ID()
		for at := time.Duration(0); at < away; at += time.Second {
			if at%(12*time.Minute) == 0 {
				n.handle(after(at), id, is(uint64(1+at/time.Second)))
			}
			if _, ok := n.nextSite(after(at)); ok {
				n.handleAnswer(after(at), id, discovery.Sighting{}, errors.New("it does not answer"))
			}
		}
		n.handle(after(away), id, is(1<<40))
		asked := false
		for s := range 61 {
			_, ok := n.nextSite(after(away + time.Duration(s)*time.Second))
			asked = asked || ok
		}
		if !asked {
			t.Fatalf("after %v it is not asked within a minute", away)
		}
	}
}

// TestLiars: a member that announces and does not answer is asked rarely, and does not delay
// the others.
func TestLiars(t *testing.T) {
	n := newRecordTracker(time.Hour)
	liar := identity.New().ID()
	asked := 0
	for s := range 24 * 3600 / 10 {
		now := after(time.Duration(s) * 10 * time.Second)
		n.handle(now, liar, is(uint64(s+1)))
		if id, ok := n.nextSite(now); ok {
			asked++
			n.handleAnswer(now, id, discovery.Sighting{}, errors.New("no"))
		}
	}
	if asked > 600 { // of 8640 times
		t.Errorf("it was asked %d times in a day", asked)
	}
	for range 10000 {
		n.handle(start0, identity.New().ID(), is(1))
	}
	if len(n.waiting) > maxWaiting {
		t.Errorf("%d wait", len(n.waiting))
	}
	now := after(48 * time.Hour)
	for range maxAsking {
		n.nextSite(now)
	}
	if _, ok := n.nextSite(now); ok || len(n.asking) != maxAsking {
		t.Errorf("%d are asked at once", len(n.asking))
	}
	for id := range n.asking {
		if _, ok := n.handleAnswer(now, id, discovery.Sighting{Site: liar, Record: []byte{1}}, nil); ok {
			t.Error("the record of another site is taken")
		}
	}
}

// TestUnanswered: a site that announces itself once and does not answer is asked again, ever less
// often, and finally no more.
func TestUnanswered(t *testing.T) {
	n := newRecordTracker(time.Hour)
	id := identity.New().ID()
	n.handle(start0, id, is(1))
	var asked []time.Duration
	for at := time.Duration(0); at < 24*time.Hour; at += 10 * time.Second {
		if site, ok := n.nextSite(after(at)); ok {
			asked = append(asked, at)
			n.handleAnswer(after(at), site, discovery.Sighting{}, errors.New("busy"))
		}
	}
	if len(asked) != 7 || asked[1] != minBackoff {
		t.Errorf("it is asked after %v", asked)
	}
}

// TestRecordTrackerIsBounded: known sites stay, and a silent site is evicted.
func TestRecordTrackerIsBounded(t *testing.T) {
	n := newRecordTracker(time.Hour)
	add := func(at time.Duration) bool {
		id := identity.New().ID()
		n.handle(after(at), id, is(1))
		site, _ := n.nextSite(after(at))
		_, ok := n.handleAnswer(after(at), site, discovery.Sighting{Site: site, Record: []byte{1}}, nil)
		return ok
	}
	for i := range discovery.MaxSites + 10 {
		if ok := add(0); ok != (i < discovery.MaxSites) {
			t.Fatalf("%d: %v", i, ok)
		}
	}
	if !add(2*time.Hour) || len(n.known) != discovery.MaxSites {
		t.Errorf("%d are known", len(n.known))
	}
}

// TestNewPeers: a peer that joins, or comes back, matters only where no others have stayed.
func TestNewPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := &Medium{events: newLRU[peerEvent, time.Time](maxOrigins)}, peerNamed(t)
		for i := range int32(3) { // the relays, one after the other
			m.peers.Store(i + 1)
			if !m.isNew("join", peerNamed(t)) {
				t.Errorf("peer %d of those that it begins with is ignored", i+1)
			}
		}
		if !m.isNew("join", p) || !m.isNew("graft", p) {
			t.Error("a new peer is ignored")
		}
		if m.isNew("join", p) {
			t.Error("a peer that came back is new")
		}
		time.Sleep(joinWindow)
		if m.isNew("join", peerNamed(t)) {
			t.Error("a peer that joins later is new, though others have stayed")
		}
		m.peers.Store(enoughPeers)
		if !m.isNew("join", peerNamed(t)) {
			t.Error("a new peer is ignored where few others are")
		}
		m.peers.Store(1)
		if !m.isNew("join", p) {
			t.Error("the only peer is ignored")
		}
	})
}
