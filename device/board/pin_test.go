package board

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPin(t *testing.T) {
	for text, want := range map[string]string{
		"GPIO17": "GPIO17", "gpio17": "GPIO17", "GPIO0": "GPIO0", "Gpio27": "GPIO27",
		"P1_11": "GPIO17", "p1-11": "GPIO17", "P1_3": "GPIO2", "P1_40": "GPIO21", "P1_27": "GPIO0", "P1_28": "GPIO1", "P1_08": "GPIO14",
		"gpiochip0/17": "gpiochip0/17", "gpiochip12/0": "gpiochip12/0", "pinctrl-rp1/3": "pinctrl-rp1/3",
		"SPI_CE1_N": "SPI_CE1_N", "USR LED 0": "USR LED 0", "PIN11": "PIN11", "GPIO_GCLK": "GPIO_GCLK",
	} {
		var p Pin
		if err := p.UnmarshalText([]byte(text)); err != nil || string(p) != want {
			t.Errorf("%q is %q, %v; want %q", text, p, err, want)
		}
		var again Pin
		if err := again.UnmarshalText([]byte(p)); err != nil || again != p {
			t.Errorf("%q is read back as %q, %v", p, again, err)
		}
	}
	for text, want := range map[string]string{
		"17":                    "P1_17 ",
		"GPIO_17":               "write GPIO17, not GPIO_17",
		"gpio-04":               "write GPIO4, not gpio-04",
		"BCM17":                 "write GPIO17",
		"GPIO017":               "write GPIO17",
		"GPIO58":                "no Raspberry Pi has GPIO58",
		"GPIO99":                "no Raspberry Pi has GPIO99",
		"GPIO99999999999999999": "no Raspberry Pi has",
		"11":                    "(GPIO17)",
		"0":                     "write GPIO0 for that BCM number",
		"99999999":              "not a number",
		"P1_1":                  "P1_1 is 3.3V, which is no line",
		"P1_2":                  "P1_2 is 5V",
		"P1_6":                  "P1_6 is ground",
		"P1_41":                 "positions 1 to 40, not 41",
		"P1_0":                  "positions 1 to 40",
		"":                      "such as GPIO17",
		"gpiochip0/":            "takes a line",
		"gpiochip0/-1":          "takes a line",
		"/dev/mem":              "takes a line",
		"a\x00b":                "takes a line",
		" GPIO1":                "takes a line",
		strings.Repeat("x", 32): "takes a line",
	} {
		var p Pin
		if err := p.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || p != "" {
			t.Errorf("%q gives %q, %v; want %q", text, p, err, want)
		}
	}
}

// TestHeader counts what is printed beside every 40-pin header.
func TestHeader(t *testing.T) {
	count := map[string]int{}
	for _, what := range header {
		count[what]++
	}
	if len(header) != 40 || count["ground"] != 8 || count["3.3V"] != 2 || count["5V"] != 2 || len(count) != 28+3 {
		t.Errorf("%d positions: %v", len(header), count)
	}
}

func TestPinAsJSON(t *testing.T) {
	var c struct{ Pin Pin }
	if err := json.Unmarshal([]byte(`{"Pin":"P1_11"}`), &c); err != nil || c.Pin != "GPIO17" {
		t.Errorf("%v, %v", c, err)
	}
	if text, err := json.Marshal(c); err != nil || string(text) != `{"Pin":"GPIO17"}` {
		t.Errorf("%s, %v", text, err)
	}
}

func FuzzPin(f *testing.F) {
	for _, text := range []string{"GPIO17", "P1_11", "gpiochip0/17", "17", "SPI_CE1_N"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p, again Pin
		if p.UnmarshalText([]byte(text)) != nil {
			if p != "" {
				t.Errorf("%q is refused and read as %q", text, p)
			}
			return
		}
		if err := again.UnmarshalText([]byte(p)); err != nil || again != p || len(p) > 31+1+4 {
			t.Errorf("%q is %q, and that is %q, %v", text, p, again, err)
		}
	})
}
