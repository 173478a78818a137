package sim

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/devicetest"
	"agentsite/device/driver"
)

var (
	_ driver.Describer = (*Config)(nil)
	_ driver.Validator = (*Config)(nil)
)

func TestConformance(t *testing.T) {
	for _, m := range models() {
		for name, speed := range map[string]float64{"": 1, " at full speed": maxSpeed} {
			t.Run(m.name+name, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "outputs")
				devicetest.Options{Level: func(point string) device.Value { return published(t, file, point) }}.Run(t,
					func(t *testing.T) device.Device {
						return openModel(t, Config{Model: m.name, Seed: 7, Speed: speed, OutputsFile: file})
					})
			})
		}
	}
}

func TestDescribeNeedsNoHardware(t *testing.T) {
	for _, m := range models() {
		c := Config{Model: m.name, Seed: 1, Speed: 1}
		if got, want := c.Describe(), openModel(t, c).Describe(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the configuration describes %+v, the device %+v", m.name, got, want)
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	c := Driver().Config()
	if err := c.(driver.Validator).Validate(); err != nil {
		t.Error(err)
	}
	if got := c.(driver.Describer).Describe().Model; got != "simulated greenhouse" {
		t.Errorf("the default is a %s", got)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	tests := []struct {
		config Config
		says   string
	}{
		{Config{Model: "volcano", Speed: 1}, "greenhouse, climate, relay, dimmer"},
		{Config{Model: "relay", Speed: 0}, "speed"},
		{Config{Model: "relay", Speed: -1}, "speed"},
		{Config{Model: "relay", Speed: 3601}, "3600"},
		{Config{Model: "relay", Speed: math.NaN()}, "speed"},
	}
	for _, tt := range tests {
		for verb, err := range map[string]error{"Validate": tt.config.Validate(), "Open": openError(t, &tt.config)} {
			if err == nil || device.AsFault(err).Kind != device.Invalid || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s of %+v: %v, want %q", verb, tt.config, err, tt.says)
			}
		}
	}
	if d := (&Config{Model: "volcano"}).Describe(); len(d.Points) > 0 {
		t.Errorf("a volcano has %v", d.Points)
	}
}

// TestReleased: a release writes no file that a configuration names, and packages and image are built
// as releases.
func TestReleased(t *testing.T) {
	c := Config{Model: "relay", Speed: 1, OutputsFile: "outputs"}
	if err := c.validate(false); device.AsFault(err).Kind != device.Invalid {
		t.Error("a release takes outputs_file:", err)
	}
	if err := c.validate(true); err != nil {
		t.Error(err)
	}
	for _, script := range []string{"packages", "image/build"} {
		text, err := os.ReadFile(filepath.Join("../../deploy", script))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "./cmd/agentsite") && !strings.Contains(line, "release") {
				t.Errorf("%s builds no release: %s", script, line)
			}
		}
	}
}

func TestOutputsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "outputs")
	holds := func(when, want string) {
		t.Helper()
		text, err := os.ReadFile(file)
		got := regexp.MustCompile(`(?m) 1[0-9]{18}$`).ReplaceAllString(string(text), "") // when
		if err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", when, got, err, want)
		}
	}
	dev := openModel(t, Config{Model: "greenhouse", Speed: 1, OutputsFile: file})
	holds("opened", "heater off\nvent 0\npump off\nlamp off\n")
	set(t, dev, "vent", device.Number(42.5))
	set(t, dev, "pump", device.Bool(true))
	holds("moved", "heater off\nvent 42.5\npump on\nlamp off\n")
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	holds("closed", "heater off\nvent 0\npump off\nlamp off\n")
}

// TestAnUnwrittenOutputIsNotConfirmed: Apply fails while the outputs file cannot be written.
func TestAnUnwrittenOutputIsNotConfirmed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	file := filepath.Join(folder, "outputs")
	if err := openError(t, &Config{Model: "relay", Speed: 1, OutputsFile: file}); err == nil {
		t.Error("opened without the folder of its outputs file")
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	dev := openModel(t, Config{Model: "relay", Speed: 1, OutputsFile: file})
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	on := device.Bool(true)
	for range 2 {
		if dev.(device.Actuator).Apply(t.Context(), "relay", on) == nil {
			t.Error("confirmed a value that the file does not have")
		}
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	set(t, dev, "relay", on)
	if got := published(t, file, "relay"); got != on {
		t.Errorf("the file says %v, want on", got)
	}
}

// TestSomebodyElsesHand: a value that another program writes to the outputs file is read back
// until the next move.
func TestSomebodyElsesHand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "outputs")
	dev := openModel(t, Config{Model: "greenhouse", Speed: 1, OutputsFile: file})
	reads := func() string {
		var words []string
		readings, err := dev.(device.Sensor).Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range readings {
			if p, _ := dev.Describe().Point(r.Point); p.Kind.Output() {
				words = append(words, r.Value.String()+" "+string(r.Quality))
			}
		}
		return strings.Join(words, ", ")
	}
	for _, tt := range []struct{ file, want string }{
		{"heater on 1\nvent 41.5 1\npump off 1\nlamp off 1\n", "on good, 41.5 good, off good, off good"},
		{"heater on 1\n", "- fault, - fault, - fault, - fault"},
	} {
		if err := os.WriteFile(file, []byte(tt.file), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := reads(); got != tt.want {
			t.Errorf("%q reads %s", tt.file, got)
		}
	}
	set(t, dev, "heater", device.Bool(false)) // the same value as before, in the device's memory
	if got := reads(); got != "off good, 0 good, off good, off good" {
		t.Error(got)
	}
}

// published returns the value of a point in an outputs file.
func published(t *testing.T, file, point string) device.Value {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, " ")
		value, _, _ := strings.Cut(rest, " ")
		switch {
		case name != point:
		case value == "on", value == "off":
			return device.Bool(value == "on")
		default:
			return device.Number(parse(t, value))
		}
	}
	return device.Value{}
}
