package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/node/quota"

	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"
)

var start0 = time.Unix(1, 0)

func after(d time.Duration) time.Time { return start0.Add(d) }

func is(sequence uint64) message { return message{Kind: alive, Sequence: sequence} }

func TestMessage(t *testing.T) {
	r, id := newRealm(t, "home"), identity.New().ID()
	m := message{Kind: alive, Sequence: 1<<64 - 1, Digest: [32]byte{1}}
	b := m.seal(r, id)
	if len(b) > maxMessage {
		t.Errorf("%d bytes", len(b))
	}
	got, err := decode(r, id, b)
	if err != nil || got.Sequence != m.Sequence || got.Digest != m.Digest || got.Kind != alive {
		t.Errorf("%+v, %v", got, err)
	}
	newer := message{Version: 2, Kind: alive, Sequence: 1}
	newer.MAC = newer.mac(r, id)
	for name, bad := range map[string][]byte{
		"a foreign realm":      m.seal(newRealm(t, "home"), id),
		"the public realm":     m.seal(discovery.PublicRealm(), id),
		"another origin's":     m.seal(r, identity.New().ID()),
		"no proof":             m.encode(),
		"changed":              bytes.Replace(b, []byte{0xff}, []byte{0xfe}, 1),
		"a site without any":   message{Kind: alive}.seal(r, id),
		"a look with one":      message{Kind: query, Sequence: 1}.seal(r, id),
		"no kind":              message{Sequence: 1}.seal(r, id),
		"a kind that is new":   message{Kind: query + 1, Sequence: 1}.seal(r, id),
		"a newer version":      newer.encode(),
		"with something after": append(bytes.Clone(b), 0),
		"cut":                  b[:len(b)-1],
		"nothing":              nil,
		"too long":             make([]byte, maxMessage+1),
	} {
		if _, err := decode(r, id, bad); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if topic := topicOf(r); !isTopic(topic) || topic == topicOf(newRealm(t, "home")) || isTopic(forwarderTopic) ||
		isTopic(topic+"0") || isTopic(topics+topic[len(topics):len(topic)-2]+"AB") || isTopic(topic[1:]) {
		t.Error("the topic of a realm, or what is none, is not known for it")
	}
}

// TestMessageFilter: what is forged, foreign, old or too much.
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

// TestReplayedQueries: a forwarder who plays back what others once looked for has the sites
// of a realm answer less often than they may, so that they answer those who look now.
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

// TestRecordTracker: what is asked of whom, and what is passed on.
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

// TestReturns: a site that did not answer for long, whatever it said meanwhile, is asked
// within a minute of its first newer record once it is back, whenever that is.
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

// TestLiars: who has news and does not answer is asked rarely, and keeps nobody from being
// asked.
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

// TestUnanswered: who says once that it is there, and does not answer just then, is asked
// again, less and less often, and at last no more.
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

// TestRecordTrackerIsBounded: who is known stays, and one that is not heard of gives up its
// place.
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

// peerNamed is a peer whose key nobody has to have.
func peerNamed(t *testing.T) peer.ID {
	p, err := peer.Decode(identity.New().ID().PeerID())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func topicNamed(t *testing.T, n int) string { return topicOf(newRealm(t, fmt.Sprint("r", n))) }

func subscribe(s *topicSelector, from peer.ID, wants bool, names ...string) int {
	var all []*pb.RPC_SubOpts
	for _, n := range names {
		all = append(all, &pb.RPC_SubOpts{Topicid: &n, Subscribe: &wants})
	}
	counted, _ := s.FilterIncomingSubscriptions(from, all)
	return len(counted)
}

func TestTopicSelector(t *testing.T) {
	s := newTopicSelector(Limits{Topics: 4, PerPeer: 3}, apart())
	now := start0
	greedy, modest, other := peerNamed(t), peerNamed(t), peerNamed(t)
	var names []string
	for n := range 1000 {
		names = append(names, topicNamed(t, n))
	}
	if n := subscribe(s, greedy, true, names...); n != 3 || len(s.selectTopics(now)) != 3 {
		t.Errorf("one peer has %d of %d topics", n, len(s.selectTopics(now)))
	}
	if n := subscribe(s, modest, true, "something else", forwarderTopic+"0"); n != 0 {
		t.Error("what is no topic of ours counts")
	}
	// Four who want one thing each push out what the first wants besides.
	var theirs []string
	for n := range 4 {
		theirs = append(theirs, topicNamed(t, n))
		subscribe(s, peerNamed(t), true, theirs[n])
	}
	chosen := s.selectTopics(now)
	own := 0
	for _, c := range chosen {
		if !slices.Contains(theirs, c) {
			own++
		}
	}
	if len(chosen) != 4 || own > 1 {
		t.Errorf("%d topics, and %d are the first peer's", len(chosen), own)
	}
	// What is forwarded already is spared, and of what is not what many want comes first.
	shared := topicNamed(t, 1)
	subscribe(s, peerNamed(t), true, topicNamed(t, 2))
	subscribe(s, modest, true, shared)
	subscribe(s, peerNamed(t), true, shared)
	slices.Sort(chosen)
	if now := slices.Sorted(slices.Values(s.selectTopics(now))); !slices.Equal(now, chosen) {
		t.Errorf("what is forwarded already gives way: %v, and was %v", now, chosen)
	}
	subscribe(s, greedy, false, names...)
	if !slices.Contains(s.selectTopics(now), shared) {
		t.Error("what two want gives way to what one wants")
	}
	// Another forwarder's topics are not its wishes.
	if n := subscribe(s, other, true, append(names[10:20], forwarderTopic, shared)...); n != 1 || s.wants[other] != nil {
		t.Errorf("%d topics of another forwarder count", n)
	}
	subscribe(s, modest, false, shared)
	s.prune(func(p peer.ID) bool { return p == modest || p == other })
	if chosen := s.selectTopics(now); len(chosen) > 0 || len(s.wants) > 0 {
		t.Errorf("%d topics that nobody wants", len(chosen))
	}
	// Each change is told to everybody: there are not more of them than that.
	joined := 0
	for n := range 1000 {
		name := topicNamed(t, n)
		subscribe(s, modest, true, name)
		joined += len(s.selectTopics(now))
		subscribe(s, modest, false, name)
		s.selectTopics(now)
	}
	if joined > int(changeRate.Burst) {
		t.Errorf("%d changes at once", joined)
	}
	allowed := newTopicSelector(Limits{Topics: 4, PerPeer: 3, Allow: func(identity.ID) bool { return false }}, apart())
	if subscribe(allowed, modest, true, names[0]) != 0 || len(allowed.selectTopics(now)) != 0 {
		t.Error("who is not allowed has a wish")
	}
}

// apart has each peer come from an address of its own.
func apart() func(peer.ID) netip.Prefix {
	all := make(map[peer.ID]netip.Prefix)
	return func(p peer.ID) netip.Prefix {
		if _, ok := all[p]; !ok {
			all[p] = prefixNamed(len(all))
		}
		return all[p]
	}
}

func prefixNamed(n int) netip.Prefix {
	return quota.Prefix(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}))
}

