package beacon

import (
	"math"

	"agentsite/device"
)

// object is a kind of value in BTHome v2: https://bthome.io/format.
type object struct {
	name   string // of the point; "" for one that is no point
	size   uint8  // in bytes; 0 for an unknown object
	signed bool
	factor float64 // of a number; 0 for a state and an event
	unit   string
	lo, hi float64
	event  bool
	about  string
}

const (
	kelvinZero = -273.15
	wide       = math.MaxUint32
)

// variable is the size of an object whose first byte is its length.
const variable = 255

// objects are by their number. Millimetres, millilitres, hectopascals and pounds are converted, so that a name has one
// unit. A range is what the format can say, or less where more is impossible.
var objects = [256]object{
	0x00: {size: 1}, // packet id
	0x01: {name: "battery", size: 1, factor: 1, unit: "%", hi: 100, about: "charge of the device's battery"},
	0x02: {name: "temperature", size: 2, signed: true, factor: 0.01, unit: "Cel", lo: kelvinZero, hi: 327.67},
	0x03: {name: "humidity", size: 2, factor: 0.01, unit: "%", hi: 100},
	0x04: {name: "pressure", size: 3, factor: 1, unit: "Pa", hi: 1 << 24},
	0x05: {name: "illuminance", size: 3, factor: 0.01, unit: "lx", hi: 167772.15},
	0x06: {name: "mass", size: 2, factor: 0.01, unit: "kg", hi: 655.35},
	0x07: {name: "mass", size: 2, factor: 0.0045359237, unit: "kg", hi: 655.35},
	0x08: {name: "dew_point", size: 2, signed: true, factor: 0.01, unit: "Cel", lo: kelvinZero, hi: 327.67},
	0x09: {name: "count", size: 1, factor: 1, lo: math.MinInt32, hi: wide},
	0x0A: {name: "energy", size: 3, factor: 0.001, unit: "kW.h", hi: 4294967.295},
	0x0B: {name: "power", size: 3, factor: 0.01, unit: "W", lo: -21474836.48, hi: 21474836.47},
	0x0C: {name: "voltage", size: 2, factor: 0.001, unit: "V", hi: 6553.5},
	0x0D: {name: "pm2_5", size: 2, factor: 1, unit: "ug/m3", hi: math.MaxUint16, about: "particles of up to 2.5 um in the air"},
	0x0E: {name: "pm10", size: 2, factor: 1, unit: "ug/m3", hi: math.MaxUint16, about: "particles of up to 10 um in the air"},
	0x0F: {name: "generic", size: 1},
	0x10: {name: "powered", size: 1, about: "on with power"},
	0x11: {name: "opening", size: 1, about: "on when open"},
	0x12: {name: "co2", size: 2, factor: 1, unit: "[ppm]", hi: math.MaxUint16},
	0x13: {name: "tvoc", size: 2, factor: 1, unit: "ug/m3", hi: math.MaxUint16, about: "volatile organic compounds"},
	0x14: {name: "moisture", size: 2, factor: 0.01, unit: "%", hi: 100},
	0x15: {name: "battery_low", size: 1, about: "on when the battery is low"},
	0x16: {name: "charging", size: 1, about: "on while the battery is charged"},
	0x17: {name: "carbon_monoxide", size: 1, about: "on when detected"},
	0x18: {name: "cold", size: 1, about: "on when cold"},
	0x19: {name: "connected", size: 1, about: "on when connected"},
	0x1A: {name: "door", size: 1, about: "on when open"},
	0x1B: {name: "garage_door", size: 1, about: "on when open"},
	0x1C: {name: "gas_detected", size: 1, about: "on when detected"},
	0x1D: {name: "heat", size: 1, about: "on when hot"},
	0x1E: {name: "light", size: 1, about: "on when there is light"},
	0x1F: {name: "unlocked", size: 1, about: "on when unlocked"},
	0x20: {name: "wet", size: 1, about: "on when wet"},
	0x21: {name: "motion", size: 1, about: "on when motion is detected"},
	0x22: {name: "moving", size: 1, about: "on while it moves"},
	0x23: {name: "occupied", size: 1, about: "on when somebody is there"},
	0x24: {name: "plugged_in", size: 1, about: "on when plugged in"},
	0x25: {name: "present", size: 1, about: "on when at home"},
	0x26: {name: "problem", size: 1, about: "on when there is a problem"},
	0x27: {name: "running", size: 1, about: "on while it runs"},
	0x28: {name: "safe", size: 1, about: "on when safe"},
	0x29: {name: "smoke", size: 1, about: "on when detected"},
	0x2A: {name: "sound", size: 1, about: "on when detected"},
	0x2B: {name: "tamper", size: 1, about: "on when tampered with"},
	0x2C: {name: "vibration", size: 1, about: "on when detected"},
	0x2D: {name: "window", size: 1, about: "on when open"},
	0x2E: {name: "humidity", size: 1, factor: 1, unit: "%", hi: 100},
	0x2F: {name: "moisture", size: 1, factor: 1, unit: "%", hi: 100},
	0x3A: {name: "button", size: 1, event: true, about: "press, double_press, triple_press, long_press or hold_press"},
	0x3C: {name: "dimmer", size: 2, event: true, about: "steps that it was turned to the right; negative to the left"},
	0x3D: {name: "count", size: 2, factor: 1, lo: math.MinInt32, hi: wide},
	0x3E: {name: "count", size: 4, factor: 1, lo: math.MinInt32, hi: wide},
	0x3F: {name: "rotation", size: 2, signed: true, factor: 0.1, unit: "deg", lo: -3276.8, hi: 3276.7},
	0x40: {name: "distance", size: 2, factor: 0.001, unit: "m", hi: 6553.5},
	0x41: {name: "distance", size: 2, factor: 0.1, unit: "m", hi: 6553.5},
	0x42: {name: "duration", size: 3, factor: 0.001, unit: "s", hi: 16777.215},
	0x43: {name: "current", size: 2, factor: 0.001, unit: "A", lo: -32.768, hi: 65.535},
	0x44: {name: "speed", size: 2, factor: 0.01, unit: "m/s", lo: -2147.483648, hi: 2147.483647},
	0x45: {name: "temperature", size: 2, signed: true, factor: 0.1, unit: "Cel", lo: kelvinZero, hi: 327.67},
	0x46: {name: "uv_index", size: 1, factor: 0.1, hi: 25.5},
	0x47: {name: "volume", size: 2, factor: 0.1, unit: "L", hi: 4294967.295},
	0x48: {name: "volume", size: 2, factor: 0.001, unit: "L", hi: 4294967.295},
	0x49: {name: "flow", size: 2, factor: 0.001, unit: "m3/h", hi: 65.535},
	0x4A: {name: "voltage", size: 2, factor: 0.1, unit: "V", hi: 6553.5},
	0x4B: {name: "gas", size: 3, factor: 0.001, unit: "m3", hi: 4294967.295},
	0x4C: {name: "gas", size: 4, factor: 0.001, unit: "m3", hi: 4294967.295},
	0x4D: {name: "energy", size: 4, factor: 0.001, unit: "kW.h", hi: 4294967.295},
	0x4E: {name: "volume", size: 4, factor: 0.001, unit: "L", hi: 4294967.295},
	0x4F: {name: "water", size: 4, factor: 0.001, unit: "L", hi: 4294967.295},
	0x50: {size: 4}, // a time
	0x51: {name: "acceleration", size: 2, factor: 0.001, unit: "m/s2", lo: -2147.483648, hi: 2147.483647},
	0x52: {name: "gyroscope", size: 2, factor: 0.001, unit: "deg/s", hi: 65.535},
	0x53: {size: variable}, // text
	0x54: {size: variable}, // bytes
	0x55: {name: "stored_volume", size: 4, factor: 0.001, unit: "L", hi: 4294967.295},
	0x56: {name: "conductivity", size: 2, factor: 1, unit: "uS/cm", hi: math.MaxUint16},
	0x57: {name: "temperature", size: 1, signed: true, factor: 1, unit: "Cel", lo: kelvinZero, hi: 327.67},
	0x58: {name: "temperature", size: 1, signed: true, factor: 0.35, unit: "Cel", lo: kelvinZero, hi: 327.67},
	0x59: {name: "count", size: 1, signed: true, factor: 1, lo: math.MinInt32, hi: wide},
	0x5A: {name: "count", size: 2, signed: true, factor: 1, lo: math.MinInt32, hi: wide},
	0x5B: {name: "count", size: 4, signed: true, factor: 1, lo: math.MinInt32, hi: wide},
	0x5C: {name: "power", size: 4, signed: true, factor: 0.01, unit: "W", lo: -21474836.48, hi: 21474836.47},
	0x5D: {name: "current", size: 2, signed: true, factor: 0.001, unit: "A", lo: -32.768, hi: 65.535},
	0x5E: {name: "direction", size: 2, factor: 0.01, unit: "deg", hi: 360},
	0x5F: {name: "precipitation", size: 2, factor: 0.1, unit: "mm", hi: 6553.5},
	0x60: {name: "channel", size: 1, factor: 1, hi: 255},
	0x61: {name: "rotational_speed", size: 2, factor: 1, unit: "/min", hi: math.MaxUint16},
	0x62: {name: "speed", size: 4, signed: true, factor: 0.000001, unit: "m/s", lo: -2147.483648, hi: 2147.483647},
	0x63: {name: "acceleration", size: 4, signed: true, factor: 0.000001, unit: "m/s2", lo: -2147.483648, hi: 2147.483647},
	0x64: {name: "light_level", size: 1, factor: 1, hi: 255},
	0xF0: {size: 2}, // type of the device
	0xF1: {size: 4}, // versions of its firmware
	0xF2: {size: 3},
}

