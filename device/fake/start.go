package fake

import (
	"slices"
	"strings"

	"agentsite/device"
)

// usual has a plausible number for each unit of UCUM that parts measure in.
var usual = map[string]float64{
	"Cel": 20, "[degF]": 68, "K": 293, "%": 50, "Pa": 101325, "hPa": 1013, "kPa": 101, "bar": 1, "lx": 300, "V": 3.3,
	"mV": 3300, "A": 0.1, "mA": 100, "W": 10, "kW": 0.1, "Hz": 50, "[ppm]": 600, "[ppb]": 50, "ug/m3": 8, "m": 1, "cm": 100,
	"mm": 1000, "dB": 40, "dB[SPL]": 40, "dBm": -60, "[pH]": 7, "pH": 7, "uS/cm": 500, "By": 1 << 30, "s": 3600, "kg": 1, "g": 1000,
}

// Start returns the value that a point has in a fake at first: an output its safe one, a state off or its first word,
// and a measurement a number that is usual for its unit and in its range.
func Start(p device.Point) device.Value {
	switch p.Kind {
	case device.KindSwitch, device.KindLevel:
		return p.Safe
	case device.KindText:
		return device.Text("")
	case device.KindState:
		if len(p.Values) > 0 {
			return device.Text(p.Values[0])
		}
		return device.Bool(false)
	case device.KindMeasurement:
		n := usual[p.Unit]
		if p.Range != (device.Range{}) && !p.Range.Contains(n) {
			n = p.Range.Min + (p.Range.Max-p.Range.Min)/2
		}
		return device.Number(n)
	}
	return device.Value{}
}

// measured reports whether a point is read and no output.
func measured(p device.Point) bool {
	return p.Kind == device.KindMeasurement || p.Kind == device.KindState
}

// fits reports why a measurement, a state or an event cannot have a value.
func fits(p device.Point, v device.Value) error {
	switch {
	case v.IsZero() || !v.Finite():
		return device.Faultf(device.Invalid, "%s needs a value", p.Name)
	case p.Kind == device.KindEvent:
	case p.Kind == device.KindMeasurement && v.Type() != device.TypeNumber:
		return device.Faultf(device.Invalid, "%s takes a number", p.Name)
	case p.Kind == device.KindMeasurement && p.Range != (device.Range{}) && !p.Range.Contains(v.Number()):
		return device.Faultf(device.Invalid, "%s is within %v; %v is outside", p.Name, p.Range, v)
	case p.Kind == device.KindState && len(p.Values) > 0 && !slices.Contains(p.Values, v.Text()):
		return device.Faultf(device.Invalid, "%s is one of %s", p.Name, strings.Join(p.Values, ", "))
	case p.Kind == device.KindState && len(p.Values) == 0 && v.Type() != device.TypeBool:
		return device.Faultf(device.Invalid, "%s is on or off", p.Name)
	}
	return nil
}
