package things

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
)

// The types of events.
const (
	Created = "thing_created"
	Updated = "thing_updated"
	Deleted = "thing_deleted"
)

// Event is a change of a description.
type Event struct {
	ID    string // of the event
	Type  string
	Thing string // the ID of the description

	by     string
	number uint64
}

const maxEvents = 128

// ring holds the last events.
type ring struct {
	start   string // of the IDs of events: those of an earlier start are not known any more
	last    uint64
	kept    []Event
	changed chan struct{} // closed, and replaced, with each event
}

func newRing() ring { return ring{start: rand.Text()[:8], changed: make(chan struct{})} }

func (r *ring) add(kind string, e *entry) {
	r.last++
	if len(r.kept) == maxEvents {
		r.kept = r.kept[1:]
	}
	r.kept = append(r.kept, Event{r.start + "-" + strconv.FormatUint(r.last, 10), kind, e.ID, e.By, r.last})
	close(r.changed)
	r.changed = make(chan struct{})
}

// after returns the number of the event with an ID; that of the last one where it is not known.
func (r *ring) after(id string) uint64 {
	text, ok := strings.CutPrefix(id, r.start+"-")
	n, err := strconv.ParseUint(text, 10, 64)
	if !ok || err != nil || n > r.last {
		return r.last
	}
	return n
}

// Watch calls emit with each event, until ctx ends or emit fails: first with the kept events since
// the ID after, then with new ones. begin is called once no event is missed any more; a slow
// watcher misses some. caller is called before each event and returns the watcher with its current
// permission.
func (s *Store) Watch(ctx context.Context, after string, begin func(), caller func() (Caller, error), emit func(Event) error) error {
	s.mu.Lock()
	seen := s.events.after(after)
	s.mu.Unlock()
	begin()
	for {
		s.mu.Lock()
		kept, changed := s.events.kept, s.events.changed
		s.mu.Unlock()
		for _, e := range kept {
			if e.number <= seen {
				continue
			}
			seen = e.number
			c, err := caller()
			if err == nil && c.sees(e.by) {
				err = emit(e)
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
