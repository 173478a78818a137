package guard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

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
		wantFault(t, err, device.Unsafe, "on its way")

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

// TestSafeWhileAWriteIsInFlight: if a write is pending when safe is requested, safe is written
// after it, before any caller is told that the output is safe.
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
