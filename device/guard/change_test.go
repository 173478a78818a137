package guard

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestDrop: a device that is taken away goes to safe first, whoever holds it, and is
// then left alone. Others keep their leases.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", pump, on, time.Minute)
		r.move(t, "ann", heater, on, time.Minute)
		r.pump.set(func() { r.pump.delay = time.Second })
		start := time.Now()
		dropped := make(chan error, 1)
		go func() { dropped <- r.Drop("garden", parkTimeout) }()
		synctest.Wait()
		_, err := r.Move(t.Context(), "bob", pump, on, 0) // while it is on its way
		wantFault(t, err, device.Unavailable, pump)
		if err := <-dropped; err != nil {
			t.Error(err)
		}
		since(t, start, time.Second)
		if got := r.pump.where("pump"); got != off {
			t.Errorf("it is left at %v", got)
		}
		r.pump.told()

		_, err = r.Move(t.Context(), "ann", pump, on, 0)
		wantFault(t, err, device.Unavailable, "list the points")
		_, err = r.Release(t.Context(), pump)
		wantFault(t, err, device.Unavailable, pump)
		_, err = r.Policy(pump)
		wantFault(t, err, device.Unavailable, pump)
		for _, s := range r.Status() {
			if s.Output == pump || s.Output == heater && (s.Holder != "ann" || s.Left != 59*time.Second) {
				t.Errorf("%+v", s)
			}
		}
		if err := r.Drop("garden", parkTimeout); err != nil {
			t.Errorf("a second time: %v", err)
		}
		if err := r.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		r.stopped(t)
		if calls := r.pump.told(); calls != nil {
			t.Errorf("somebody still moves it: %+v", calls)
		}
	})
}

// TestAddWhileItRuns: a device that comes while Run runs is driven to safe, rests as after a
// start, is told of, and stays safe while the emergency stop is latched.
func TestAddWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		told := make(chan device.Reading, 16)
		watching := within(t, time.Hour)
		go r.Watch(watching, func(r device.Reading) { told <- r })
		synctest.Wait()
		for len(told) > 0 {
			<-told
		}
		if err := r.Drop("garden", parkTimeout); err != nil {
			t.Fatal(err)
		}
		other := &hardware{}
		if err := r.Add(Actuated{Actuator: other, Policies: []Policy{switchOf(pump), switchOf("garden/lamp")}}); err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if other.where("pump") != off || other.where("lamp") != off {
			t.Error("it was not driven to safe")
		}
		_, err := r.Move(t.Context(), "ann", pump, on, 0)
		wantFault(t, err, device.Unsafe, "rests at safe")
		time.Sleep(DefaultRest)
		r.move(t, "ann", pump, on, 0)
		synctest.Wait()
		heard := map[string]bool{}
		for len(told) > 0 {
			reading := <-told
			heard[reading.Point] = true
		}
		if len(heard) != 2 || !heard[pump] || !heard["garden/lamp"] {
			t.Errorf("told of %v", heard)
		}
		if n := len(r.Status()); n != 5 {
			t.Errorf("%d outputs", n)
		}
		if calls := r.pump.told(); calls != nil {
			t.Errorf("the device before it is still moved: %+v", calls)
		}

		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		late := &hardware{}
		if err := r.Add(Actuated{Actuator: late, Policies: []Policy{switchOf("attic/fan")}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_, err = r.Move(t.Context(), "ann", "attic/fan", on, 0)
		wantFault(t, err, device.Unsafe, "emergency stop")
		r.stopped(t)
		if late.where("fan") != off {
			t.Error("a device that came during the stop is not safe")
		}
	})
}

// TestDropOfDeadHardware: what cannot be made safe is given up in time, and said.
func TestDropOfDeadHardware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", pump, on, time.Minute)
		r.pump.set(func() { r.pump.hangs = map[string]bool{"pump": true} })
		start := time.Now()
		wantFault(t, r.Drop("garden", parkTimeout), device.UnknownOutcome, pump)
		if took := time.Since(start); took > parkTimeout+applyTimeout+time.Second {
			t.Errorf("it took %v", took)
		}
		r.pump.told()
		time.Sleep(time.Minute)
		if calls := r.pump.told(); calls != nil {
			t.Errorf("it is still tried: %+v", calls)
		}
		if err := r.Drop("house", 0); err != nil { // at safe already, and nobody waits
			t.Error(err)
		}
		r.stopped(t) // says nothing of it any more
	})
}

// TestAddRefuses: what is refused has changed nothing.
func TestAddRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		before := len(r.Status())
		bad := switchOf("attic/fan")
		bad.MaxOn = 0
		for _, policies := range [][]Policy{
			{switchOf("attic/lamp"), switchOf(pump)},
			{switchOf("attic/lamp"), switchOf("attic/lamp")},
			{switchOf("attic/lamp"), switchOf("cellar/lamp")},
			{switchOf("attic/lamp"), bad},
			{switchOf("attic")},
		} {
			if err := r.Add(Actuated{Actuator: &hardware{}, Policies: policies}); err == nil {
				t.Errorf("%+v was taken in", policies)
			}
		}
		if n := len(r.Status()); n != before {
			t.Errorf("%d outputs, not %d", n, before)
		}
		if err := r.Drop("attic", parkTimeout); err != nil {
			t.Error(err)
		}
		r.stopped(t)
	})
}
