// Package discoverytest has a medium in memory, for tests, and the conformance suite
// that it and every real medium passes. It holds a medium to what package discovery
// writes down, and to nothing else.
package discoverytest

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"agentsite/discovery"
)

const (
	again = time.Minute     // after which what is announced is seen again
	holds = 2 * time.Minute // what was seen, if nothing follows
)

// Air is a medium on which announcements are found at once. It can be made by new(Air). Send adds
// what a hostile or dying neighbour would send.
type Air struct {
	mu        sync.Mutex // held while emitting
	announced map[*discovery.Signed]bool
	finders   map[*finder]bool
}

type finder struct {
	emit func(discovery.Sighting) error
}

var _ discovery.Medium = (*Air)(nil)

// Announce is that of discovery.Medium.
func (a *Air) Announce(ctx context.Context, record *discovery.Signed) error {
	a.mu.Lock()
	if a.announced == nil {
		a.announced = make(map[*discovery.Signed]bool)
	}
	a.announced[record] = true
	a.tell(sighting(record))
	a.mu.Unlock()

	<-ctx.Done()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.announced, record)
	a.tell(discovery.Sighting{Site: record.Site})
	return nil
}

// Find is that of discovery.Medium.
func (a *Air) Find(ctx context.Context, emit func(discovery.Sighting) error) error {
	f := &finder{emit}
	a.mu.Lock()
	if a.finders == nil {
		a.finders = make(map[*finder]bool)
	}
	a.finders[f] = true
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.finders, f)
	}()
	every := time.NewTicker(again)
	defer every.Stop()
	for {
		a.mu.Lock()
		for record := range a.announced {
			_ = emit(sighting(record))
		}
		a.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

// Send has all who look see a sighting, once.
func (a *Air) Send(s discovery.Sighting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell(s)
}

func (a *Air) tell(s discovery.Sighting) {
	for f := range a.finders {
		_ = f.emit(s)
	}
}

func sighting(record *discovery.Signed) discovery.Sighting {
	return discovery.Sighting{
		Site: record.Site, Record: record.Bytes(), For: holds,
		At: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, record.Site[0]})},
	}
}
