package config

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

var update = flag.Bool("update", false, "write the error texts as they are now into testdata/bad")

const greenhouse = `# A whole file
site: { name: greenhouse }
http: { listen: "127.0.0.1:9000", hosts: [greenhouse.local, 192.168.1.20] }
devices:
  climate: { driver: thermo, bus: i2c-1, address: 0x77, every: 30s }
  pump:
    driver: relay
    pin: GPIO17
    active_low: on
    safe: "off"
    lease: 1m
    max_on: 2m
    min_off: 0
    min_on: 5s
    duty: 20m/1h
    rate: 20/1h
    requires: { point: climate/temperature, within: 5..30 }
  house:
    driver: multi
    seed: -3
    labels: { a: 1.10, b: off }
    steps:
      - { after: 1m30s, gain: 2 }
      - after: 0
    points:
      heater: { max_on: unlimited, safe: on, interlock: { group: heat, gap: 1s } }
      vent: { range: 10..90, safe: 10, slew: 90/m, ramp_to_safe: on, interlock: { group: heat, gap: 1s }, confirm: owner }
  door: { driver: servo, range: 0..90, safe: 45 }
`

func span(d time.Duration) *time.Duration { return &d }

func TestParse(t *testing.T) {
	site, err := Parse("agentsite.yaml", []byte(greenhouse), fakes())
	if err != nil {
		t.Fatal(err)
	}
	if site.Name != "greenhouse" || site.HTTP.Listen != "127.0.0.1:9000" || len(site.HTTP.Hosts) != 2 || len(site.Devices) != 4 {
		t.Fatalf("site = %+v", site)
	}
	gain := 2.0
	wants := []struct {
		name   string
		every  time.Duration
		config any
		output []Output
	}{
		{"climate", 30 * time.Second, &thermo{i2c: i2c{Bus: "i2c-1"}, Address: 0x77, Offset: -0.5}, nil},
		{"pump", DefaultEvery, &relay{Pin: "GPIO17", Bus: "gpio", ActiveLow: true}, []Output{{
			Point: device.Point{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)},
			Lease: span(time.Minute), MaxOn: span(2 * time.Minute), MinOff: span(0), MinOn: span(5 * time.Second),
			Duty: &Duty{20 * time.Minute, time.Hour}, Rate: &Rate{20, time.Hour},
			Requires: &Requirement{Point: "climate/temperature", Within: &device.Range{Min: 5, Max: 30}, MaxAge: 90 * time.Second},
		}}},
		{"house", DefaultEvery, &multi{
			Seed: -3, Labels: map[string]string{"a": "1.10", "b": "off"},
			Steps: []step{{After: 90 * time.Second, Gain: &gain}, {}},
		}, []Output{
			{Point: device.Point{Name: "heater", Kind: device.KindSwitch, Safe: device.Bool(true)}, MaxOn: span(Unlimited), Interlock: &Interlock{"heat", time.Second}},
			{Point: device.Point{Name: "vent", Kind: device.KindLevel, Range: device.Range{Min: 10, Max: 90}, Safe: device.Number(10)}, Slew: &Slew{1.5}, Ramp: true, Interlock: &Interlock{"heat", time.Second}, Confirm: true},
		}},
		{"door", DefaultEvery, &servo{Range: device.Range{Min: 0, Max: 90}, Pulse: time.Millisecond}, []Output{{
			Point: device.Point{Name: "angle", Kind: device.KindLevel, Range: device.Range{Min: 0, Max: 90}, Safe: device.Number(45)},
		}}},
	}
	for i, want := range wants {
		d := site.Devices[i]
		if d.Name != want.name || d.Every != want.every || !reflect.DeepEqual(d.Config, want.config) {
			t.Errorf("%s: got %+v, every %v, config %+v", want.name, d.Name, d.Every, d.Config)
		}
		desc := d.Config.(driver.Describer).Describe()
		if got, err := d.Points(desc); err != nil || !reflect.DeepEqual(got.Outputs, want.output) {
			t.Errorf("%s: outputs %+v, %v; want %+v", want.name, got.Outputs, err, want.output)
		}
	}
}

