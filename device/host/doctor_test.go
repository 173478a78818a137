package host

import (
	"strings"
	"testing"
)

func TestFindings(t *testing.T) {
	for word, want := range map[string]string{
		"0\n": "", "50005\n": "problem power, warning processor", "0x50000": "warning power, note processor",
		"1": "problem power", "80008": "warning processor", "80000": "note processor", "rubbish": "",
	} {
		var got []string
		for _, f := range Findings(tree{throttled: word}.write(t)) {
			got = append(got, string(f.Severity)+" "+f.Subject)
			if f.Says == "" || f.Do == "" {
				t.Errorf("%q: %+v says nothing", word, f)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %v, want %s", word, got, want)
		}
	}
	volt := "sys/class/hwmon/hwmon1/"
	if f := Findings(tree{volt + "name": "rpi_volt\n", volt + "in0_lcrit_alarm": "1\n"}.write(t)); len(f) != 1 || f[0] != weak {
		t.Error(f)
	}
	if f := Findings(tree{volt + "name": "rpi_volt\n", volt + "in0_lcrit_alarm": "0\n"}.write(t)); f != nil {
		t.Error(f)
	}
}
