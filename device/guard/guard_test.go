package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// hardware is a fake actuator. It keeps what it was told and where its points
// really are: a point has its value at the end of a write that took its time,
// and may have it after one that hung.
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

func TestSafeBeforeSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, armed(t))
		r.room.delay = 300 * time.Millisecond
		time.Sleep(time.Hour)
		if r.room.told() != nil || r.pump.told() != nil {
			t.Error("something moved before Run")
		}
		wantFault(t, r.Settle(within(t, time.Second)), device.UnknownOutcome, heater)
		_, err := r.Move(t.Context(), "ann", heater, on, 0)
		wantFault(t, err, device.Unsafe, "on its way to safe")

		start := time.Now()
		r.run(t)
		if err := r.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		since(t, start, 900*time.Millisecond)
		r.allSafe(t)
		for _, s := range r.Status() {
			if !s.Safe || s.Rest <= 0 || s.Fault != "" {
				t.Errorf("%+v", s)
			}
		}
		_, err = r.Move(t.Context(), "ann", heater, on, 0)
		wantFault(t, err, device.Unsafe, "rests")
		time.Sleep(DefaultRest)
		r.move(t, "ann", heater, on, 0)
		r.stopped(t)
	})
}

func TestMoveReturnsOnceTheHardwareHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.room.set(func() { r.room.delay = 300 * time.Millisecond })
		start := time.Now()
		s := r.move(t, "ann", heater, on, time.Minute)
		since(t, start, 300*time.Millisecond)
		if s.Value != on || s.Safe || s.Holder != "ann" || s.Left != time.Minute-300*time.Millisecond {
			t.Errorf("%+v", s)
		}
		if r.room.where("heater") != on {
			t.Error("the hardware does not have it")
		}
		start = time.Now()
		s, err := r.Release(t.Context(), heater)
		since(t, start, 300*time.Millisecond)
		if err != nil || !s.Safe || s.Holder != "" || r.room.where("heater") != off {
			t.Errorf("%+v, %v", s, err)
		}

		// A caller who does not wait is told so; the lease stands.
		_, err = r.Move(within(t, 100*time.Millisecond), "ann", heater, on, time.Minute)
		wantFault(t, err, device.UnknownOutcome, heater, "read it")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v has lost its cause", err)
		}
		time.Sleep(time.Second)
		if s := r.Status()[0]; s.Value != on || s.Holder != "ann" {
			t.Errorf("%+v", s)
		}
		r.stopped(t)
	})
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		start := time.Now()
		r.move(t, "ann", heater, on, 5*time.Second)
		r.move(t, "bob", vent, device.Number(30), 0)
		r.room.told()

		time.Sleep(5*time.Second - 1)
		synctest.Wait()
		if calls := r.room.told(); calls != nil {
			t.Errorf("too early: %v", calls)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if calls := r.room.told(); len(calls) != 1 || calls[0].point != "heater" || calls[0].v != off {
			t.Errorf("at the end: %v", calls)
		} else if got := calls[0].when.Sub(start); got != 5*time.Second {
			t.Errorf("safe after %v", got)
		}
		time.Sleep(time.Hour)
		calls := r.room.told()
		if len(calls) != 1 || calls[0].point != "vent" || calls[0].when.Sub(start) != 30*time.Second {
			t.Errorf("the other: %v", calls)
		}
		r.allSafe(t)
		r.stopped(t)
	})
}

// A lease that is over does not stand in the way of the next holder.
func TestMoveAtTheEndOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", heater, on, 5*time.Second)
		_, err := r.Move(t.Context(), "bob", heater, on, 0)
		wantFault(t, err, device.Busy, "held by ann for another 5s")
		time.Sleep(5 * time.Second)
		if s := r.move(t, "bob", heater, on, 0); s.Holder != "bob" {
			t.Errorf("%+v", s)
		}
		r.stopped(t)
	})
}

// Not even when nobody has come round to ending it.
func TestMoveTicksFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, armed(t)) // never runs
		settle(r.m, 0)
		time.Sleep(DefaultRest)
		mustMove(t, r.m, r.now(), "ann", heater, on, 5*time.Second)
		time.Sleep(5 * time.Second)
		_, err := r.Move(within(t, time.Second), "bob", heater, on, 0)
		wantFault(t, err, device.UnknownOutcome)
		if s := r.Status()[0]; s.Holder != "bob" {
			t.Errorf("%+v", s)
		}
	})
}

func TestRenewalKeepsItOnUntilMaxOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		start := time.Now()
		var refused error
		for refused == nil {
			_, refused = r.Move(t.Context(), "ann", vent, device.Number(45), 30*time.Second)
			if refused == nil {
				time.Sleep(20 * time.Second)
				synctest.Wait()
			}
		}
		since(t, start, 2*time.Minute)
		wantFault(t, refused, device.Unsafe, "rests", "5s")
		calls := r.room.told()
		if len(calls) != 2 || calls[0].v != device.Number(45) || calls[1].v != device.Number(0) || calls[1].when.Sub(start) != 2*time.Minute {
			t.Errorf("renewals wrote %v", calls)
		}
		time.Sleep(5 * time.Second)
		r.move(t, "ann", vent, device.Number(45), 0)
		r.stopped(t)
	})
}

func TestHangingDeviceDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		start := time.Now()
		r.move(t, "ann", heater, on, 3*time.Second)
		r.pump.set(func() { r.pump.hangs = map[string]bool{"pump": true} })
		time.Sleep(2 * time.Second)

		hung := make(chan error)
		go func() {
			_, err := r.Move(t.Context(), "ann", pump, on, time.Minute)
			hung <- err
		}()
		time.Sleep(1 * time.Second)
		synctest.Wait()
		if r.room.where("heater") != off {
			t.Error("the heater is on after its lease")
		}
		if calls := r.room.told(); calls[len(calls)-1].when.Sub(start) != 3*time.Second {
			t.Errorf("the heater went off late: %v", calls)
		}
		r.move(t, "ann", vent, device.Number(1), 0)
		wantFault(t, <-hung, device.Offline, pump, "driven to safe", context.DeadlineExceeded.Error())
		since(t, start, 2*time.Second+applyTimeout)
		if s := r.Status()[3]; s.Safe || !s.Value.IsZero() || s.Holder != "" || s.Fault == "" {
			t.Errorf("%+v", s)
		}
		r.pump.set(func() { r.pump.hangs = nil })
		time.Sleep(retryLast + applyTimeout)
		r.allSafeBut(t, "vent")
		r.stopped(t)
	})
}

func (r *rig) allSafeBut(t *testing.T, point string) {
	t.Helper()
	for _, s := range r.Status() {
		if !s.Safe && !strings.HasSuffix(s.Output, "/"+point) {
			t.Errorf("%+v", s)
		}
	}
}

func TestFailingWrites(t *testing.T) {
	for _, fails := range []int{1, 4, 12} {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := ready(t)
				r.pump.set(func() { r.pump.fails = fails })
				_, err := r.Move(t.Context(), "ann", pump, on, time.Minute)
				if err == nil {
					t.Error("it moved")
				}
				if fails > 1 { // after one it may have recovered at once, see below
					wantFault(t, err, device.Offline, pump, "driven to safe", errLoose.Error())
					_, err = r.Move(t.Context(), "ann", pump, on, time.Minute)
					wantFault(t, err, device.Offline, pump)
				}
				r.move(t, "ann", heater, on, 0) // nobody else suffers

				if err := r.Settle(t.Context()); err != nil {
					t.Fatal(err)
				}
				calls := r.pump.told()
				if len(calls) != fails+1 || calls[0].v != on {
					t.Fatalf("%d calls: %v", len(calls), calls)
				}
				// One wake that was already on its way may come before the first pause.
				pause := retryFirst
				for k, c := range calls[1:] {
					if c.v != off {
						t.Errorf("try %d wrote %v", k, c.v)
					}
					got := c.when.Sub(calls[k].when)
					if got == 0 && k == 0 {
						pause = 2 * retryFirst
						continue
					}
					if got != pause {
						t.Errorf("pause %d is %v, want %v", k, got, pause)
					}
					pause = min(2*pause, retryLast)
				}
				if calls[fails].err != nil || r.pump.where("pump") != off {
					t.Error("it is not at safe")
				}
				if s := r.Status()[3]; !s.Safe || s.Fault != "" {
					t.Errorf("%+v", s)
				}
				r.move(t, "ann", pump, on, 0)

				// The pauses are short again the next time.
				r.pump.told()
				r.pump.set(func() { r.pump.fails = 1 })
				start := time.Now()
				_, _ = r.Release(t.Context(), pump)
				if err := r.Settle(t.Context()); err != nil {
					t.Error(err)
				}
				if got := time.Since(start); got > retryFirst {
					t.Errorf("safe after %v", got)
				}
				r.stopped(t)
			})
		})
	}
}

func TestStopIsImmediateAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", heater, on, 0)
		r.move(t, "bob", vent, device.Number(45), 0)
		r.move(t, "cid", valve, off, Unlimited)
		r.move(t, "dee", pump, on, 0)
		start := time.Now()
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		since(t, start, 0)
		r.allSafe(t)
		if _, err := os.Stat(r.latch.File); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the armed file: %v", err)
		}
		if _, err := os.Stat(r.latch.Flag); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the flag is for read-only disks: %v", err)
		}
		refuses(t, r)
		if err := r.Stop(t.Context()); err != nil {
			t.Errorf("a second stop: %v", err)
		}
		if _, err := r.Release(t.Context(), heater); err != nil {
			t.Errorf("a release while stopped: %v", err)
		}
		r.stopped(t)

		r2 := newRig(t, r.latch) // after a restart
		r2.run(t)
		time.Sleep(time.Hour)
		refuses(t, r2)
		r2.allSafe(t)
		if err := r2.Reset(r2.asked()); err != nil {
			t.Fatal(err)
		}
		if r2.Stopped() || !r2.latch.Armed() {
			t.Error("a reset does not arm")
		}
		time.Sleep(time.Hour)
		r2.allSafe(t) // nothing comes back by itself
		r2.move(t, "ann", heater, on, 0)
		r2.stopped(t)

		r3 := newRig(t, r.latch)
		if r3.Stopped() {
			t.Error("the reset was forgotten")
		}
	})
}

func refuses(t *testing.T, r *rig) {
	t.Helper()
	if !r.Stopped() {
		t.Error("it is not stopped")
	}
	_, err := r.Move(t.Context(), "ann", heater, on, 0)
	wantFault(t, err, device.Unsafe, "emergency stop", "agentsite reset")
}

// A disk that cannot forget a file, for root too: it is a folder that is not empty.
func stubborn(t *testing.T, file string) {
	t.Helper()
	if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "stone"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err == nil {
		t.Fatal("the file can be removed after all")
	}
}

func TestStopOnReadOnlyDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		stubborn(t, r.latch.File)
		r.move(t, "ann", heater, on, 0)
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.allSafe(t)
		if _, err := os.Stat(r.latch.Flag); err != nil {
			t.Errorf("the flag: %v", err)
		}
		r.stopped(t)

		r = newRig(t, r.latch)
		r.run(t)
		time.Sleep(time.Hour)
		refuses(t, r)

		// A reset that fails resets nothing, over a restart either.
		stubborn(t, r.latch.Flag)
		wantFault(t, r.Reset(r.asked()), device.Unavailable, "stays")
		refuses(t, r)
		if !newRig(t, r.latch).Stopped() {
			t.Error("a failed reset would be a reset after a restart")
		}

		// The disk has the armed file, and only the flag goes.
		if err := errors.Join(os.RemoveAll(r.latch.Flag), r.latch.raise(), r.Reset(r.asked())); err != nil {
			t.Fatal(err)
		}
		r.move(t, "ann", heater, on, 0)
		if newRig(t, r.latch).Stopped() {
			t.Error("the reset was forgotten")
		}
		r.stopped(t)
	})
}

func TestStopThatARestartForgets(t *testing.T) {
	for _, flag := range []string{"", "under a file"} {
		t.Run("flag "+flag, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := ready(t)
				r.latch.Flag = ""
				if flag != "" {
					file := filepath.Join(t.TempDir(), "file")
					if err := os.WriteFile(file, nil, 0o600); err != nil {
						t.Fatal(err)
					}
					r.latch.Flag = filepath.Join(file, "stopped")
				}
				r.Guard.latch = r.latch
				if err := os.Remove(r.latch.File); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Join(r.latch.File, "stone"), 0o700); err != nil {
					t.Fatal(err)
				}
				r.move(t, "ann", heater, on, 0)
				err := r.Stop(t.Context())
				if err == nil || !strings.Contains(err.Error(), "a restart would forget") {
					t.Errorf("Stop: %v", err)
				}
				r.allSafe(t)
				refuses(t, r)
				r.stopped(t)
			})
		})
	}
}

