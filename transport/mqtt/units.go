package mqtt

import (
	"strings"

	"agentsite/agents"
)

// inHome is a unit as Home Assistant writes it, and the class of what is measured in it; "" where the unit alone
// does not say.
type inHome struct{ unit, class string }

// units are UCUM codes. Units and classes are those of SensorDeviceClass in Home Assistant:
// https://developers.home-assistant.io/docs/core/entity/sensor/#available-device-classes
var units = map[string]inHome{
	"Cel": {"°C", "temperature"}, "K": {"K", "temperature"}, "[degF]": {"°F", "temperature"},
	"Pa": {"Pa", "pressure"}, "hPa": {"hPa", "pressure"}, "kPa": {"kPa", "pressure"}, "mbar": {"mbar", "pressure"},
	"bar": {"bar", "pressure"},
	"lx":  {"lx", "illuminance"},
	"V":   {"V", "voltage"}, "mV": {"mV", "voltage"}, "A": {"A", "current"}, "mA": {"mA", "current"},
	"W": {"W", "power"}, "kW": {"kW", "power"}, "W.h": {"Wh", "energy"}, "kW.h": {"kWh", "energy"},
	"Hz": {"Hz", "frequency"}, "kHz": {"kHz", "frequency"}, "MHz": {"MHz", "frequency"}, "GHz": {"GHz", "frequency"},
	"ms": {"ms", "duration"}, "s": {"s", "duration"}, "min": {"min", "duration"}, "h": {"h", "duration"},
	"d":  {"d", "duration"},
	"mm": {"mm", "distance"}, "cm": {"cm", "distance"}, "m": {"m", "distance"}, "km": {"km", "distance"},
	"m/s": {"m/s", "speed"}, "km/h": {"km/h", "speed"},
	"g": {"g", "weight"}, "kg": {"kg", "weight"},
	"mL": {"mL", "volume_storage"}, "L": {"L", "volume_storage"}, "m3": {"m³", "volume_storage"},
	"L/min": {"L/min", "volume_flow_rate"}, "m3/h": {"m³/h", "volume_flow_rate"},
	"By": {"B", "data_size"}, "kBy": {"kB", "data_size"}, "MBy": {"MB", "data_size"}, "GBy": {"GB", "data_size"},
	"KiBy": {"KiB", "data_size"}, "MiBy": {"MiB", "data_size"}, "GiBy": {"GiB", "data_size"},
	"%": {"%", ""}, "[ppm]": {"ppm", ""}, "[ppb]": {"ppb", ""}, "ug/m3": {"µg/m³", ""}, "deg": {"°", ""},
	"Ohm": {"Ω", ""}, "1": {}, "": {},
	"dB": {"dB", ""},
}

// byName are classes of units that measure several things: the first whose word is in the point's name counts.
var byName = map[string][]struct{ word, class string }{
	"%":     {{"humidity", "humidity"}, {"moisture", "moisture"}, {"soil", "moisture"}, {"battery", "battery"}},
	"[ppm]": {{"co2", "carbon_dioxide"}},
	"ug/m3": {{"pm25", "pm25"}, {"pm2_5", "pm25"}, {"pm10", "pm10"}, {"pm1", "pm1"}},
}

// unitOf returns the unit of a point as Home Assistant writes it, and the class of what it measures. A unit that is
// not known there stays as it is.
func unitOf(p agents.Point) (unit, class string) {
	u, known := units[p.Unit]
	if !known {
		return p.Unit, ""
	}
	_, name, _ := strings.Cut(p.Point, "/")
	for _, c := range byName[p.Unit] {
		if strings.Contains(name, c.word) {
			return u.unit, c.class
		}
	}
	return u.unit, u.class
}
