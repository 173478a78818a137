package esphome

import (
	"strings"

	"agentsite/device"
	"agentsite/device/ucum"
)

// units maps the units of ESPHome, those of esphome/const.py and others that people write, to UCUM codes. A G is there
// the acceleration of gravity, not the gauss of UCUM.
var units = map[string]string{
	"": "", "°C": "Cel", "°F": "[degF]", "K": "K", "%": "%", "Pa": "Pa", "hPa": "hPa", "kPa": "kPa",
	"mbar": "mbar", "bar": "bar", "psi": "[psi]", "lx": "lx", "lm": "lm", "V": "V", "mV": "mV", "kV": "kV",
	"A": "A", "mA": "mA", "µA": "uA", "W": "W", "mW": "mW", "kW": "kW", "VA": "V.A", "kVA": "kV.A",
	"Wh": "W.h", "kWh": "kW.h", "MWh": "MW.h", "Hz": "Hz", "kHz": "kHz", "MHz": "MHz", "dBm": "dB[mW]",
	"dB": "dB", "ppm": "[ppm]", "ppb": "[ppb]", "µg/m³": "ug/m3", "mg/m³": "mg/m3", "g/m³": "g/m3", "m³": "m3",
	"m³/h": "m3/h", "L": "L", "mL": "mL", "L/min": "L/min", "L/h": "L/h", "g": "g", "kg": "kg", "mm": "mm",
	"cm": "cm", "m": "m", "km": "km", "m/s": "m/s", "km/h": "km/h", "mm/h": "mm/h", "m/s²": "m/s2", "°": "deg",
	"°/s": "deg/s", "s": "s", "ms": "ms", "µs": "us", "min": "min", "h": "h", "d": "d", "W/m²": "W/m2",
	"µS/cm": "uS/cm", "mS/cm": "mS/cm", "pH": "[pH]", "µT": "uT", "Ω": "Ohm", "kΩ": "kOhm", "J": "J",
	"kJ": "kJ", "B": "By", "kB": "kBy", "RPM": "/min", "pulses/min": "/min", "steps": "{steps}",
	"pulses": "{pulses}", "G": "[g]", "µm": "um", "VAR": "V.A{reactive}", "kVAR": "kV.A{reactive}", "VAh": "V.A.h",
	"kVAh": "kV.A.h", "VARh": "V.A.h{reactive}", "kVARh": "kV.A.h{reactive}", "Bq/m³": "Bq/m3", "µSv/h": "uSv/h",
	"#/cm³": "/cm3",
}

// unitOf returns the UCUM code of a unit of a node; ok is false for an unknown one.
func unitOf(unit string) (code string, ok bool) {
	unit = strings.ReplaceAll(unit, "μ", "µ") // two letters that look alike
	if code, ok = units[unit]; !ok && ucum.Check(unit) == nil {
		return unit, true
	}
	return code, ok
}

// ranges are what quantities can be, by their unit, for the entries that are offered to the owner.
var ranges = map[string]device.Range{
	"Cel": {Min: -55, Max: 150}, "[degF]": {Min: -67, Max: 302}, "K": {Min: 0, Max: 20000},
	"%": {Min: 0, Max: 100}, "hPa": {Min: 0, Max: 2000}, "Pa": {Min: -200000, Max: 200000},
	"kPa": {Min: -200, Max: 2000}, "bar": {Min: -1, Max: 100}, "lx": {Min: 0, Max: 200000},
	"V": {Min: -1000, Max: 1000}, "mV": {Min: -100000, Max: 100000}, "A": {Min: -500, Max: 500},
	"mA": {Min: -100000, Max: 100000}, "W": {Min: -100000, Max: 100000}, "kW": {Min: -100, Max: 100},
	"Hz": {Min: 0, Max: 1000}, "dB[mW]": {Min: -150, Max: 50}, "[ppm]": {Min: 0, Max: 100000},
	"[ppb]": {Min: 0, Max: 100000}, "ug/m3": {Min: 0, Max: 10000}, "deg": {Min: -360, Max: 360},
	"[pH]": {Min: 0, Max: 14}, "m/s": {Min: -100, Max: 100}, "km/h": {Min: 0, Max: 400},
}

// anyRange is for quantities without a range of their own: counters, energies, times.
var anyRange = device.Range{Min: -1e9, Max: 1e9}

func rangeOf(unit string) device.Range {
	if r, ok := ranges[unit]; ok {
		return r
	}
	return anyRange
}