// No data folder, or one that cannot be looked into, means stopped.
func TestLatchWhenInDoubt(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]Latch{
		"no file":           {File: filepath.Join(dir, "armed")},
		"no folder":         {File: filepath.Join(dir, "gone", "armed"), Flag: filepath.Join(dir, "gone", "stopped")},
		"no file at all":    {},
		"unreadable file":   {File: filepath.Join(file, "armed")},
		"unreadable flag":   {File: file, Flag: filepath.Join(file, "stopped")},
		"a flag and a file": {File: file, Flag: dir},
	} {
		if l.Armed() {
			t.Errorf("%s: armed", name)
		}
	}
	l := Latch{File: filepath.Join(dir, "gone", "armed")}
	if err := l.Stop(); err == nil || !strings.Contains(err.Error(), "a restart would forget it") {
		t.Errorf("a stop that nothing remembers: %v", err)
	}
	if err := l.Reset(); err == nil {
		t.Error("a reset without a folder says that it worked")
	}
}

// A stop outlives the folder that it is kept in: where that is gone, and where it
// is there again without what was in it.
func TestStopOutlivesTheFolder(t *testing.T) {
	for name, again := range map[string]bool{"gone": false, "made again": true} {
		for place, flag := range map[string]string{"elsewhere": "run/stopped", "in the folder": "data/stopped"} {
			t.Run(name+", the flag "+place, func(t *testing.T) {
				dir := t.TempDir()
				data := filepath.Join(dir, "data")
				l := Latch{File: filepath.Join(data, "armed"), Flag: filepath.Join(dir, flag)}
				mkdir := func() {
					if err := os.MkdirAll(data, 0o700); err != nil {
						t.Fatal(err)
					}
				}
				mkdir()
				if err := l.Arm(); err != nil || !l.Armed() {
					t.Fatal(err)
				}
				if err := os.RemoveAll(data); err != nil {
					t.Fatal(err)
				}
				if again {
					mkdir()
				}
				if err := l.Stop(); err != nil {
					t.Fatal(err)
				}
				mkdir()
				if err := l.Arm(); err != nil || l.Armed() { // a first start, as far as it can see
					t.Errorf("a restart forgets the stop, %v", err)
				}
				if err := l.Reset(); err != nil || !l.Armed() {
					t.Errorf("the owner's reset: %v", err)
				}
			})
		}
	}
}

func TestStopSaysWhatIsNotSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", heater, on, 0)
		r.move(t, "ann", pump, on, 0)
		r.pump.set(func() { r.pump.hangs = map[string]bool{"pump": true} })
		start := time.Now()
		err := r.Stop(within(t, 3*time.Second))
		since(t, start, 3*time.Second)
		wantFault(t, err, device.UnknownOutcome, pump)
		if strings.Contains(err.Error(), heater) {
			t.Errorf("the heater is safe, but: %v", err)
		}
		if calls := r.room.told(); !calls[len(calls)-1].when.Equal(start) {
			t.Errorf("the heater waited for the pump: %v", calls)
		}
		if r.latch.Armed() {
			t.Error("the latch waited for the pump")
		}
		r.pump.set(func() { r.pump.hangs = nil })
		r.stopped(t)
	})
}

// Callers are shown one fault, so it says all.
func TestStopSaysItInOneFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", heater, on, 0)
		r.move(t, "ann", pump, on, 0)
		r.pump.set(func() { r.pump.hangs = map[string]bool{"pump": true} })
		r.room.set(func() { r.room.hangs = map[string]bool{"heater": true} })
		r.Guard.latch = Latch{File: filepath.Join(t.TempDir(), "gone", "armed")}
		wantFault(t, r.Stop(within(t, 3*time.Second)), device.UnknownOutcome, pump, heater, "a restart would forget it")
		r.pump.set(func() { r.pump.hangs = nil })
		r.room.set(func() { r.room.hangs = nil })
		if err := r.Settle(t.Context()); err != nil {
			t.Error(err)
		}
		wantFault(t, r.Stop(t.Context()), device.Unavailable, "a restart would forget it")
		r.stopped(t)
	})
}

