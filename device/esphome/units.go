package esphome

import (
	"agentsite/device"
	"agentsite/device/ucum"
)

// units maps the units of ESPHome, as esphome/const.py has them, to UCUM codes where UCUM has them otherwise. A G is
// there the acceleration of gravity, not the gauss of UCUM.
var units = map[string]string{
	"B": "By", "kB": "kBy", "°/s": "deg/s", "pulses/min": "/min", "steps": "{steps}", "pulses": "{pulses}", "G": "[g]",
	"VAR": "V.A{reactive}", "kVAR": "kV.A{reactive}", "VARh": "V.A.h{reactive}", "kVARh": "kV.A.h{reactive}",
	"Bq/m³": "Bq/m3", "µSv/h": "uSv/h", "#/cm³": "/cm3",
}

// unitOf returns the UCUM code of a unit of a node; ok is false for an unknown one.
func unitOf(unit string) (code string, ok bool) {
	if code, ok = units[unit]; ok {
		return code, true
	}
	return ucum.Known(unit)
}

// ranges are the usual ranges of quantities, by their unit, for the entries that are offered to the owner.
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
