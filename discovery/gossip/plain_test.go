package gossip

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/peer"
)

var start0 = time.Unix(1, 0)

func after(d time.Duration) time.Time { return start0.Add(d) }

// TestMessageFilter: forged, foreign, old and excessive messages.
func TestMessageFilter(t *testing.T) {
	r, id := newRealm(t, "home"), identity.New().ID()
	j := newMessageFilter(r)
	for i, c := range []struct {
		m      message
		realm  discovery.Realm
		direct bool
		number uint64
		want   verdict
	}{
		{is(2), r, true, 10, accepted},
		{is(2), r, true, 10, ignored}, // played back
		{is(2), r, false, 9, ignored},
		{is(1), r, false, 11, accepted}, // an older record: it may have been restored
		{is(1), r, false, 12, ignored},  // once a minute
		{is(2), r, false, 11, accepted}, // what is newer stays known
		{message{Kind: goodbye, Sequence: 2}, r, false, 12, accepted},
		{message{Kind: goodbye, Sequence: 2}, r, false, 12, ignored},
		{is(3), r, false, 1, accepted}, // after a restart, with a clock that went back
		{message{Kind: goodbye, Sequence: 2}, r, false, 13, ignored},
		{message{Kind: query}, r, false, 1, accepted},
		{message{Kind: query}, r, false, 1, ignored},
		{is(4), newRealm(t, "home"), true, 20, invalid},
		{is(4), newRealm(t, "home"), false, 20, ignored}, // by a forwarder, which cannot know
		{is(4), r, true, 20, accepted},                   // what was forged is not remembered
	} {
		if _, got := j.check(start0, id, c.direct, c.number, c.m.seal(c.realm, id)); got != c.want {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
	// A board whose clock went back looks, and is heard, again and again but not often.
	looks := func(at time.Duration, number uint64, want verdict) {
		t.Helper()
		m := message{Kind: query}
		if _, got := j.check(after(at), id, true, number, m.seal(r, id)); got != want {
			t.Errorf("a look after %v: %v, want %v", at, got, want)
		}
	}
	looks(time.Hour, 1<<60, accepted)
	looks(time.Hour, 7, accepted)
	looks(time.Hour, 8, ignored)
	looks(time.Hour+time.Minute, 9, accepted)
	looks(time.Hour+time.Minute, 1<<60, ignored)
	counts := make(map[verdict]int)
	for n := range uint64(1000) {
		_, got := j.check(after(time.Hour), id, true, 100+n, is(5).seal(r, id))
		counts[got]++
	}
	if counts[accepted] > int(originRate.Burst) || counts[invalid] < 800 {
		t.Errorf("of a flood: %v", counts)
	}
	if _, got := j.check(start0, identity.New().ID(), true, 1, is(1).seal(r, id)); got != invalid {
		t.Errorf("%v", got)
	}
	for range 2 * maxOrigins {
		other := identity.New().ID()
		j.check(start0, other, false, 1, is(1).seal(r, other))
	}
	if n := j.origins.Len(); n != maxOrigins {
		t.Errorf("%d origins are remembered", n)
	}
}

// TestReplayedQueries: a forwarder replays old queries. The sites of a realm answer these less
// often than their rate, so that they still answer new queries.
func TestReplayedQueries(t *testing.T) {
	const minutes, origins = 60, 20
	r := newRealm(t, "home")
	j, all := newMessageFilter(r), make([]identity.ID, origins)
	for i := range all {
		all[i] = identity.New().ID()
		for n := range uint64(3) {
			j.check(start0, all[i], false, 10+n, message{Kind: query}.seal(r, all[i]))
		}
	}
	heard := 0
	for second := range minutes * 60 {
		now := start0.Add(time.Duration(second) * time.Second)
		by := all[second%origins]
		if _, v := j.check(now, by, false, 10, message{Kind: query}.seal(r, by)); v == accepted {
			heard++
		}
	}
	if most := answerRate.PerSecond * minutes * 60 / 2; heard == 0 || float64(heard) > most {
		t.Errorf("%d looks are answered, with %v answers", heard, 2*most)
	}
}

// TestPeerScores: a peer that floods, or sends what only a hostile one does, is not heard any
// more; a forwarder that others flood is.
func TestPeerScores(t *testing.T) {
	g := newPeerScores()
	flood := func(p peer.ID, perSecond int) (taken int) {
		for s := range 120 {
			for range perSecond {
				if g.allow(after(time.Duration(s)*time.Second), p, 2) {
					taken++
				}
			}
		}
		return taken
	}
	score := func(p peer.ID) float64 { return g.peers.find(p).penalty.Tokens(after(2*time.Minute), penaltyRate) }
	if n := flood("forwarder", int(topicRate.PerSecond)+2); n < 120*int(peerRate.PerSecond)/2 || score("forwarder") < graylist {
		t.Errorf("%d, %v", n, score("forwarder"))
	}
	if n := flood("hostile", 1000); n > int(peerRate.Burst)/2+120*int(peerRate.PerSecond)/2 || score("hostile") > graylist {
		t.Errorf("%d, %v", n, score("hostile"))
	}
	for range 3 {
		g.penalize(after(2*time.Minute), "wrong")
	}
	if score("wrong") > graylist {
		t.Error(score("wrong"))
	}
	if s := g.score("nobody"); s != 0 {
		t.Error(s)
	}
}

// peerNamed is a peer whose key nobody has to have.
func peerNamed(t *testing.T) peer.ID {
	p, err := peer.Decode(identity.New().ID().PeerID())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestJunk: messages that strangers send in others' names do not displace those of an honest
// forwarder, from another address or, if the stranger has one key, from the same.
func TestJunk(t *testing.T) {
	for name, strangers := range map[string][]netip.Prefix{
		"three a second":        {prefixNamed(1)},
		"from the same address": {prefixNamed(0)},
		"with 40 keys on 4 addresses": func() (all []netip.Prefix) {
			for n := range 40 {
				all = append(all, prefixNamed(1+n%4))
			}
			return all
		}(),
	} {
		c := newTopicLimiter(256)
		topic, forwarder := topicNamed(t, 1), peerNamed(t)
		var keys []peer.ID
		for range strangers {
			keys = append(keys, peerNamed(t))
		}
		junk, lost := 0, 0
		for s := range 2400 {
			now := after(time.Duration(s) * time.Second)
			for i, p := range keys {
				for range 3 {
					if c.check(now, topic, p, strangers[i], false) == accepted {
						junk++
					}
				}
			}
			if s >= 1800 && c.check(now, topic, forwarder, prefixNamed(0), false) != accepted {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%s: %d of 600 honest messages are lost; %d others passed", name, lost, junk)
		}
	}
}

// TestWaitsForAnswer: a site that is asked, and has said something newer meanwhile, is asked
// again after it has answered: nothing is due before.
func TestWaitsForAnswer(t *testing.T) {
	n := newRecordTracker(30 * time.Minute)
	id := identity.New().ID()
	now := start0
	n.handle(now, id, is(1))
	n.nextSite(now)
	n.handleAnswer(now, id, discovery.Sighting{}, errors.New("it does not answer"))
	now = n.nextDue()
	if _, ok := n.nextSite(now); !ok {
		t.Fatal("it is not asked again")
	}
	n.handle(now, id, is(2))
	if due := n.nextDue(); !due.IsZero() && !due.After(now) {
		t.Error("something is due already, and it is asked for without an end")
	}
	n.handleAnswer(now, id, discovery.Sighting{}, errors.New("it does not answer"))
	if due := n.nextDue(); !due.After(now) {
		t.Error("it is not asked for what is newer")
	}
}