// What is being written when safe is asked for is followed by safe before anybody
// is told that it is safe.
func TestSafeWhileAWriteIsInFlight(t *testing.T) {
	ways := map[string]func(t *testing.T, r *rig) error{
		"stop":    func(t *testing.T, r *rig) error { return r.Stop(t.Context()) },
		"release": func(t *testing.T, r *rig) error { _, err := r.Release(t.Context(), heater); return err },
		"move": func(t *testing.T, r *rig) error {
			_, err := r.Move(t.Context(), "bob", heater, off, 0)
			return err
		},
		"end of Run": func(t *testing.T, r *rig) error { return r.stop(t) },
		"settle": func(t *testing.T, r *rig) error {
			r.update(func(Time) error { return r.m.Release(heater) })
			return r.Settle(t.Context())
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := ready(t)
				r.room.set(func() { r.room.delay = time.Second })
				moved := make(chan error)
				start := time.Now()
				go func() {
					_, err := r.Move(t.Context(), "ann", heater, on, time.Minute)
					moved <- err
				}()
				time.Sleep(500 * time.Millisecond)
				go func() { wantFault(t, <-moved, device.Unavailable, "elsewhere") }()
				if err := way(t, r); err != nil {
					t.Error(err)
				}
				since(t, start, 2*time.Second)
				if got := r.room.where("heater"); got != off {
					t.Errorf("the heater is at %v", got)
				}
				if s := r.Status()[0]; !s.Safe {
					t.Errorf("%+v", s)
				}
				if name != "end of Run" {
					r.stopped(t)
				}
				r.allSafe(t)
			})
		})
	}
}

func TestEndOfRunParks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.room.set(func() { r.room.delay = 100 * time.Millisecond })
		r.move(t, "ann", heater, on, 0)
		r.move(t, "ann", valve, off, Unlimited)
		r.move(t, "ann", pump, on, 0)
		start := time.Now()
		r.stopped(t)
		since(t, start, 200*time.Millisecond)
		r.allSafe(t)
		_, err := r.Move(t.Context(), "ann", heater, on, 0)
		wantFault(t, err, device.Unavailable, "stopping")
		if r.Stopped() || !r.latch.Armed() {
			t.Error("ending is not an emergency")
		}
	})
}

func TestEndOfRunReportsTheUnconfirmed(t *testing.T) {
	for _, hang := range []bool{true, false} {
		t.Run(fmt.Sprintf("hang %v", hang), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := ready(t)
				r.move(t, "ann", heater, on, 0)
				r.move(t, "ann", pump, on, 0)
				r.pump.set(func() {
					if r.pump.fails = 1000; hang {
						r.pump.hangs = map[string]bool{"pump": true}
					}
				})
				start := time.Now()
				err := r.stop(t)
				since(t, start, parkTimeout)
				wantFault(t, err, device.UnknownOutcome, pump)
				if strings.Contains(err.Error(), heater) {
					t.Errorf("the heater is safe, but: %v", err)
				}
				if r.room.where("heater") != off {
					t.Error("the heater is on")
				}
			})
		})
	}
}

// A Run that is over before it began still drives everything to safe.
func TestRunWithADeadContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, armed(t))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		r.allSafe(t)
	})
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, armed(t))
		var mu sync.Mutex
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan error)
		go func() {
			watched <- r.Watch(ctx, func(d device.Reading) {
				if !d.At.Equal(time.Now()) {
					t.Errorf("%+v is not of now", d)
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, strings.Join(strings.Fields(fmt.Sprint(d.Point, " ", d.Value, " ", d.Quality, " ", d.Why)), " "))
			})
		}()
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n got %q\nwant %q", when, got, want)
			}
			got = nil
		}
		const unknown = " - fault not known to be at its value yet"
		expect("before Run", heater+unknown, vent+unknown, valve+unknown, pump+unknown)
		r.run(t)
		expect("at first", heater+" off good", vent+" 0 good", valve+" on good", pump+" off good")
		time.Sleep(DefaultRest)
		expect("resting")
		r.move(t, "ann", heater, on, time.Minute)
		expect("moved", heater+" on good")
		r.move(t, "ann", heater, on, time.Minute)
		expect("renewed")
		time.Sleep(time.Minute)
		expect("expired", heater+" off good")
		r.pump.set(func() { r.pump.fails = 1000 })
		_, _ = r.Move(t.Context(), "ann", pump, on, time.Minute)
		expect("failed", pump+" - fault loose")
		r.pump.set(func() { r.pump.why = errors.New("burnt") })
		time.Sleep(time.Second)
		expect("failed otherwise", pump+" - fault burnt")
		r.pump.set(func() { r.pump.fails = 0 })
		time.Sleep(retryLast)
		expect("recovered", pump+" off good")
		_ = r.Stop(t.Context())
		expect("stopped")
		cancel()
		if err := <-watched; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch: %v", err)
		}
		r.stopped(t)
	})
}

