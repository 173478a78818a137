package guard

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

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

type panicking struct{}

func (panicking) Apply(context.Context, string, device.Value) error { panic("a defect") }

// TestDriverPanics: a panic of a driver is a failed write; the others are not disturbed.
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

// TestDeafDriver: a driver that ignores its deadline fails at it. No call, emergency stop or end of
// the process waits for it without bound.
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
