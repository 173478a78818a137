package gossip

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
)

// answer is what a site said that was asked.
type answer struct {
	site     identity.ID
	sighting discovery.Sighting
	err      error
}

// heard is a message and whose it is.
type heard struct {
	from identity.ID
	message
}

// Find is that of discovery.Medium. It asks the members of the realm to say that they are
// there, and the site itself for the record whenever one has news.
func (m *Medium) Find(ctx context.Context, emit func(discovery.Sighting) error) error {
	sub, err := m.topic.Subscribe(pubsub.WithBufferSize(discovery.MaxSites))
	if err != nil {
		return fmt.Errorf("gossip cannot be heard: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	defer working.Wait()
	defer sub.Cancel()
	defer cancel()

	messages := make(chan heard)
	working.Go(func() { m.listen(ctx, sub, messages) })
	f := finder{
		m: m, emit: emit, room: newNewsroom(3 * m.o.Every),
		answers: make(chan answer, atOnce),
	}
	working.Go(func() { f.look(ctx) })
	return f.run(ctx, &working, messages)
}

// listen passes messages on until ctx ends. They were judged.
func (m *Medium) listen(ctx context.Context, sub *pubsub.Subscription, to chan<- heard) {
	defer close(to)
	for {
		msg, err := sub.Next(ctx)
		if err != nil {
			return
		}
		from, err := idOf(msg.GetFrom())
		if err != nil {
			continue
		}
		what, err := read(m.o.Realm, from, msg.Data)
		if err != nil {
			continue
		}
		select {
		case to <- heard{from, what}:
		case <-ctx.Done():
			return
		}
	}
}

// finder is one Find.
type finder struct {
	m       *Medium
	emit    func(discovery.Sighting) error
	room    *newsroom
	answers chan answer
	heard   atomic.Bool // somebody, since it looked last
}

// look asks who is there, now and of those who join later, again when their answers are
// passed on to us, soon where it was silent, and once more: where many came at a time, some
// answered before they were passed on, and would say nothing more for minutes.
func (f *finder) look(ctx context.Context) {
	hearing, others := f.m.hearing.listen(), f.m.looked.listen()
	defer f.m.hearing.leave(hearing)
	defer f.m.looked.leave(others)
	again, last := time.NewTimer(twice), false
	defer again.Stop()
	for ctx.Err() == nil {
		if len(f.m.topic.ListPeers()) > 0 {
			f.heard.Store(false)
			if f.m.say(ctx, message{Kind: look}) != nil {
				return // the medium is closed, and so Find ends
			}
		}
		for more := false; !more; {
			select {
			case <-again.C:
				more = last || !f.heard.Load()
				if !last {
					again.Reset(lookLast/2 + rand.N(lookLast))
				}
				last = !last
			case <-others: // all hear the answers: where many come at a time, one asks for all
				if last && f.heard.Load() {
					again.Stop()
					last = false
				}
			case <-hearing:
				again.Reset(twice + settling)
				last = false
				discovery.Sleep(ctx, settling)
				drain(hearing)
				more = true
			case <-ctx.Done():
				more = true
			}
		}
	}
}

func (f *finder) run(ctx context.Context, working *sync.WaitGroup, messages <-chan heard) error {
	due := time.NewTimer(0)
	defer due.Stop()
	if own := f.m.shown(); own.Record != nil {
		f.pass(own.Site, own)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case h, ok := <-messages:
			if !ok {
				if ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("gossip is not heard any more: %w", context.Cause(f.m.ctx))
			}
			f.hear(h)
		case a := <-f.answers:
			if s, ok := f.room.answered(time.Now(), a.site, a.sighting, a.err); ok {
				f.pass(a.site, s)
			}
		case <-due.C:
		}
		f.goodbyes()
		for {
			site, ok := f.room.ask(time.Now())
			if !ok {
				break
			}
			sequence := f.room.asking[site].sequence
			working.Go(func() { f.answers <- f.m.ask(ctx, site, sequence) })
		}
		if next := f.room.next(); !next.IsZero() {
			due.Reset(time.Until(next))
		}
	}
}

func (f *finder) hear(h heard) {
	if h.from != f.m.self && h.Kind == here {
		f.heard.Store(true)
	}
	if s, ok := f.room.hear(time.Now(), h.from, h.message); ok {
		f.pass(h.from, s)
	}
}

func (f *finder) goodbyes() {
	for _, site := range f.room.left(time.Now()) {
		_ = f.emit(discovery.Sighting{Site: site})
	}
}

// pass emits what is known of a site.
func (f *finder) pass(site identity.ID, s discovery.Sighting) {
	s.For = 3 * f.m.o.Every
	if f.emit(s) != nil {
		f.room.forget(time.Now(), site)
	}
}

// ask asks a site, or knows what it would say.
func (m *Medium) ask(ctx context.Context, site identity.ID, sequence uint64) answer {
	if site == m.self {
		if own := m.shown(); own.Record != nil {
			return answer{site, own, nil}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := m.o.Ask(ctx, site, sequence)
	return answer{site, s, err}
}
