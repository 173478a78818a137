package guard

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestChange: unchanged outputs keep value, lease and counters, and are not written. Removed or
// changed outputs are safe first, and afterwards as after a start.
func TestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		room, garden := r.Guard.workers[0].act, r.Guard.workers[1].act
		policies := func(h int) (all []Policy) {
			for _, o := range r.Guard.workers[h].outputs {
				p, _ := r.Policy(o.address)
				all = append(all, p)
			}
			return all
		}
		rooms, gardens := policies(0), policies(1)
		r.move(t, "ann", heater, on, 5*time.Minute)
		r.move(t, "ann", pump, on, time.Minute)
		r.room.told()
		status := func(output string) Status {
			t.Helper()
			s, ok := r.StatusOf(output)
			if all := r.Status(); !ok || !slices.Contains(all, s) {
				t.Fatalf("%s: %+v, %v; of all: %+v", output, s, ok, all)
			}
			return s
		}

		// Ten times the pump's device goes, and comes again.
		for range 10 {
			begun := time.Now()
			if err := r.Change(t.Context(), []Actuated{{room, rooms}}); err != nil || time.Since(begun) > 0 {
				t.Fatal(err)
			}
			_, err := r.Move(t.Context(), "ann", pump, on, 0)
			wantFault(t, err, device.Invalid, "no output")
			if v := r.pump.where("pump"); v != off {
				t.Error("it went and was not safe")
			}
			if err := r.Change(t.Context(), []Actuated{{garden, gardens}, {room, rooms}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			_, err = r.Move(t.Context(), "ann", pump, on, 0)
			wantFault(t, err, device.Unsafe, "rests at safe")
			time.Sleep(10 * time.Second)
			r.move(t, "ann", pump, on, time.Minute)
		}
		if s := status(heater); s.Holder != "ann" || s.Value != on || s.Left != 5*time.Minute-100*time.Second {
			t.Errorf("%+v", s)
		}
		if calls := r.room.told(); calls != nil {
			t.Errorf("the heater was written: %v", calls)
		}
		if all := r.Status(); all[0].Output != pump {
			t.Errorf("in another order: %+v", all)
		}

		// Another policy is another output, and its neighbour stays.
		rooms[0].MaxOn -= time.Second
		if err := r.Change(t.Context(), []Actuated{{garden, gardens}, {room, rooms}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := status(heater); s.Holder != "" || !s.Safe || s.Rest == 0 {
			t.Errorf("%+v", s)
		}
		if s := status(pump); s.Holder != "ann" || s.Value != on {
			t.Errorf("%+v", s)
		}

		// A stop outlives a change, and what fails holds it up for five seconds.
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.pump.set(func() { r.pump.fails = 1000 })
		if err := r.Reset(r.asked()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		go r.Move(t.Context(), "ann", pump, on, 0)
		synctest.Wait()
		begun := time.Now()
		wantFault(t, r.Change(t.Context(), []Actuated{{room, rooms}}), device.UnknownOutcome, pump)
		if took := time.Since(begun); took > parkTimeout+2*time.Second {
			t.Errorf("it took %v", took)
		}
		r.pump.set(func() { r.pump.fails = 0 })
		if len(r.Status()) != len(rooms) {
			t.Errorf("%+v", r.Status())
		}
		r.Stop(t.Context())
		if err := r.Change(t.Context(), []Actuated{{room, rooms}, {garden, gardens}}); err != nil || !r.Stopped() {
			t.Error(err)
		}
		refuses(t, r)
		r.stopped(t)
	})
}

// TestAdoptInterlocked: a new output is not known to be safe, and outputs interlocked with it go to
// safe.
func TestAdoptInterlocked(t *testing.T) {
	a, b, other := interlockedSwitch("a/x", "group"), interlockedSwitch("b/x", "group"), interlockedSwitch("c/x", "other")
	m := NewMachine([]Policy{a, other}, false)
	for i := range 2 {
		m.Applied(0, i, device.Bool(false), nil)
	}
	now := time.Hour
	for _, name := range []string{"a/x", "c/x"} {
		if err := m.Move(now, "ann", name, device.Bool(true), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	m.Adopt(now, []Policy{a, other, b})
	for i, want := range []string{"", "ann", ""} {
		if s := m.Status(now, i); s.Holder != want {
			t.Errorf("%+v", s)
		}
	}
	if err := m.Move(now, "ann", "a/x", device.Bool(true), time.Minute); err == nil {
		t.Error("beside one that is not known to be safe")
	}
}

// TestChangeCutShort: an output to remove that is not safe yet is not forgotten if Change ends
// early, or if a hanging driver may still move it.
func TestChangeCutShort(t *testing.T) {
	for name, try := range map[string]struct {
		device func(*hardware)
		most   time.Duration
	}{
		"the site has gone": {func(h *hardware) { h.delay = time.Second }, time.Second / 2},
		"the driver hangs":  {func(h *hardware) { h.deaf = 6 * time.Second }, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := ready(t)
			r.move(t, "ann", pump, on, time.Minute)
			r.pump.set(func() { try.device(r.pump) })
			ctx, cancel := context.WithTimeout(t.Context(), try.most)
			defer cancel()
			err := r.Change(ctx, []Actuated{{r.room, policies()}})
			if err == nil || device.AsFault(err).Kind == device.UnknownOutcome {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := r.Policy(pump); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := r.Try(t.Context(), "ann", pump, on, 0); err == nil {
				t.Errorf("%s: it may be moved", name)
			}
			if err := r.stop(t); err != nil || r.pump.where("pump") != off {
				t.Errorf("%s: it is %v at the end: %v", name, r.pump.where("pump"), err)
			}
		})
	}
}