func TestNewRefuses(t *testing.T) {
	bad := switchOf(pump)
	bad.MaxOn = 0
	for name, tt := range map[string]struct {
		devices []Actuated
		kind    device.FaultKind
		says    string
	}{
		"a bad policy":       {[]Actuated{{&hardware{}, []Policy{switchOf("garden/lamp"), bad}}}, device.Invalid, "max_on"},
		"no address":         {[]Actuated{{&hardware{}, []Policy{switchOf("pump")}}}, device.Internal, `"pump" is not the address`},
		"two devices in one": {[]Actuated{{&hardware{}, []Policy{switchOf(pump), switchOf("cellar/pump")}}}, device.Internal, `"cellar/pump" is not the address of an output of garden`},
		"twice in a device":  {[]Actuated{{&hardware{}, []Policy{switchOf(pump), switchOf(pump)}}}, device.Invalid, pump + " is there twice"},
		"in two devices":     {[]Actuated{{&hardware{}, []Policy{switchOf(pump)}}, {&hardware{}, []Policy{switchOf(pump)}}}, device.Invalid, pump + " is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tt.devices, Latch{})
			wantFault(t, err, tt.kind, tt.says)
		})
	}
}

// TestStartWhileStopped: a latched emergency stop keeps nothing from safe, and everything
// there.
func TestStartWhileStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Latch{File: filepath.Join(t.TempDir(), "armed")})
		r.run(t)
		if err := r.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.allSafe(t)
		time.Sleep(time.Minute)
		refuses(t, r)
		r.stopped(t)
	})
}

func TestCallsOfUnknownOutputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		_, err := r.Move(t.Context(), "ann", "room/ghost", on, 0)
		wantFault(t, err, device.Invalid, "room/ghost")
		_, err = r.Release(t.Context(), "room/ghost")
		wantFault(t, err, device.Invalid, "room/ghost")
		_, err = r.Policy("room/ghost")
		wantFault(t, err, device.Invalid, "room/ghost")
		if p, err := r.Policy(vent); err != nil || p != policies()[1] {
			t.Errorf("%+v, %v", p, err)
		}
		r.stopped(t)
	})
}

// With nothing to do, nothing runs: no write, no tick and no timer. A century
// with a timer in it, however slow, takes real time to go by.
func TestIdle(t *testing.T) {
	start := time.Now()
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", heater, on, time.Minute) // an idle guard has a past
		r.pump.set(func() { r.pump.fails = 3 })
		_, _ = r.Move(t.Context(), "ann", pump, on, time.Minute)
		time.Sleep(time.Hour)
		synctest.Wait()
		r.room.told()
		r.pump.told()

		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		for _, d := range []time.Duration{24 * time.Hour, 100 * 365 * 24 * time.Hour} {
			time.Sleep(d)
			synctest.Wait()
			if calls := append(r.room.told(), r.pump.told()...); calls != nil {
				t.Errorf("in %v: %v", d, calls)
			}
			r.mu.Lock()
			if r.changed != changed {
				t.Errorf("in %v the machine was asked", d)
			}
			r.mu.Unlock()
		}
		r.move(t, "ann", heater, on, 0)
		r.stopped(t)
	})
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("idling for a century took %v", d)
	}
}

// A lease with no end costs nothing either.
func TestUnlimitedLeaseIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", valve, off, Unlimited)
		synctest.Wait()
		r.room.told()
		time.Sleep(50 * 365 * 24 * time.Hour)
		if calls := r.room.told(); calls != nil {
			t.Error(calls)
		}
		if s := r.Status()[2]; s.Holder != "ann" || s.Value != off {
			t.Errorf("%+v", s)
		}
		r.stopped(t)
	})
}

