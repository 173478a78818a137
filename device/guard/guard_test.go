package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// talker is an error with another text each time.
type talker struct{ n atomic.Int32 }

func (e *talker) Error() string { return fmt.Sprint("it says ", e.n.Add(1)) }

// lines counts the lines of a log.
type lines struct {
	slog.Handler
	n *atomic.Int32
}

func (l lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) Handle(context.Context, slog.Record) error {
	l.n.Add(1)
	return nil
}

// TestLogIsBounded: a device that gives another reason each time is no line each time.
func TestLogIsBounded(t *testing.T) {
	var n atomic.Int32
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(lines{slog.DiscardHandler, &n}))
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", heater, on, time.Minute)
		r.room.set(func() { r.room.fails, r.room.why = 1000, new(talker) })
		r.Release(within(t, time.Second), heater)
		before := n.Load()
		time.Sleep(10 * time.Minute)
		if lines := n.Load() - before; lines == 0 || lines > 12 {
			t.Errorf("%d lines in ten minutes", lines)
		}
		r.room.set(func() { r.room.fails = 0 })
		time.Sleep(retryLast)
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
		wantFault(t, err, device.Busy, "ann for another 5s")
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
		"no address":         {[]Actuated{{&hardware{}, []Policy{switchOf("pump")}}}, device.Internal, `"pump"`},
		"two devices in one": {[]Actuated{{&hardware{}, []Policy{switchOf(pump), switchOf("cellar/pump")}}}, device.Internal, `"cellar/pump"`},
		"twice in a device":  {[]Actuated{{&hardware{}, []Policy{switchOf(pump), switchOf(pump)}}}, device.Invalid, pump + " is there twice"},
		"in two devices":     {[]Actuated{{&hardware{}, []Policy{switchOf(pump)}}, {&hardware{}, []Policy{switchOf(pump)}}}, device.Invalid, pump + " is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tt.devices, Latch{})
			wantFault(t, err, tt.kind, tt.says)
		})
	}
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
