package config

import (
	"math"
	"reflect"
	"testing"

	"agentsite/device"
)

// pointsOf are the points of the only device of a file.
func pointsOf(t *testing.T, text string) Points {
	t.Helper()
	site, err := Parse("a.yaml", []byte("site: { name: a }\ndevices:\n  d: "+text+"\n"), fakes())
	if err != nil {
		t.Fatal(err)
	}
	d := site.Devices[0]
	points, err := d.Points(d.Config.(interface{ Describe() device.Description }).Describe())
	if err != nil {
		t.Fatal(err)
	}
	return points
}

func TestMeasurements(t *testing.T) {
	for _, tt := range []struct {
		text, point, unit string
		r                 device.Range
		from, to          []float64
	}{
		// A soil probe: 1.1 V in water, 3 V in air.
		{"{ driver: pair, points: { volts: { scale: -50, offset: 150, clamp: 0..100, unit: \"%\" } } }", "volts", "%", device.Range{Min: 0, Max: 100},
			[]float64{0, 1.1, 2, 3, 3.3}, []float64{100, 95, 50, 0, 0}},
		{"{ driver: pair, points: { volts: { scale: -2 } } }", "volts", "V", device.Range{Min: -6.6}, []float64{3.3, 0}, []float64{-6.6, 0}},
		{"{ driver: pair, points: { volts: { clamp: 1..9 } } }", "volts", "V", device.Range{Min: 1, Max: 3.3}, []float64{0.5, 2, 12}, []float64{1, 2, 9}},
		{"{ driver: pair, points: { amps: { scale: 0.1, unit: \"\" } } }", "amps", "", device.Range{}, []float64{3, -3}, []float64{0.3, -0.3}},
		{"{ driver: pair, points: { amps: { clamp: -1..1 } } }", "amps", "A", device.Range{Min: -1, Max: 1}, []float64{-7}, []float64{-1}},
		// At the device, where there is only one. The driver's own offset is the driver's.
		{"{ driver: thermo, scale: 1.8, offset: 1, unit: K, every: 1s }", "temperature", "K", device.Range{}, []float64{10}, []float64{18}},
		{"{ driver: multi, unit: K, points: { heater: { lease: 1m } } }", "temperature", "K", device.Range{}, []float64{10}, []float64{10}},
	} {
		got := pointsOf(t, tt.text)
		p, ok := got.Description.Point(tt.point)
		if !ok || p.Unit != tt.unit || p.Range != tt.r || len(got.Measurements) != 1 || !reflect.DeepEqual(got.Measurements[0].Point, p) {
			t.Errorf("%s: %+v", tt.text, got)
			continue
		}
		for i, n := range tt.from {
			if v := got.Measurements[0].Convert(n); v != tt.to[i] {
				t.Errorf("%s: %v gives %v, want %v", tt.text, n, v, tt.to[i])
			}
		}
	}
	if got := pointsOf(t, "{ driver: pair }"); got.Measurements != nil {
		t.Errorf("nobody asked for %+v", got.Measurements)
	}
}

// TestClampKeepsNonsense: NaN and Inf are not clamped to a good value.
func TestClampKeepsNonsense(t *testing.T) {
	m := pointsOf(t, "{ driver: pair, points: { amps: { scale: -2, clamp: 0..1 } } }").Measurements[0]
	for _, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if v := m.Convert(n); device.Number(v).Finite() {
			t.Errorf("%v gives %v", n, v)
		}
	}
}

// TestDescriptionFollows: the description has the owner's words, and the driver's
// own is left as it was.
func TestDescriptionFollows(t *testing.T) {
	got := pointsOf(t, "{ driver: multi, unit: K, points: { heater: { safe: on }, vent: { range: 10..20, safe: 15 } } }")
	want := []device.Point{
		{Name: "heater", Kind: device.KindSwitch, Safe: device.Bool(true)},
		{Name: "vent", Kind: device.KindLevel, Range: device.Range{Min: 10, Max: 20}, Safe: device.Number(15)},
		{Name: "temperature", Kind: device.KindMeasurement, Unit: "K"},
	}
	if !reflect.DeepEqual(got.Description.Points, want) || got.Description.Model != "multi" {
		t.Errorf("%+v", got.Description)
	}
	one := device.Description{Points: []device.Point{{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel"}}}
	site, err := Parse("a.yaml", []byte("site: { name: a }\ndevices: { d: { driver: thermo, unit: K } }\n"), fakes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := site.Devices[0].Points(one); err != nil || one.Points[0].Unit != "Cel" {
		t.Errorf("%+v %v", one, err)
	}
}
