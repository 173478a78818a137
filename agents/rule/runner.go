package rule

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/device/alarm"
)

// patience is how long the other rules wait for one that waits itself. A move that is answered by then
// is made before what the others do about the same reading, as in a trial.
const patience = 100 * time.Millisecond

// runner gives rules their turns one after the other, and in the order in which they are written where
// several are due. It has one goroutine while some are, and one timer: most turns end at once, and
// each would grow a stack of its own.
type runner struct {
	world   World
	made    atomic.Int64 // rules
	mu      sync.Mutex
	entries []*runnerEntry // in their order
	last    int            // the order of the one that had its turn last
	running bool
	timer   alarm.Timer
}

// runnerEntry is a rule's place among those that have turns.
type runnerEntry struct {
	order int
	turn  func(leave func()) // calls leave, which may be called again, before it waits
	woken bool
	at    time.Time // when there is a turn although nothing woke it; zero for never
}

// join adds an entry.
func (r *runner) join(s *runnerEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearchFunc(r.entries, s, func(a, b *runnerEntry) int { return cmp.Compare(a.order, b.order) })
	r.entries = slices.Insert(r.entries, i, s)
}

// remove ends what join began. A turn may go on still.
func (r *runner) remove(s *runnerEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = slices.DeleteFunc(r.entries, func(other *runnerEntry) bool { return other == s })
	if !r.running {
		r.arm()
	}
}

// wake gives an entry a turn. It does not block.
func (r *runner) wake(s *runnerEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.woken = true
	r.begin()
}

// wakeAt replaces when an entry has a turn although nothing woke it.
func (r *runner) wakeAt(s *runnerEntry, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.at = at; !r.running {
		r.arm()
	}
}

func (r *runner) begin() {
	if !r.running {
		r.running = true
		go r.run()
	}
}

// arm sets the timer for the first entry that is due by itself.
func (r *runner) arm() {
	var first time.Time
	for _, s := range r.entries {
		if first.IsZero() || !s.at.IsZero() && s.at.Before(first) {
			first = s.at
		}
	}
	switch {
	case first.IsZero() && r.timer != nil:
		r.timer.Stop()
	case first.IsZero():
	case r.timer == nil:
		r.timer = r.world.AfterFunc(time.Until(first), func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.begin()
		})
	default:
		r.timer.Reset(time.Until(first))
	}
}

// next returns the entry that has its turn now; nil for none, and then nobody runs.
func (r *runner) next() *runnerEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first *runnerEntry
	now := time.Now() // once: an entry that is woken meanwhile waits
	for _, s := range r.entries {
		if !s.woken && (s.at.IsZero() || s.at.After(now)) {
			continue
		}
		if s.order > r.last {
			first = s
			break
		}
		if first == nil { // its turn is after those of all others that are due
			first = s
		}
	}
	if first == nil {
		r.running, r.last = false, 0
		r.arm()
		return nil
	}
	first.woken, first.at, r.last = false, time.Time{}, first.order
	return first
}

func (r *runner) run() {
	var left *time.Timer // of the turn
	leave := func() {
		if left == nil {
			left = time.AfterFunc(patience, r.run)
		}
	}
	for {
		s := r.next()
		if s == nil {
			return
		}
		left = nil
		s.turn(leave)
		if left != nil && !left.Stop() { // the others go on in another goroutine
			return
		}
	}
}