// TestForwardedTopicsStay: strangers with many keys on few addresses, all of whom want the same
// things, take no served realm's place, and do not keep another from getting one.
func TestForwardedTopicsStay(t *testing.T) {
	var names []string
	for n := range 512 {
		names = append(names, topicNamed(t, n))
	}
	for _, first := range []bool{true, false} {
		at := make(map[peer.ID]netip.Prefix)
		s := newTopicSelector(Limits{Topics: 256, PerPeer: 4}, func(p peer.ID) netip.Prefix { return at[p] })
		served, now := topicNamed(t, 0), start0
		serve := func() {
			for n := range 2 {
				member := peerNamed(t)
				at[member] = prefixNamed(1000 + n)
				subscribe(s, member, true, served)
			}
			s.selectTopics(now)
		}
		if first {
			serve()
		}
		for n := range 768 {
			stranger := peerNamed(t)
			at[stranger] = prefixNamed(n % 4)
			subscribe(s, stranger, true, names[n/3], names[256+n/3])
			now = now.Add(time.Second)
			s.selectTopics(now)
		}
		if !first {
			serve()
		}
		if !slices.Contains(s.selectTopics(now), served) {
			t.Errorf("the realm is not served; it was first: %v", first)
		}
	}
}

// TestTopicChangesAreShared: who asks for ever other topics does not keep others from theirs.
func TestTopicChangesAreShared(t *testing.T) {
	at := make(map[peer.ID]netip.Prefix)
	s := newTopicSelector(Limits{Topics: 256, PerPeer: 4}, func(p peer.ID) netip.Prefix { return at[p] })
	stranger, member := peerNamed(t), peerNamed(t)
	at[stranger], at[member] = prefixNamed(1), prefixNamed(2)
	now := start0
	for n := range 1000 {
		name := topicNamed(t, n)
		subscribe(s, stranger, true, name)
		s.selectTopics(now)
		subscribe(s, stranger, false, name)
		now = now.Add(time.Millisecond)
	}
	served := topicNamed(t, 5000)
	subscribe(s, member, true, served)
	if !slices.Contains(s.selectTopics(now), served) {
		t.Error("a realm is not served")
	}
}

