// Package ucum checks and shows units in the Unified Code for Units of Measure (ucum.org).
package ucum

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"agentsite/device"
)

// maxUnit limits a unit, which is part of every reading.
const maxUnit = 24

// form matches UCUM codes of sensors' units: parts joined by dots and slashes, each with a {remark}
// or without.
var form = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/?` + unitPart + `([./]` + unitPart + `)*$`) })

// unitLetters are those of a unitPart without a remark.
const unitLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%'\"*^_+[]-"

const unitPart = `([A-Za-z0-9%'"*^_+\[\]-]+(\{[!-z|~]+\})?|\{[!-z|~]+\})`

// notations maps common notations, in small letters, to UCUM codes.
var notations = map[string]string{
	"c": "Cel", "f": "[degF]", // a home has no whole coulombs and farads
	"°c": "Cel", "degc": "Cel", "celsius": "Cel", "℃": "Cel", "°f": "[degF]", "degf": "[degF]", "fahrenheit": "[degF]", "℉": "[degF]",
	"kelvin": "K", "°": "deg", "degrees": "deg",
	"percent": "%", "%rh": "%", "rh": "%", "ppm": "[ppm]", "ppb": "[ppb]", "ph": "[pH]", "psi": "[psi]",
	"mmhg": "mm[Hg]", "inhg": "[in_i'Hg]",
	"lux": "lx", "volt": "V", "volts": "V", "amp": "A", "ampere": "A", "watt": "W", "watts": "W", "ohm": "Ohm", "ohms": "Ohm", "ω": "Ohm", "kω": "kOhm",
	"kwh": "kW.h", "wh": "W.h", "mah": "mA.h", "dbm": "dB[mW]", "pascal": "Pa", "hertz": "Hz", "rpm": "/min",
	"m/s^2": "m/s2", "µs/cm": "uS/cm",
	"sec": "s", "second": "s", "seconds": "s", "minute": "min", "minutes": "min", "hour": "h", "hours": "h", "bytes": "By",
}

// symbols holds the usual forms of UCUM codes.
var symbols = map[string]string{
	"Cel": "°C", "[degF]": "°F", "deg": "°", "Ohm": "Ω", "kOhm": "kΩ", "um": "µm", "us": "µs", "uA": "µA", "uV": "µV",
	"mm[Hg]": "mmHg", "[in_i'Hg]": "inHg", "ug/m3": "µg/m³", "ug/m^3": "µg/m³", "g/m3": "g/m³", "m/s2": "m/s²",
	"m2": "m²", "m3": "m³",
	"[ppm]": "ppm", "[ppb]": "ppb", "dB[SPL]": "dB", "By": "bytes", "1": "", "{count}": "",
}

// Symbol returns a unit as people write it, and a code that has no such form unchanged.
func Symbol(code string) string {
	if u, ok := symbols[code]; ok {
		return u
	}
	return code
}

// plainLetters writes letters that UCUM does not have with those that it has. Two of them look alike.
var plainLetters = strings.NewReplacer("²", "2", "³", "3", "µ", "u", "μ", "u", "Ω", "Ohm")

// products are units that are written without a dot, with at most one letter before them: MWh.
var products = []struct{ written, code string }{{"VAh", "V.A.h"}, {"Wh", "W.h"}, {"Ah", "A.h"}, {"VA", "V.A"}}

// codeFor returns the UCUM code for a common notation, and any other text as it is.
func codeFor(text string) string {
	text = strings.TrimSpace(text)
	asked := strings.ReplaceAll(strings.ToLower(text), "μ", "µ")
	if code, known := notations[asked]; known {
		return code
	}
	for _, p := range products {
		if prefix, is := strings.CutSuffix(text, p.written); is && len(prefix) <= 1 {
			return prefix + p.code
		}
	}
	return plainLetters.Replace(text)
}

// Same reports whether a text, in UCUM or as people or other programs write units (°C, W, kWh), means the unit of a
// code.
func Same(text, code string) bool {
	text = strings.TrimSpace(text)
	return text == code || codeFor(text) == code || text == Symbol(code)
}

// Check accepts a text in the form of a UCUM code (Cel, %, Pa, ug/m3, {count}) and the empty
// unit. Its fault for a common spelling suggests the code.
func Check(code string) error {
	if could := codeFor(code); could != code && wellFormed(could) {
		write := could
		if strings.ContainsAny(could[:1], "%[{/*") { // which YAML would not take for text
			write = strconv.Quote(could)
		}
		return device.Faultf(device.Invalid, "%q is %s in UCUM: write %s", code, could, write)
	}
	if !wellFormed(code) {
		return device.Faultf(device.Invalid, "%q is not a unit as UCUM writes them, such as Cel, %%, Pa, lx, V or {count}; it has at most %d letters and no spaces", device.Clip(code, 60), maxUnit)
	}
	return nil
}

func wellFormed(code string) bool {
	plain := strings.Trim(code, unitLetters) == "" // most are, and need no regular expression
	return len(code) <= maxUnit && (plain || form().MatchString(code))
}

// Known returns the UCUM code for a notation that devices use, also for none; ok is false for a text that is no unit.
func Known(text string) (code string, ok bool) {
	code = codeFor(text)
	return code, Check(code) == nil
}
