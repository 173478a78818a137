package site

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/host"
	"agentsite/node/config"
)

var updateDocs = flag.Bool("update", false, "write the table of all drivers into docs/drivers.md")

// smallest has the minimum configuration of each driver: its keys, and the member after the colon
// of a family. A driver without an entry needs none.
var smallest = map[string]string{
	"kernel:":     "bme280, address: 0x76",
	"iio":         ", name: bme280",
	"hwmon":       ", name: lm75",
	"w1":          ", id: 28-0316a2795c1f",
	"thermal":     ", zone: cpu-thermal",
	"led":         ", name: ACT, safe: off",
	"pwm":         ", chip: pwmchip0, safe: off",
	"input":       ", name: gpio-keys",
	"gpio-out":    ", pin: GPIO17, safe: off",
	"relay":       ", pin: GPIO17, safe: off",
	"mosfet":      ", pin: GPIO17, safe: off",
	"buzzer":      ", pin: GPIO17, safe: off",
	"dimmer":      ", pin: GPIO17, safe: 0",
	"servo":       ", pin: GPIO17, safe: 0",
	"motor":       ", forward: GPIO5, backward: GPIO6, safe: 0",
	"gpio-in":     ", pin: GPIO17",
	"button":      ", pin: GPIO17",
	"motion":      ", pin: GPIO17",
	"contact":     ", pin: GPIO17",
	"stop-button": ", pin: GPIO17",
	"hc-sr04":     ", trigger: GPIO5, echo: GPIO6",
	"encoder":     ", pin_a: GPIO5, pin_b: GPIO6",
	"hx711":       ", data: GPIO5, clock: GPIO6",
	"tm1637":      ", clock: GPIO5, data: GPIO6",
	"apa102":      ", lamps: 30, safe: { red: 0, green: 0, blue: 0 }",
	"neopixel":    ", lamps: 30, safe: { red: 0, green: 0, blue: 0 }",
	"mcp23008":    ", outputs: { pump: { pin: GP0, safe: off } }",
	"mcp23017":    ", outputs: { pump: { pin: GPA0, safe: off } }",
	"pcf8574":     ", outputs: { pump: { pin: P0, safe: off } }",
	"pcf8575":     ", outputs: { pump: { pin: P00, safe: off } }",
	"tca9534":     ", outputs: { pump: { pin: P0, safe: off } }",
	"tca9535":     ", outputs: { pump: { pin: P00, safe: off } }",
	"pca9685":     ", outputs: { lamp: { channel: 0, safe: off } }",
	"registers":   ", address: 0x4F, registers: [{ name: t, register: 0, unit: Cel, range: 0..50 }]",
}

// entry is the smallest entry of a driver, as it stands after the device's name.
func entry(d driver.Driver) string { return "{ driver: " + d.Name + smallest[d.Name] + " }" }

func parse(entry string) (*config.Site, error) {
	return config.Parse("a.yaml", []byte("site: { name: a }\ndevices:\n  it: "+entry+"\n"), Drivers(board.New()))
}

// TestDriverList holds the table of docs/drivers.md to the drivers that there are.
// After a new driver: go test ./cmd/internal/site -run DriverList -update
func TestDriverList(t *testing.T) {
	const file, begin, end = "../../../docs/drivers.md", "<!-- drivers -->\n", "<!-- end of drivers -->\n"
	var table strings.Builder
	table.WriteString("| device | shortest configuration | points |\n|---|---|---|\n")
	for _, d := range Drivers(board.New()) {
		cfg, err := parse(entry(d))
		if err != nil {
			t.Errorf("no valid shortest configuration of %s in this test: %v", d.Name, err)
			continue
		}
		fmt.Fprintf(&table, "| %s | `%s` | %s |\n", d.Doc, entry(d), pointsOf(cfg.Devices[0].Config))
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	old, tail, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatal("the page has no place for the table")
	case *updateDocs:
		if err := os.WriteFile(file, []byte(head+begin+table.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != table.String():
		t.Error("the table of docs/drivers.md is not that of the drivers: go test ./cmd/internal/site -run DriverList -update")
	}
}

// pointsOf names the points that an entry makes, as far as they are known without
// hardware.
func pointsOf(c driver.Config) string {
	d, ok := c.(driver.Describer)
	if _, machine := c.(*host.Config); !ok || machine { // which differs
		return "depends on the part"
	}
	var all []string
	for _, p := range d.Describe().Points {
		name := p.Name
		if p.Unit != "" {
			name += " (" + p.Unit + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

var anySafe = regexp.MustCompile(`, safe: (\{[^}]*\}|[a-z0-9]+)`)

// TestSafeIsWritten: only the owner of real hardware knows the safe value. A simulated output may
// know it itself.
func TestSafeIsWritten(t *testing.T) {
	for _, d := range Drivers(board.New()) {
		text := entry(d)
		without := anySafe.ReplaceAllString(text, "")
		cfg, err := parse(without)
		if text != without {
			if err == nil || !strings.HasPrefix(err.Error(), "a.yaml:3:") || !strings.Contains(err.Error(), "safe is missing") {
				t.Errorf("%s: %v", without, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		desc, ok := cfg.Devices[0].Config.(driver.Describer)
		if ok && d.Name != "sim" && slices.ContainsFunc(desc.Describe().Points, func(p device.Point) bool { return p.Kind.Output() }) {
			t.Errorf("%s moves something, and nobody has said what is safe", text)
		}
	}
	// The driver leaves its hardware at safe, so it has to know.
	for _, twice := range []string{
		"{ driver: relay, pin: GPIO17, safe: off, points: { relay: { safe: on } } }",
		"{ driver: mcp23017, outputs: { pump: { pin: GPA0, safe: off } }, safe: on }",
	} {
		if _, err := parse(twice); err == nil || !strings.Contains(err.Error(), "it/") || !strings.Contains(err.Error(), "remove it here") {
			t.Errorf("%s: %v", twice, err)
		}
	}
	if _, err := parse("{ driver: sim, points: { heater: { safe: on } } }"); err != nil {
		t.Error(err)
	}
}