// TestTopicLimiter: what others bring does not hold up what a member brings itself, until they
// are very many.
func TestTopicLimiter(t *testing.T) {
	c := newTopicLimiter(4)
	honest, topic := peerNamed(t), topicNamed(t, 1)
	home := prefixNamed(1)
	passed := 0
	for s := range 600 {
		now := after(time.Duration(s) * time.Second)
		for range 100 {
			if c.check(now, topic, honest, home, false) == accepted { // in its name, and in those of others
				passed++
			}
		}
		if s%60 == 0 && c.check(now, topic, honest, home, true) != accepted {
			t.Errorf("an honest message after %d s does not pass", s)
		}
	}
	if limit := forwardRate.Burst + 600*forwardRate.PerSecond; float64(passed) > limit {
		t.Errorf("%d passed, more than %v", passed, limit)
	}
	last := accepted
	for range 1000 {
		last = c.check(start0, topic, peer.ID("hostile"), home, true)
	}
	if last != invalid {
		t.Errorf("who floods in its own name: %v", last)
	}
}

// TestJunk: what strangers bring in others' names takes nothing of what an honest forwarder
// brings, from an address of its own or, where the stranger has one key, from the same.
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

// FuzzGossip: whatever is accepted was written by a member of the realm, in one way.
func FuzzGossip(f *testing.F) {
	realm, err := discovery.ParseRealm("home:aaaaaaaaaaaaaaaaaaaaaaaaaa")
	if err != nil {
		f.Fatal(err)
	}
	var id identity.ID
	id[0] = 9
	for _, m := range []message{is(1), {Kind: goodbye, Sequence: 1 << 40, Digest: [32]byte{1}}, {Kind: query}} {
		f.Add(m.seal(realm, id), uint64(1), true)
	}
	f.Add([]byte{0xa1, 1, 1}, uint64(0), false)
	f.Fuzz(func(t *testing.T, b []byte, number uint64, direct bool) {
		j := newMessageFilter(realm)
		m, result := j.check(start0, id, direct, number, b)
		switch result {
		case accepted:
			if !bytes.Equal(m.seal(realm, id), b) || len(b) > maxMessage {
				t.Fatalf("%x is accepted as %+v", b, m)
			}
			if _, again := j.check(start0, id, direct, number, b); again != ignored {
				t.Fatalf("%x is accepted twice", b)
			}
		case invalid:
			if !direct {
				t.Fatalf("a forwarder is blamed for %x", b)
			}
		}
	})
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

// TestReturningPeers: a peer that comes back matters only where no other has stayed.
func TestReturningPeers(t *testing.T) {
	m, p := &Medium{events: newLRU[peerEvent, time.Time](maxOrigins)}, peerNamed(t)
	m.peers.Store(3)
	if !m.isNew("join", p) || !m.isNew("graft", p) || !m.isNew("join", peerNamed(t)) {
		t.Error("a new peer is ignored")
	}
	if m.isNew("join", p) {
		t.Error("a peer that came back is new")
	}
	m.peers.Store(1)
	if !m.isNew("join", p) {
		t.Error("the only peer is ignored")
	}
}
