package fake

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/devicetest"
)

// everything has a point of each kind.
var everything = device.Description{Model: "everything", Points: []device.Point{
	{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel", Range: device.Range{Min: -40, Max: 85}},
	{Name: "raw", Kind: device.KindMeasurement, Unit: "V", Range: device.Range{Max: 3}},
	{Name: "door", Kind: device.KindState},
	{Name: "mode", Kind: device.KindState, Values: []string{"idle", "heating"}},
	{Name: "button", Kind: device.KindEvent},
	{Name: "pump", Kind: device.KindSwitch, Safe: device.Bool(false)},
	{Name: "fan", Kind: device.KindLevel, Unit: "%", Range: device.Range{Min: 10, Max: 100}, Safe: device.Number(10)},
	{Name: "text", Kind: device.KindText},
	{Name: "camera", Kind: device.KindImage},
}}

func TestConformance(t *testing.T) {
	var d *Device
	devicetest.Options{Level: func(point string) device.Value { return d.Value(point) }, FakeClock: true}.Run(t,
		func(*testing.T) device.Device {
			d = New(everything, nil)
			return d
		})
}

func sampled(t *testing.T, d *Device, point string) device.Reading {
	t.Helper()
	all, err := d.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Point == point {
			return r
		}
	}
	t.Fatalf("no reading of %s", point)
	return device.Reading{}
}

func TestStart(t *testing.T) {
	d := New(everything, map[string]device.Value{"door": device.Bool(true), "raw": device.Number(99)})
	for point, want := range map[string]device.Value{
		"temperature": device.Number(20), "raw": device.Number(1.5), "door": device.Bool(true), "mode": device.Text("idle"),
		"pump": device.Bool(false), "fan": device.Number(10),
	} {
		if got := sampled(t, d, point).Value; got != want {
			t.Errorf("%s starts at %v, want %v", point, got, want)
		}
	}
}

func TestPush(t *testing.T) {
	d := New(everything, nil)
	for _, c := range []struct {
		point string
		value device.Value
		fits  bool
	}{
		{"temperature", device.Number(31), true},
		{"temperature", device.Number(86), false},
		{"temperature", device.Bool(true), false},
		{"temperature", device.Value{}, false},
		{"door", device.Bool(true), true},
		{"door", device.Number(1), false},
		{"mode", device.Text("heating"), true},
		{"mode", device.Text("cooking"), false},
		{"pump", device.Bool(true), false},
		{"text", device.Text("hello"), false},
		{"nothing", device.Number(1), false},
	} {
		err := d.Push(c.point, c.value)
		switch {
		case (err == nil) != c.fits:
			t.Errorf("Push(%s, %v): %v", c.point, c.value, err)
		case err == nil && sampled(t, d, c.point).Value != c.value:
			t.Errorf("%s reads %v after %v", c.point, sampled(t, d, c.point), c.value)
		}
	}
}

// TestFaultOfOutput: it moves, but what it reads back is a fault.
func TestFaultOfOutput(t *testing.T) {
	d := New(everything, nil)
	if err := d.Fault("pump", ""); err != nil {
		t.Fatal(err)
	}
	if err := d.Apply(t.Context(), "pump", device.Bool(true)); err != nil {
		t.Fatal(err)
	}
	if r := sampled(t, d, "pump"); r.Quality != device.Bad || r.Why == "" || !d.Value("pump").Bool() {
		t.Errorf("read back: %+v, at the hardware: %v", r, d.Value("pump"))
	}
	if err := d.Heal("pump"); err != nil {
		t.Fatal(err)
	}
	if r := sampled(t, d, "pump"); r.Quality != device.Good || !r.Value.Bool() {
		t.Errorf("read back after Heal: %+v", r)
	}
}

func TestLost(t *testing.T) {
	d := New(everything, nil)
	d.Lose()
	if _, err := d.Sample(t.Context()); device.AsFault(err).Kind != device.Offline {
		t.Errorf("Sample of a lost device: %v", err)
	}
	if err := d.Apply(t.Context(), "pump", device.Bool(true)); device.AsFault(err).Kind != device.Offline {
		t.Errorf("Apply to a lost device: %v", err)
	}
	d.Find()
	if r := sampled(t, d, "temperature"); r.Quality != device.Good {
		t.Errorf("after Find: %+v", r)
	}
}

// TestWatch: a watcher has the values of its start, then each change and both edges of a press, in order.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(everything, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var got []device.Reading
		ended := make(chan error, 1)
		go func() { ended <- d.Watch(ctx, func(r device.Reading) { got = append(got, r) }) }()
		synctest.Wait()
		if len(got) != 4 {
			t.Fatalf("at the start: %+v", got)
		}
		got = nil
		time.Sleep(time.Hour)
		for _, do := range []func() error{
			func() error { return d.Push("temperature", device.Number(31)) },
			func() error { return d.Press("button") },
			func() error { return d.Fault("door", "wire cut") },
		} {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(got) != 4 || got[0].Value != device.Number(31) || !got[1].Value.Bool() || got[2].Value != device.Bool(false) ||
			got[3].Why != "wire cut" || !got[3].At.Equal(time.Now()) {
			t.Errorf("emitted: %+v", got)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if len(d.watchers) != 0 {
			t.Error("a watcher is kept")
		}
	})
}

// TestSimulate: each simulated reading has the effect of the method for it.
func TestSimulate(t *testing.T) {
	d := New(everything, nil)
	simulate := func(r device.Reading) {
		t.Helper()
		if err := d.Simulate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	simulate(device.Reading{Point: "temperature", Quality: device.Good, Value: device.Number(31)})
	if r := sampled(t, d, "temperature"); r.Value != device.Number(31) {
		t.Errorf("pushed: %+v", r)
	}
	simulate(device.Reading{Point: "temperature", Quality: device.Bad, Why: "broken"})
	if r := sampled(t, d, "temperature"); r.Why != "broken" {
		t.Errorf("broken: %+v", r)
	}
	simulate(device.Reading{Point: "temperature", Quality: device.Good})
	if r := sampled(t, d, "temperature"); r.Value != device.Number(31) {
		t.Errorf("healed: %+v", r)
	}
	simulate(device.Reading{Quality: device.Bad})
	if _, err := d.Sample(t.Context()); err == nil {
		t.Error("a lost device is sampled")
	}
	simulate(device.Reading{Quality: device.Good})
	sampled(t, d, "temperature")
}
