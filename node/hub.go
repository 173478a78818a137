package node

import (
	"sync"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/agents/notify"
	"agentsite/device"
	"agentsite/device/alarm"
)

// Sink is told of each reading before anybody else can see it: the guard, which may
// have to return an output to safe. It is told of each point's readings in order.
type Sink interface{ Told(device.Reading) }

// noSink is the Sink of a hub without outputs.
type noSink struct{}

func (noSink) Told(device.Reading) {}

// Recorder keeps past readings. It is called in the sampling goroutine and must
// be quick.
type Recorder interface{ Record(device.Reading) }

// Hub keeps each point's latest reading and tells the watchers. It is safe for
// concurrent use.
type Hub struct {
	// AfterFunc makes the timers that samples wait for: Go's, unless it is set before Sample.
	AfterFunc alarm.AfterFunc

	sink     Sink
	recorder Recorder
	uri      func(address string) string // the resource of a point
	start    time.Time                   // the origin of the ticks of all samples

	mu     sync.RWMutex
	latest map[string]*slot

	watchers notify.Watchers
	readings atomic.Uint64 // taken in
}

// slot is a point's latest reading. It is changed under both locks.
type slot struct {
	putting sync.Mutex // one reading at a time; a sink that blocks holds up no other point
	entry              // also under Hub.mu
}

type entry struct {
	device.Reading
	number uint64        // of the hub's readings; 0 for none
	period time.Duration // 0 for a point that only reports changes
	good   time.Time     // of the last good reading
}

// goodUntil returns when the reading becomes stale; zero where it does not.
func (e *entry) goodUntil() time.Time {
	if e.Quality != device.Good || e.period == 0 {
		return time.Time{}
	}
	return e.At.Add(device.GoodFor(e.period))
}

func (e *entry) stale() bool {
	until := e.goodUntil()
	return !until.IsZero() && time.Since(until) > 0
}

// NewHub makes a hub. A nil sink is for a site without outputs; uri names the resource
// of a point for the watchers.
func NewHub(sink Sink, recorder Recorder, uri func(address string) string) *Hub {
	if sink == nil {
		sink = noSink{}
	}
	return &Hub{
		AfterFunc: alarm.Go, sink: sink, recorder: recorder, uri: uri, start: time.Now(),
		latest: make(map[string]*slot),
	}
}

// put takes a reading in, unless a newer one of its point is there already. One that is
// not finite is a fault of its device.
func (h *Hub) put(r device.Reading, period time.Duration) {
	if !r.Value.Finite() {
		r.Quality, r.Why = device.Bad, "the device reported NaN or Inf"
	}
	if r.Quality == device.Bad {
		r.Value = device.Value{}
	}
	s := h.slot(r.Point)
	s.putting.Lock()
	defer s.putting.Unlock()
	before := s.entry
	if r.At.Before(before.At) {
		return
	}
	number := h.readings.Add(1)
	h.sink.Told(r)
	h.mu.Lock()
	s.entry = entry{r, number, period, before.good}
	if r.Quality == device.Good {
		s.good = r.At
	}
	h.mu.Unlock()
	h.recorder.Record(r)
	if before.Point == "" || before.Value != r.Value || before.Quality != r.Quality || period == 0 || before.stale() {
		h.Announce(agents.Change{URI: h.uri(r.Point)})
	}
}

func (h *Hub) slot(address string) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.latest[address]
	if s == nil {
		s = new(slot)
		h.latest[address] = s
	}
	return s
}

// Latest returns a point's last reading, stale when it should have had a
// successor by now.
func (h *Hub) Latest(address string) (device.Reading, bool) {
	r := h.entry(address)
	return r.Reading, r.Point != ""
}

// entry is Latest with what else is known of the reading. One that is stale does not become so.
func (h *Hub) entry(address string) (s entry) {
	h.mu.RLock()
	if held := h.latest[address]; held != nil {
		s = held.entry
	}
	h.mu.RUnlock()
	if s.stale() {
		s.Quality, s.Why = device.Stale, "the device has not been read for too long"
	}
	return s
}

// Forget drops the latest readings of points that are gone, or are read otherwise
// from now on.
func (h *Hub) Forget(addresses ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range addresses {
		delete(h.latest, a)
	}
}

// Counts reports how many readings came in, how many changes were coalesced for
// slow watchers, and how many watchers there are.
func (h *Hub) Counts() (readings, coalesced uint64, watchers int) {
	watchers, coalesced = h.watchers.Counts()
	return h.readings.Load(), coalesced, watchers
}

// Announce tells the watchers of a change.
func (h *Hub) Announce(c agents.Change) { h.watchers.Announce(c) }

// On makes wake be called when something has changed of which, until leave is called. It must neither
// block nor call the hub.
func (h *Hub) On(which agents.Change, wake func()) (leave func()) {
	return h.watchers.JoinFunc(which, nil, wake).Leave
}

// GoodFor returns for how long a reading of a point is good without a successor, as far as the
// point was read; 0 for ever.
func (h *Hub) GoodFor(address string) time.Duration {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if s := h.latest[address]; s != nil {
		return device.GoodFor(s.period)
	}
	return 0
}
