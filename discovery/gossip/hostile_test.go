package gossip

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

// hostile speaks gossipsub and knows no measure.
type hostile struct {
	t    *testing.T
	ctx  context.Context
	id   identity.ID
	host *p2p.Host
	ps   *pubsub.PubSub
}

type everything struct{}

func (everything) CanSubscribe(string) bool { return true }
func (everything) FilterIncomingSubscriptions(_ peer.ID, all []*pb.RPC_SubOpts) ([]*pb.RPC_SubOpts, error) {
	return all, nil
}

func (w *town) hostile(t *testing.T, to ...*p2p.Host) *hostile {
	key := identity.New()
	h := w.host(key, nil)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	params := pubsub.DefaultGossipSubParams()
	ps, err := start(ctx, h, newPeerScores(), params, everything{}, pubsub.WithPeerOutboundQueueSize(1<<14))
	if err != nil {
		t.Fatal(err)
	}
	w.connect(h, to...)
	return &hostile{t, ctx, key.ID(), h, ps}
}

func (h *hostile) join(topic string) *pubsub.Topic {
	joined, err := h.ps.Join(topic)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := joined.Relay(); err != nil {
		h.t.Fatal(err)
	}
	return joined
}

// reaches waits until peers are in a topic.
func (h *hostile) reaches(topic *pubsub.Topic, peers int) {
	events, err := topic.EventHandler()
	if err != nil {
		h.t.Fatal(err)
	}
	defer events.Cancel()
	ctx, cancel := context.WithTimeout(h.ctx, time.Minute)
	defer cancel()
	for range peers {
		if _, err := events.NextPeerEvent(ctx); err != nil {
			h.t.Fatal(err)
		}
	}
}

// TestFlood: an attacker floods as an outsider or a member, in its own name and in those of others,
// over a forwarder and directly. The honest members find each other.
func TestFlood(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]func(w *town, h *hostile, n uint64) ([]byte, []pubsub.PubOpt){
		"an outsider": func(w *town, h *hostile, n uint64) ([]byte, []pubsub.PubOpt) {
			return is(n).seal(newRealm(t, "home"), h.id), nil
		},
		"an outsider, in many names": func(w *town, h *hostile, n uint64) ([]byte, []pubsub.PubOpt) {
			private, public, err := crypto.GenerateEd25519Key(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			p, err := peer.IDFromPublicKey(public)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Append(nil, n), []pubsub.PubOpt{pubsub.WithSecretKeyAndPeerId(private, p)}
		},
		"a member, always with something new": func(w *town, h *hostile, n uint64) ([]byte, []pubsub.PubOpt) {
			return is(n).seal(w.realm, h.id), nil
		},
		"a member, with everybody's goodbye": func(w *town, h *hostile, n uint64) ([]byte, []pubsub.PubOpt) {
			return message{Kind: goodbye, Sequence: n}.seal(w.realm, identity.New().ID()), nil
		},
		"what is too long": func(w *town, h *hostile, n uint64) ([]byte, []pubsub.PubOpt) {
			return make([]byte, 20<<10), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t, 1)
			looks := w.member(identity.New(), w.realm, w.forwarders...)
			there := identity.New()
			w.announce(w.member(there, w.realm, w.forwarders...), there)
			finds := w.find(looks)
			finds.await(time.Minute, there.ID())

			h := w.hostile(t, w.forwarders[0], looks.o.Host.(*p2p.Host))
			topic := h.join(topicOf(w.realm))
			h.reaches(topic, 2)
			flooded, began := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(flooded)
				for n := range uint64(2000) {
					if n == 500 {
						close(began)
					}
					b, opts := says(w, h, n+1)
					if err := topic.Publish(h.ctx, b, opts...); err != nil {
						return
					}
				}
			}()
			<-began
			comes := identity.New()
			w.announce(w.member(comes, w.realm, w.forwarders...), comes)
			t.Logf("an honest site is found after %v", finds.await(time.Minute, comes.ID()))
			<-flooded
			w.mu.Lock()
			defer w.mu.Unlock()
			if n := w.asked[h.id]; n > 2 {
				t.Errorf("the hostile one was asked %d times", n)
			}
		})
	}
}

// TestForeignRealm: two realms at one forwarder do not hear of each other.
func TestForeignRealm(t *testing.T) {
	t.Parallel()
	w := newTown(t, 1)
	foreign, public, own := identity.New(), identity.New(), identity.New()
	w.announce(w.member(foreign, newRealm(t, "home"), w.forwarders...), foreign)
	w.announce(w.member(public, discovery.PublicRealm(), w.forwarders...), public)
	m := w.member(identity.New(), w.realm, w.forwarders...)
	f := w.find(m)
	w.announce(w.member(own, w.realm, w.forwarders...), own)
	f.await(time.Minute, own.ID())
	for len(f.seen) > 0 {
		if s := <-f.seen; s.Site != own.ID() {
			t.Errorf("a site of another realm is found")
		}
	}
	if w.asked[foreign.ID()]+w.asked[public.ID()] > 0 {
		t.Error("a site of another realm is asked")
	}
}

// TestManyTopics: a peer with a thousand topics gets its few, and others get theirs.
func TestManyTopics(t *testing.T) {
	t.Parallel()
	w := newTown(t, 1)
	h := w.hostile(t, w.forwarders[0])
	var all []*pubsub.Topic
	for n := range 1000 {
		all = append(all, h.join(topicNamed(t, n)))
		if n == 0 {
			h.reaches(all[0], 1) // a first call with all of them would be too long
		}
	}
	key := identity.New()
	w.announce(w.member(key, w.realm, w.forwarders...), key)
	w.find(w.member(identity.New(), w.realm, w.forwarders...)).await(time.Minute, key.ID())
	forwarded := 0
	for _, topic := range all {
		forwarded += len(topic.ListPeers())
	}
	if forwarded == 0 || forwarded > 4 {
		t.Errorf("%d of its topics are forwarded", forwarded)
	}
}
