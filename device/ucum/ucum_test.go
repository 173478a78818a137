package ucum

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, code := range []string{
		"", "Cel", "%", "Pa", "hPa", "lx", "V", "1", "By", "[degF]", "[ppm]", "ug/m3", "m/s2", "/min", "{count}", "{pulses}/min",
		"kW.h", "10*3/ul", "dB[SPL]", "W.h", "K", "A", "S", "W", "H", "pF", "L/min", "[pH]", "h", "min", "deg", "m.s-2",
	} {
		if err := Check(code); err != nil {
			t.Errorf("%q: %v", code, err)
		}
	}
	for code, could := range map[string]string{
		"°C": " in UCUM: write Cel", "degC": " in UCUM: write Cel", "C": " in UCUM: write Cel", "F": " in UCUM: write \"[degF]\"", " Celsius ": " in UCUM: write Cel", "℃": " in UCUM: write Cel", "°F": " in UCUM: write \"[degF]\"", "%RH": " in UCUM: write \"%\"",
		"ppm": " in UCUM: write \"[ppm]\"", "lux": " in UCUM: write lx", "Ω": " in UCUM: write Ohm", "µg/m³": " in UCUM: write ug/m3", "μg/m³": " in UCUM: write ug/m3", "kWh": " in UCUM: write kW.h",
		"mm³": " in UCUM: write mm3", "MVA": " in UCUM: write MV.A", "mm³ of rain": "not a unit",
		"grams per litre": "not a unit", "m//s": "not a unit", "{}": "not a unit", "m/": "not a unit",
		"a\x00": "not a unit", strings.Repeat("m", maxUnit+1): "not a unit",
	} {
		if err := Check(code); err == nil || !strings.Contains(err.Error(), could) {
			t.Errorf("%q: %v, want %q", code, err, could)
		}
	}
}

// TestCommonUnits: each proposed unit is accepted.
func TestCommonUnits(t *testing.T) {
	for wrong, could := range notations {
		if err := Check(could); err != nil || wrong != strings.ToLower(wrong) {
			t.Errorf("%q: %q: %v", wrong, could, err)
		}
	}
}

func TestSame(t *testing.T) {
	for text, code := range map[string]string{"°C": "Cel", "Cel": "Cel", "celsius": "Cel", "kWh": "kW.h", " W ": "W", "%": "%", "µg/m³": "ug/m3", "": "",
		"MWh": "MW.h", "VAh": "V.A.h", "VA": "V.A", "m³/h": "m3/h", "kΩ": "kOhm", "µA": "uA"} {
		if !Same(text, code) {
			t.Errorf("%q is not %q", text, code)
		}
	}
	for text, code := range map[string]string{"°F": "Cel", "kW": "W", "F": "Cel", "": "Cel", "W": "", "mW": "MW"} {
		if Same(text, code) {
			t.Errorf("%q is %q", text, code)
		}
	}
}