// presses are the events of a button, by number.
var presses = map[byte]string{
	1: "press", 2: "double_press", 3: "triple_press", 4: "long_press", 5: "long_double_press", 6: "long_triple_press",
	0x80: "hold_press", 0xFE: "hold_press", // Shelly's before its firmware 1.0.20
}

// point returns the point of an object.
func (o *object) point(name string) device.Point {
	p := device.Point{Name: name, Kind: device.KindState, Description: o.about}
	switch {
	case o.event:
		p.Kind = device.KindEvent
	case o.factor != 0:
		p.Kind, p.Unit, p.Range = device.KindMeasurement, o.unit, device.Range{Min: o.lo, Max: o.hi}
	}
	return p
}

// named returns the object of a point's name, nil for none.
func named(name string) *object {
	for i := range objects {
		if name != "" && objects[i].name == name {
			return &objects[i]
		}
	}
	return nil
}

// value decodes data, of o's size; none for an event that did not happen.
func (o *object) value(data []byte) device.Value {
	switch {
	case o.event && o.name == "button":
		if name := presses[data[0]]; name != "" {
			return device.Text(name)
		}
		return device.Value{}
	case o.event:
		switch steps := float64(data[1]); data[0] {
		case 1:
			return device.Number(-steps)
		case 2:
			return device.Number(steps)
		}
		return device.Value{}
	case o.factor == 0:
		return device.Bool(data[0] != 0)
	}
	var n uint32
	for i := len(data) - 1; i >= 0; i-- {
		n = n<<8 | uint32(data[i])
	}
	number := float64(n)
	if o.signed {
		unused := 32 - 8*len(data)
		number = float64(int32(n<<unused) >> unused)
	}
	return device.Number(device.Tidy(number * o.factor))
}
