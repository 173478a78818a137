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

// answer is a site's answer to a request for its record.
type answer struct {
	site     identity.ID
	sighting discovery.Sighting
	err      error
}

// received is a message and its origin.
type received struct {
	from identity.ID
	message
}

// Find implements discovery.Medium. It queries the members of the realm, and fetches the
// record from a site that announces a new one.
func (m *Medium) Find(ctx context.Context, emit func(discovery.Sighting) error) error {
	sub, err := m.topic.Subscribe(pubsub.WithBufferSize(discovery.MaxSites))
	if err != nil {
		return fmt.Errorf("cannot subscribe to gossip (%w)", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	defer working.Wait()
	defer sub.Cancel()
	defer cancel()

	messages := make(chan received)
	working.Go(func() { m.listen(ctx, sub, messages) })
	f := finder{
		m: m, emit: emit, tracker: newRecordTracker(3 * m.o.Every),
		answers: make(chan answer, maxAsking),
	}
	working.Go(func() { f.sendQueries(ctx) })
	return f.run(ctx, &working, messages)
}

// listen passes validated messages on until ctx ends.
func (m *Medium) listen(ctx context.Context, sub *pubsub.Subscription, to chan<- received) {
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
		what, err := decode(m.o.Realm, from, msg.Data)
		if err != nil {
			continue
		}
		select {
		case to <- received{from, what}:
		case <-ctx.Done():
			return
		}
	}
}

// finder is one call of Find.
type finder struct {
	m       *Medium
	emit    func(discovery.Sighting) error
	tracker *recordTracker
	answers chan answer
	heard   atomic.Bool // an announcement since the last query
}

// sendQueries sends queries until ctx ends. It sends one at once, when peers join, when their
// messages are forwarded here, soon after a query without an answer, and once more. When many peers
// join at a time, some answer before their messages are forwarded, and would be silent for minutes.
func (f *finder) sendQueries(ctx context.Context) {
	hearing, cancel := f.m.grafted.Subscribe()
	defer cancel()
	others, cancel := f.m.queried.Subscribe()
	defer cancel()
	again, last := time.NewTimer(repeatDelay), false
	defer again.Stop()
	for ctx.Err() == nil {
		if len(f.m.topic.ListPeers()) > 0 {
			f.heard.Store(false)
			if f.m.send(ctx, message{Kind: query}) != nil {
				return // the medium is closed, and so Find ends
			}
		}
		for more := false; !more; {
			select {
			case <-again.C:
				more = last || !f.heard.Load()
				if !last {
					again.Reset(lastQueryDelay/2 + rand.N(lastQueryDelay))
				}
				last = !last
			case <-others: // all hear the answers: where many come at a time, one asks for all
				if last && f.heard.Load() {
					again.Stop()
					last = false
				}
			case <-hearing:
				again.Reset(repeatDelay + joinDelay)
				last = false
				discovery.Sleep(ctx, joinDelay)
				drain(hearing)
				more = true
			case <-ctx.Done():
				more = true
			}
		}
	}
}

func (f *finder) run(ctx context.Context, working *sync.WaitGroup, messages <-chan received) error {
	due := time.NewTimer(0)
	defer due.Stop()
	if own := f.m.getOwn(); own.Record != nil {
		f.emitSighting(own.Site, own)
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
				return fmt.Errorf("the gossip has ended (%w)", context.Cause(f.m.ctx))
			}
			f.handle(h)
		case a := <-f.answers:
			if s, ok := f.tracker.handleAnswer(time.Now(), a.site, a.sighting, a.err); ok {
				f.emitSighting(a.site, s)
			}
		case <-due.C:
		}
		f.emitGoodbyes()
		for {
			site, ok := f.tracker.nextSite(time.Now())
			if !ok {
				break
			}
			sequence := f.tracker.asking[site].sequence
			working.Go(func() { f.answers <- f.m.ask(ctx, site, sequence) })
		}
		if next := f.tracker.nextDue(); !next.IsZero() {
			due.Reset(time.Until(next))
		}
	}
}

func (f *finder) handle(h received) {
	if h.from != f.m.self && h.Kind == alive {
		f.heard.Store(true)
	}
	if s, ok := f.tracker.handle(time.Now(), h.from, h.message); ok {
		f.emitSighting(h.from, s)
	}
}

func (f *finder) emitGoodbyes() {
	for _, site := range f.tracker.expiredGoodbyes(time.Now()) {
		_ = f.emit(discovery.Sighting{Site: site})
	}
}

// emitSighting emits a site's newest record.
func (f *finder) emitSighting(site identity.ID, s discovery.Sighting) {
	s.For = 3 * f.m.o.Every
	if f.emit(s) != nil {
		f.tracker.reject(time.Now(), site)
	}
}

// ask fetches a site's record, or returns this host's own.
func (m *Medium) ask(ctx context.Context, site identity.ID, sequence uint64) answer {
	if site == m.self {
		if own := m.getOwn(); own.Record != nil {
			return answer{site, own, nil}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s, err := m.o.Ask(ctx, site, sequence)
	return answer{site, s, err}
}