// TestAsWritten: the type of a value comes from its key, and a text or a name is never read as a number.
func TestAsWritten(t *testing.T) {
	const text = "site: { name: 007 }\ndevices:\n  0x1: { driver: multi, seed: +3, labels: " +
		"{ a: 010, b: 0x77, c: 1_000, d: 1e3, e: 'off', f: .5, g: 2026-01-01, 010: x, 1.10: y, on: z } }\n" +
		"  2: { driver: relay, pin: GPIO1, active_low: \"on\" }\n"
	site, err := Parse("a.yaml", []byte(text), fakes())
	if err != nil {
		t.Fatal(err)
	}
	want := &multi{Seed: 3, Labels: map[string]string{"a": "010", "b": "0x77", "c": "1_000", "d": "1e3", "e": "off", "f": ".5",
		"g": "2026-01-01", "010": "x", "1.10": "y", "on": "z"}}
	if got := site.Devices[0]; site.Name != "007" || got.Name != "0x1" || !reflect.DeepEqual(got.Config, want) {
		t.Errorf("%s %s: %+v", site.Name, got.Name, got.Config)
	}
	if got := site.Devices[1]; got.Name != "2" || !got.Config.(*relay).ActiveLow {
		t.Errorf("%s: %+v", got.Name, got.Config)
	}
	for _, wrong := range []string{"seed: 1.5", "seed: 010", "seed: 1_0", "seed: 0b1", "seed: 1e1", "seed: '3'", "seed:", "seed: ~",
		"steps: [{ after: 1m, gain: .inf }]", "steps: [{ after: 1m, gain: 1_0 }]", "steps: [{ after: 5 }]", "steps: [{ after: -5s }]"} {
		if _, err := Parse("a.yaml", []byte("site: { name: a }\ndevices: { h: { driver: multi, "+wrong+" } }"), fakes()); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, text := range []string{"site: { name: a }", "site: { name: a }\ndevices:\n", "\ufeffsite:\r\n  name: a\r\ndevices: {}\r\n"} {
		site, err := Parse("a.yaml", []byte(text), fakes())
		if err != nil {
			t.Fatal(err)
		}
		if site.Name != "a" || site.HTTP.Listen != DefaultListen || site.HTTP.Hosts != nil || site.Devices != nil {
			t.Errorf("%q gives %+v", text, site)
		}
	}
}

// TestBad reads testdata/bad: the file, a line "-- error --", and the exact text
// that its owner sees.
func TestBad(t *testing.T) {
	const mark = "-- error --\n"
	files, err := filepath.Glob("testdata/bad/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, _ := bytes.Cut(text, []byte(mark))
			_, err = Parse("agentsite.yaml", input, fakes())
			if err == nil {
				t.Fatal("the file was accepted")
			}
			got := err.Error() + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(string(input)+mark+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// TestBounds holds what is too large for a golden file: each ends in an error, and
// soon.
func TestBounds(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"large", strings.Repeat("#", MaxBytes+1), "1 MiB"},
		{"brackets", strings.Repeat("[", 10_000), "nested more than 16 deep"},
		{"braces", strings.Repeat("{a: ", 4_000), "nested more than 16 deep"},
		{"dashes", strings.Repeat("- ", 8_000), "nested more than 16 deep"},
		{"keys", strings.Repeat("a:\n", 300_000), "too many parts"},
		{"keys within bounds", strings.Repeat("a:\n", maxTokens/4), "a is written twice"},
		{"lists within bounds", "site:\n" + strings.Repeat("- \n", maxTokens/2), "not a list"},
		{"quotes", strings.Repeat(`"`, MaxBytes), "too many parts"},
		{"empty lines", "a: |" + strings.Repeat("\n", MaxBytes-8), "empty lines in a row"},
		{"lines of spaces", "a: >" + strings.Repeat("\n  ", 100_000), "empty lines in a row"},
		{"lines of tabs", "a: |\n  x" + strings.Repeat("\n\t", 100_000), "empty lines in a row"},
		{"empty lines within bounds", "a: |" + strings.Repeat(strings.Repeat("\n", maxBlank)+"  x", MaxBytes/(maxBlank+3)-1), "a"},
		{"question marks", strings.Repeat("? ", 100), "without a question mark"},
		{"tags", strings.Repeat("!!a ", 100), "tags (!) are not used"},
		{"not UTF-8", "site: { name: \xff }", "a.yaml:1:15: this is not UTF-8"},
		{"UTF-16", "\xff\xfes\x00i\x00", "a.yaml:1:1: this is not UTF-8"},
		{"control", "site: { name: a\x00b }", "a.yaml:1:16: the control character U+0000"},
		{"long line", "site: { name: a }\nhttp: { hosts: [" + strings.Repeat("a, ", 100) + "B] }", "write B as b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			begin := time.Now()
			_, err := Parse("a.yaml", []byte(tc.text), fakes())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if took := time.Since(begin); took > time.Minute { // seconds on an emulated processor beside others
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agentsite.yaml")
	if _, _, _, err := LoadFile(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	if err := os.WriteFile(path, []byte("site: { name: a }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if site, _, _, err := LoadFile(path, nil); err != nil || site.Name != "a" {
		t.Errorf("got %+v, %v", site, err)
	}
}

func TestErrorIsLocated(t *testing.T) {
	_, err := Parse("a.yaml", []byte("site: { nam: a }\n"), nil)
	var located *Error
	if !errors.As(err, &located) || located.Line != 1 || located.File != "a.yaml" {
		t.Fatalf("got %#v", err)
	}
	_, err = Parse("a.yaml", []byte("site: { name: a }\ndevices: { t: { driver: thermo, address: 1 } }\n"), fakes())
	var fault *device.Fault
	if !errors.As(err, &fault) || fault.Kind != device.Invalid {
		t.Errorf("the driver's fault is lost: %v", err)
	}
}

// TestErrorf is how a guard's refusal of a policy finds its line.
func TestErrorf(t *testing.T) {
	const text = `site: { name: a }
devices:
  p:
    driver: probe
    points:
      fan: { lease: 15m }
    max_on: 1h
`
	site, err := Parse("a.yaml", []byte(text), fakes())
	if err != nil {
		t.Fatal(err)
	}
	d := site.Devices[0]
	for _, tc := range []struct {
		point, key   string
		line, column int
	}{
		{"fan", "lease", 6, 14},
		{"fan", "max_on", 7, 5},
		{"fan", "safe", 6, 7},
		{"", "driver", 4, 5},
		{"", "", 3, 3},
		{"lamp", "safe", 3, 3},
	} {
		var got *Error
		if err := d.Errorf(tc.point, tc.key, "no"); !errors.As(err, &got) || got.Line != tc.line || got.Column != tc.column {
			t.Errorf("%s %s: %v, want line %d column %d", tc.point, tc.key, err, tc.line, tc.column)
		}
	}
	// What the driver knows only once it is open is checked then, with the line.
	opened := device.Description{Points: []device.Point{{Name: "fan", Kind: device.KindState}, {Name: "lamp", Kind: device.KindSwitch, Safe: device.Bool(false)}}}
	const want = `a.yaml:6:14: p/fan: lease is not for a state, which takes name; remove it
    6 |       fan: { lease: 15m }
      |              ^`
	if _, err := d.Points(opened); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestSameRequirement: a sensor that is read less often makes another pump of one whose
// max_age follows from that.
func TestSameRequirement(t *testing.T) {
	pump := func(every, more string) Device {
		t.Helper()
		site, err := Parse("a.yaml", []byte("site: { name: a }\ndevices:\n  pump: { driver: relay, pin: GPIO1, requires: { point: t/temperature, within: 0..5"+more+" } }\n  t: { driver: thermo, every: "+every+" }\n"), fakes())
		if err != nil {
			t.Fatal(err)
		}
		return site.Devices[0]
	}
	if !pump("10s", "").Same(pump("10s", "")) || pump("10s", "").Same(pump("20s", "")) || !pump("10s", ", max_age: 1m").Same(pump("20s", ", max_age: 1m")) {
		t.Error("a max_age that nobody wrote does not follow its sensor")
	}
}
