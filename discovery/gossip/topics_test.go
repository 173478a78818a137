package gossip

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/node/quota"

	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"
)

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
	// Forwarded topics stay, and of the others those with the most subscribers come first.
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

// apart gives each peer an address of its own.
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

// TestForwardedTopicsStay: strangers with many keys on few addresses, all with the same topics,
// evict no served realm, and do not keep another from getting a slot.
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

// TestTopicChangesAreShared: a peer that subscribes to ever new topics does not keep others from
// theirs.
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

// TestTopicLimiter: messages from others do not delay a member's own, until they are very many.
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
