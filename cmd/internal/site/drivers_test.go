package site

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentsite/cmd/internal/ops"
	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/kernel"
	"agentsite/device/scan"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/devices"
)

var updateDocs = flag.Bool("update", false, "write the table of all drivers into docs/drivers.md")

func parse(entry string) (*config.Site, error) {
	return config.Parse("a.yaml", []byte("site: { name: a }\ndevices:\n  it: "+entry+"\n"), Drivers(board.New()))
}

// TestDriverList holds the table and the sections of docs/drivers.md to the drivers that there are.
// After a new driver: go test ./cmd/internal/site -run DriverList -update
func TestDriverList(t *testing.T) {
	const file, begin, end = "../../../docs/drivers.md", "<!-- drivers -->\n", "<!-- end of drivers -->\n"
	var table, sections strings.Builder
	table.WriteString("| device | shortest configuration | points |\n|---|---|---|\n")
	all := Drivers(board.New())
	for _, d := range all {
		page, err := ops.ReadDriver(d, all)
		if err != nil {
			t.Error(err)
			continue
		}
		var points []string
		for _, p := range page.Points {
			points = append(points, p.String())
		}
		fmt.Fprintf(&table, "| %s | `%s` | %s |\n", d.Doc, page.Entry, cmp.Or(strings.Join(points, ", "), "depends on the part"))
		sections.WriteString(section(page))
	}
	table.WriteString(sections.String())
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

// section returns the section of docs/drivers.md about a driver.
func section(p *acts.Driver) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n%s.", p.Driver, strings.ToUpper(p.Doc[:1])+p.Doc[1:])
	if len(p.Also) > 0 {
		fmt.Fprintf(&b, " Found as %s.", strings.Join(p.Also, ", "))
	}
	if p.Note != "" {
		b.WriteString(" " + p.Note)
	}
	fmt.Fprintf(&b, "\n\n```\nNAME: %s\n```\n\n", p.Entry)
	for _, w := range p.Wiring {
		fmt.Fprintf(&b, "- position %d: %s\n", w.Position, w.Line)
	}
	for _, line := range p.Setup {
		fmt.Fprintf(&b, "- config.txt: `%s`\n", line)
	}
	for _, k := range p.Keys {
		if k.Key == "every" {
			continue // of every driver
		}
		name, rest, _ := strings.Cut(k.String(), " ")
		fmt.Fprintf(&b, "- `%s` %s", name, rest)
		if k.Key == "address" && len(p.Addresses) > 0 {
			fmt.Fprintf(&b, "; it can have %s", strings.Join(p.Addresses, ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

var anySafe = regexp.MustCompile(`,? safe: (\{[^}]*\}|[a-z0-9]+)`)

// TestSafeIsWritten: only the owner of real hardware knows the safe value. A simulated output may
// know it itself.
func TestSafeIsWritten(t *testing.T) {
	for _, d := range Drivers(board.New()) {
		text := d.Shortest()
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

// TestPartsOfDrivers: a scan names the parts of each driver on I2C, but for those that look like another's,
// and nobody is sent to the kernel's driver for a part that has one here.
func TestPartsOfDrivers(t *testing.T) {
	alike := []string{"ads1015", "mcp23008", "registers", "tca9535"}
	for _, d := range Drivers(board.New()) {
		if advice := kernel.Instead("/none", d.Name); advice != "" {
			t.Errorf("%s has a driver, and device/kernel/instead.go says: %s", d.Name, advice)
		}
		_, onI2C := d.Config().(interface{ Addresses() []uint16 })
		if onI2C && scan.Knows(d.Name) == slices.Contains(alike, d.Name) {
			t.Errorf("%s: add it to device/scan/signatures.go, or device/scan/parts.go where it cannot be told from others", d.Name)
		}
	}
}

// TestNamesOfParts: a name of a part leads to its driver, and is no name of another driver.
func TestNamesOfParts(t *testing.T) {
	all := Drivers(board.New())
	for name, want := range map[string]string{
		"pir": "motion", "PIR": "motion", "ws2812": "neopixel", "WS2812b": "neopixel", "lcd1602": "hd44780", "reed": "contact",
		"hcsr04": "hc-sr04", "HC_SR501": "motion", "oled": "ssd1306", "sg90": "servo", "relais": "relay",
	} {
		if got := driver.Named(all, name); len(got) != 1 || got[0].Name != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, name := range []string{"ds18b20", "lcd", "adc", "led", "switch"} {
		if len(driver.Named(all, name)) == 0 {
			t.Errorf("%s leads nowhere", name)
		}
	}
}

// TestEntryOfPart: a product's name leads to an entry with the key that stands for it, which is valid.
func TestEntryOfPart(t *testing.T) {
	all := Drivers(board.New())
	for name, want := range map[string]string{
		"SDM72": "map: eastron-sdm72", "sdm630": "map: eastron-sdm630", "solaredge": "map: sunspec-inverter",
		"Tasmota": "kind: tasmota", "sonoff": "kind: tasmota", "shelly": "kind: shelly2", "zigbee": "kind: zigbee2mqtt",
	} {
		d := driver.Named(all, name)[0]
		if !strings.Contains(d.Entry, want) || want != d.PartKey+": "+d.PartValue {
			t.Errorf("%s: %s, want %s", name, d.Entry, want)
		}
	}
	for _, d := range all {
		for _, name := range strings.Fields(d.Also) {
			for _, named := range driver.Named(all, name) {
				if _, err := ops.ReadDriver(named, all); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// TestSchemaOnce: whoever asks often for the schema costs the board one.
func TestSchemaOnce(t *testing.T) {
	Schema()
	if n := testing.AllocsPerRun(1, func() { Schema() }); n > 0 {
		t.Errorf("it is made again, of %v allocations", n)
	}
}

// TestNetworkedDrivers: the owner is told of outputs of all drivers that can lose their device, and of secrets that they
// send without encryption.
func TestNetworkedDrivers(t *testing.T) {
	keyed := map[string]string{
		"esphome": "address: a.local, plaintext: on", "modbus": "address: a.local",
		"mqtt":  "broker: mqtt://a.local, user: u, password_file: a.key",
		"http":  "url: http://a.local, user: u, password_file: a.key",
		"thing": "url: http://a.local, key_file: a.key", "mcp": "url: http://a.local, key_file: a.key",
	}
	outputs := map[string]string{
		"esphome": "entity: switch/a, safe: off", "modbus": "coil: 1, safe: off", "mqtt": "topic: a, set: b, safe: off",
		"http": "set: '/{value}', safe: off", "thing": "safe: off",
		"mcp": "tool: a, set_tool: b, set_arguments: '{\"a\":{value}}', safe: off",
	}
	for name, keys := range keyed {
		cfg, err := parse(fmt.Sprintf("{ driver: %s, %s, outputs: { y: { %s } } }", name, keys, outputs[name]))
		if err != nil {
			t.Error(name, err)
			continue
		}
		var lost, clear int
		for _, d := range devices.Doubts(cfg) {
			if strings.Contains(d.Error(), "only ") {
				lost++
			}
			if strings.Contains(d.Error(), "encryption") {
				clear++
			}
		}
		if wants := strings.Count(keys, "a.key"); lost != 1 || clear != wants {
			t.Errorf("%s: %d are told of a lost link, and %d instead of %d of a secret", name, lost, clear, wants)
		}
	}
}
