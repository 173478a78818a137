package devices

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestSimulate: a value is in the unit of the configuration and reaches the part in its own. A part of the guard's
// process is told as well. A reload leaves unchanged parts as they were told, and nothing real is ever opened.
func TestSimulate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const soil = "  soil: { driver: probe, pin: p3, every: 1s, points: { t: { scale: -50, offset: 150, clamp: 0..100, " +
			"unit: \"%\" } } }\n"
		r := newRig(t, &bay{fakes: true}, twoParts+soil)
		defer r.end()
		simulate := func(point string, v device.Value) error {
			err := r.Simulate(t.Context(), device.Reading{Point: point, Value: v, Quality: device.Good})
			time.Sleep(2 * time.Second)
			return err
		}
		for _, n := range []float64{30, 100, 0} {
			if err := simulate("soil/t", device.Number(n)); err != nil {
				t.Fatal(err)
			}
			r.says(t, "read_points", readAll, "Point:soil/t Value:"+device.Number(n).String()+" Unit:%")
		}
		for point, v := range map[string]device.Value{
			"soil/t": device.Number(101), "soil/u": device.Number(1), "cellar/t": device.Number(1), "pump/on": device.Bool(true),
		} {
			if err := simulate(point, v); err == nil || device.AsFault(err).Kind != device.Invalid {
				t.Errorf("%s: %v", point, err)
			}
		}

		// An output of the guard's process that cannot be read back goes to safe.
		r.says(t, "switch_output", pumpOn, "Value:on")
		broken := device.Reading{Point: "pump/on", Quality: device.Bad, Why: "wire cut"}
		if err := r.Simulate(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.says(t, "read_points", readAll, "wire cut")
		if s := r.Outputs.Status()[0]; s.Output != "pump/on" || s.Holder != "" {
			t.Errorf("%+v", s)
		}
		if err := simulate("pump/on", device.Value{}); err != nil {
			t.Fatal(err)
		}

		if err := simulate("soil/t", device.Number(42)); err != nil {
			t.Fatal(err)
		}
		r.text = head + "  fan: { driver: relay, pin: p4 }\n" + soil + "  cellar: { driver: probe, pin: p5, every: 1s }\n"
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := simulate("cellar/t", device.Number(7)); err != nil {
			t.Fatal(err)
		}
		r.says(t, "read_points", readAll, "Point:soil/t Value:42 ", "Point:cellar/t Value:7 ", "Point:fan/on Value:off")
		if told := r.told(); told != "" {
			t.Errorf("real parts: %s", told)
		}
	})
}

// TestSimulateReal: a site with real devices refuses.
func TestSimulateReal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, threeOf)
		defer r.end()
		err := r.Simulate(t.Context(), device.Reading{Point: "soil/t", Value: device.Number(1), Quality: device.Good})
		if err == nil || device.AsFault(err).Kind != device.Invalid {
			t.Error(err)
		}
	})
}
