package guard

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// hardware is a fake actuator. It records calls and the real values of its points. A point has its
// value at the end of a slow write, and may have it after a write that hung.
type hardware struct {
	mu    sync.Mutex
	calls []call
	at    map[string]device.Value
	busy  bool // a write is under way; two at once are a defect of the guard
	twice bool

	delay time.Duration   // how long a write takes
	fails int             // how many writes fail
	why   error           // of those that fail; errLoose when nil
	hangs map[string]bool // points whose writes last until ctx ends
	deaf  time.Duration   // how long the next write does not come back, whatever its ctx says
}

type call struct {
	when  time.Time
	point string
	v     device.Value
	err   error
}

func (h *hardware) Apply(ctx context.Context, point string, v device.Value) error {
	h.mu.Lock()
	h.twice = h.twice || h.busy
	h.busy = true
	when, delay, hang, deaf := time.Now(), h.delay, h.hangs[point], h.deaf
	h.deaf = 0
	h.mu.Unlock()
	time.Sleep(deaf)

	var err error
	switch {
	case hang:
		<-ctx.Done()
		err = ctx.Err()
	case delay > 0:
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-timer.C:
		}
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy = false
	if err == nil && h.fails > 0 {
		h.fails--
		if err = h.why; err == nil {
			err = errLoose
		}
	}
	if h.at == nil {
		h.at = make(map[string]device.Value)
	}
	if err == nil {
		h.at[point] = v
	}
	h.calls = append(h.calls, call{when, point, v, err})
	return err
}

func (h *hardware) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func (h *hardware) where(point string) device.Value {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at[point]
}

// told returns the calls since the last time and forgets them.
func (h *hardware) told() []call {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

func (h *hardware) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.twice {
		t.Error("two writes to one device at the same time")
	}
}

// armed is a latch that allows moves.
func armed(t testing.TB) Latch {
	t.Helper()
	dir := t.TempDir()
	l := Latch{File: filepath.Join(dir, "armed"), Flag: filepath.Join(dir, "run", "stopped")}
	if err := l.Reset(); err != nil {
		t.Fatal(err)
	}
	return l
}

func switchOf(name string) Policy {
	return Policy{Output: name, Kind: device.KindSwitch, Safe: off, MaxOn: DefaultMaxOn, Rest: DefaultRest}
}

// rig is a guard that runs over a room (heater, vent, valve) and a pump on a
// device of its own.
type rig struct {
	*Guard
	room, pump *hardware
	latch      Latch
	end        context.CancelFunc
	ended      chan error
}

const pump = "garden/pump"

func newRig(t *testing.T, latch Latch) *rig {
	t.Helper()
	r := &rig{room: &hardware{}, pump: &hardware{}, latch: latch, ended: make(chan error, 1)}
	g, err := New([]Actuated{
		{Actuator: r.room, Policies: policies()},
		{Actuator: r.pump, Policies: []Policy{switchOf(pump)}},
	}, latch)
	if err != nil {
		t.Fatal(err)
	}
	r.Guard = g
	return r
}

func (r *rig) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r.end = cancel
	go func() { r.ended <- r.Run(ctx) }()
}

// stop ends Run and returns what it said.
func (r *rig) stop(t *testing.T) error {
	t.Helper()
	r.end()
	err := <-r.ended
	r.room.check(t)
	r.pump.check(t)
	return err
}

// ready is a rig that runs, at safe and rested.
func ready(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, armed(t))
	r.run(t)
	if err := r.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(DefaultRest)
	synctest.Wait()
	r.room.told()
	r.pump.told()
	return r
}

func (r *rig) stopped(t *testing.T) {
	t.Helper()
	if err := r.stop(t); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func (r *rig) move(t *testing.T, holder, output string, v device.Value, length time.Duration) Status {
	t.Helper()
	s, err := r.Move(t.Context(), holder, output, v, length)
	if err != nil {
		t.Fatalf("%s moving %s to %v: %v", holder, output, v, err)
	}
	return s
}

func (r *rig) allSafe(t *testing.T) {
	t.Helper()
	for point, v := range map[string]device.Value{"heater": off, "vent": device.Number(0), "valve": on} {
		if got := r.room.where(point); got != v {
			t.Errorf("%s is at %v", point, got)
		}
	}
	if got := r.pump.where("pump"); got != off {
		t.Errorf("pump is at %v", got)
	}
}

func since(t *testing.T, start time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(start); got != want {
		t.Errorf("after %v, want %v", got, want)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func (r *rig) allSafeBut(t *testing.T, point string) {
	t.Helper()
	for _, s := range r.Status() {
		if !s.Safe && !strings.HasSuffix(s.Output, "/"+point) {
			t.Errorf("%+v", s)
		}
	}
}

func faultOf(err error) device.FaultKind {
	if err == nil {
		return ""
	}
	return device.AsFault(err).Kind
}

// asked is how often the emergency stop was asked for.
func (r *rig) asked() uint32 {
	_, _, stops := r.State()
	return stops
}