// The emergency stop wins over a reset that it overlaps with: once it has
// returned, moves are refused and a restart remembers.
func TestStopDuringReset(t *testing.T) {
	for range 200 {
		r := newRig(t, Latch{File: filepath.Join(t.TempDir(), "armed")})
		r.run(t)
		var both sync.WaitGroup
		both.Go(func() { _ = r.Reset(r.asked()) })
		both.Go(func() { _ = r.Stop(t.Context()) })
		both.Wait()
		if !r.Stopped() && !r.latch.Armed() {
			t.Fatal("outputs may move, though a restart would refuse")
		}
		if r.Stopped() && r.latch.Armed() {
			t.Fatal("outputs are stopped, though a restart would forget")
		}
		r.stopped(t)
	}
}

// Real goroutines on real time, for the race detector.
func TestConcurrency(t *testing.T) {
	latch := armed(t)
	var devices []Actuated
	var fakes []*hardware
	var outputs []string
	for d := range 4 {
		h := &hardware{}
		fakes = append(fakes, h)
		a := Actuated{Actuator: h}
		for p := range 2 {
			policy := switchOf(fmt.Sprintf("d%d/p%d", d, p))
			policy.Rest = 0
			a.Policies = append(a.Policies, policy)
			outputs = append(outputs, policy.Output)
		}
		devices = append(devices, a)
	}
	g, err := New(devices, latch)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- g.Run(ctx) }()
	if err := g.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}

	watching, unwatch := context.WithCancel(t.Context())
	var watchers, callers sync.WaitGroup
	for range 3 {
		watchers.Go(func() {
			_ = g.Watch(watching, func(r device.Reading) {
				if r.Point == "" || r.Quality == device.Bad {
					t.Errorf("%+v", r)
				}
			})
		})
	}
	for n := range 32 {
		holder := fmt.Sprint("caller ", n)
		callers.Go(func() {
			for k := range 60 {
				output := outputs[(n+k)%len(outputs)]
				switch k % 6 {
				case 4:
					_, err := g.Release(t.Context(), output)
					if f := faultOf(err); f != "" && f != device.Unavailable {
						t.Errorf("release: %v", err)
					}
				case 5:
					for _, s := range g.Status() {
						if s.Safe && s.Value != off {
							t.Errorf("%+v", s)
						}
					}
				default:
					s, err := g.Move(t.Context(), holder, output, on, time.Minute)
					if f := faultOf(err); f != "" && f != device.Busy && f != device.Unavailable {
						t.Errorf("move: %v", err)
					} else if f == "" && s.Value != on {
						t.Errorf("move: %+v", s)
					}
				}
			}
		})
	}
	callers.Wait()
	if err := g.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	for n, h := range fakes {
		h.check(t)
		for _, point := range []string{"p0", "p1"} {
			if got := h.where(point); got != off {
				t.Errorf("d%d/%s is at %v after the stop", n, point, got)
			}
		}
	}
	unwatch()
	watchers.Wait()
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func faultOf(err error) device.FaultKind {
	if err == nil {
		return ""
	}
	return device.AsFault(err).Kind
}

func BenchmarkGuard(b *testing.B) {
	p := switchOf(pump)
	p.Rest = 0
	g, err := New([]Actuated{{nothing{}, []Policy{p}}}, armed(b))
	if err != nil {
		b.Fatal(err)
	}
	ctx, end := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- g.Run(ctx) }()
	if err := g.Settle(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Move(b.Context(), "ann", pump, on, time.Minute); err != nil {
			b.Fatal(err)
		}
		if _, err := g.Release(b.Context(), pump); err != nil {
			b.Fatal(err)
		}
	}
	end()
	<-ended
}

type nothing struct{}

func (nothing) Apply(context.Context, string, device.Value) error { return nil }

type panicking struct{}

func (panicking) Apply(context.Context, string, device.Value) error { panic("a defect") }

// A driver that panics is one that does not follow; the others are not disturbed.
func TestDriverPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPolicy("bad", device.Point{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)})
		dir := t.TempDir()
		g, err := New([]Actuated{{Actuator: panicking{}, Policies: []Policy{p}}}, Latch{File: filepath.Join(dir, "armed")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx) }()
		synctest.Wait()
		if s := g.Status()[0]; s.Safe || !strings.Contains(s.Fault, "a defect") {
			t.Errorf("%+v", s)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("an output that never answered was called safe")
		}
	})
}

// deaf never comes back, whatever its deadline says, until it is let go.
type deaf struct{ let chan struct{} }

func (d deaf) Apply(context.Context, string, device.Value) error { <-d.let; return nil }

// A driver that ignores its deadline fails at it; nobody waits for it without
// bound: not a call, not the emergency stop, not the end of the process.
func TestDeafDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		defer close(let)
		p := NewPolicy("bad", device.Point{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)})
		g, err := New([]Actuated{{Actuator: deaf{let}, Policies: []Policy{p}}}, Latch{File: filepath.Join(t.TempDir(), "armed")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx) }()
		time.Sleep(applyTimeout + time.Second)
		synctest.Wait()
		if s := g.Status()[0]; s.Safe || s.Fault == "" {
			t.Errorf("%+v", s)
		}
		begun := time.Now()
		if err := g.Stop(context.Background()); err == nil || time.Since(begun) > parkTimeout {
			t.Errorf("the emergency stop said %v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		cancel()
		if err := <-done; err == nil || time.Since(begun) > parkTimeout {
			t.Errorf("Run said %v after %v", err, time.Since(begun))
		}
	})
}

// TestSlewThroughTheGuard: a move returns while its ramp goes on, and a return that is a
// ramp once it is over.
func TestSlewThroughTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crane := Policy{Output: "yard/crane", Kind: device.KindLevel, Range: device.Range{Min: 0, Max: 100}, Safe: device.Number(0),
			MaxOn: DefaultMaxOn, Slew: Slew{PerSecond: 50, Ramp: true}}
		hw := &hardware{}
		g, err := New([]Actuated{{hw, []Policy{crane}}}, armed(t))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx) }()
		if err := g.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		s, err := g.Move(t.Context(), "ann", crane.Output, device.Number(100), time.Minute)
		if err != nil || s.Goal != device.Number(100) || s.Value.Number() > 2 {
			t.Errorf("%+v %v", s, err)
		}
		since(t, start, 0)
		time.Sleep(time.Second)
		if at := hw.where("crane").Number(); at < 48 || at > 52 {
			t.Errorf("after a second it is at %v", at)
		}
		time.Sleep(time.Second)
		if at := hw.where("crane"); at != device.Number(100) {
			t.Errorf("after two it is at %v", at)
		}
		start = time.Now()
		s, err = g.Release(t.Context(), crane.Output)
		if took := time.Since(start); err != nil || !s.Safe || took < 1900*time.Millisecond || took > 2100*time.Millisecond {
			t.Errorf("%+v %v after %v", s, err, took)
		}
		if _, err := g.Move(t.Context(), "ann", crane.Output, device.Number(100), time.Minute); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		start = time.Now()
		cancel() // the end of the process waits for the ramp too
		if err := <-done; err != nil || hw.where("crane") != device.Number(0) {
			t.Errorf("%v, and it is at %v", err, hw.where("crane"))
		}
		if took := time.Since(start); took < 1900*time.Millisecond || took > 2100*time.Millisecond {
			t.Errorf("the end took %v", took)
		}
	})
}

// TestRequiresThroughTheGuard: a reading that stops coming ends a lease by itself.
func TestRequiresThroughTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pump := switchOf("garden/pump")
		pump.Rest = 0
		pump.Requires = Requirement{Point: "tank/level", Within: device.Range{Min: 20, Max: 100}, MaxAge: 30 * time.Second}
		hw := &hardware{}
		g, err := New([]Actuated{{hw, []Policy{pump}}}, armed(t))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx) }()
		if err := g.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = g.Move(t.Context(), "ann", pump.Output, on, 5*time.Minute)
		wantFault(t, err, device.Unsafe, "needs tank/level within 20..100")
		tell := func(level float64) {
			g.Told(device.Reading{Point: "tank/level", Value: device.Number(level), Quality: device.Good, At: time.Now()})
			g.Told(device.Reading{Point: "tank/other", Quality: device.Bad, At: time.Now()})
		}
		tell(50)
		if _, err := g.Move(t.Context(), "ann", pump.Output, on, 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			time.Sleep(29 * time.Second)
			tell(20)
		}
		time.Sleep(30*time.Second - time.Nanosecond)
		synctest.Wait()
		if hw.where("pump") != on {
			t.Error("it stopped too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if hw.where("pump") != off {
			t.Error("it goes on although nobody reads the level any more")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// asked is how often the emergency stop was asked for.
func (r *rig) asked() uint32 {
	_, _, stops := r.State()
	return stops
}
