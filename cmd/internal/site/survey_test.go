package site

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentsite/cmd/internal/hosting"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
	"agentsite/device/driver"
	"agentsite/node/config"
	"agentsite/node/devices"
)

// TestDocs checks the configurations of the pages as an owner would.
func TestDocs(t *testing.T) {
	for _, file := range []string{"README.md", "docs/drivers.md", "docs/network-devices.md", "docs/kernel-parts.md", "docs/configuration.md", "docs/raspberry-pi.md", "docs/rules.md", "docs/automations.md", "docs/tasks.md"} {
		page, err := os.ReadFile(filepath.Join("../../..", file))
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
			text, _, _ := strings.Cut(block, "```")
			if strings.HasPrefix(text, "devices:") {
				text = "site: { name: docs }\n" + text
			}
			if !strings.Contains(text, "\ndevices:") { // a part of one
				continue
			}
			checked++
			cfg, err := config.Parse(file, []byte(text), Drivers(board.New()))
			if err == nil {
				err = hosting.Check(cfg)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if checked == 0 {
			t.Errorf("%s has no configuration", file)
		}
	}
}

// TestLostOutputsAreSaid: each driver of outputs that a network or a serial line can lose names who keeps them then, so
// that check and doctor say it.
func TestLostOutputsAreSaid(t *testing.T) {
	for _, entry := range []string{
		"{ driver: esphome, address: a.local, key_file: a.key, outputs: { o: { entity: switch/o, safe: off } } }",
		"{ driver: modbus, address: 192.168.1.20, outputs: { o: { coil: 0, safe: off } } }",
		"{ driver: modbus, port: /dev/ttyUSB0, outputs: { o: { coil: 0, safe: off } } }",
		"{ driver: mqtt, broker: mqtt://192.168.1.5, kind: tasmota, name: o, outputs: { o: { safe: off } } }",
		"{ driver: http, url: 'http://192.168.1.5', outputs: { o: { path: o, set: '/o?{value}', safe: off } } }",
		"{ driver: thing, url: 'http://192.168.1.5/o', outputs: { o: { safe: off } } }",
		"{ driver: mcp, url: 'http://192.168.1.5/mcp', outputs: { o: { tool: o, set_tool: p, set_arguments: '{\"o\":{value}}', safe: off } } }",
	} {
		cfg, err := parse(entry)
		if err != nil {
			t.Error(err)
			continue
		}
		doubts := devices.Doubts(cfg)
		if !slices.ContainsFunc(doubts, func(err error) bool { return !errors.Is(err, fs.ErrNotExist) }) {
			t.Errorf("%s: %v", entry, doubts)
		}
	}
}

// TestNothingElsewhereIsALine: what a device at the end of a network or a radio writes is no line of a Raspberry Pi's
// header, which would have to be there.
func TestNothingElsewhereIsALine(t *testing.T) {
	pi := boardtest.Lines(boardtest.Header())
	entries := []string{
		"{ driver: modbus, address: 192.168.1.20, outputs: { pump: { coil: 0, safe: off } } }",
		"{ driver: esphome, address: kitchen.local, plaintext: on, outputs: { pump: { entity: switch/pump, safe: off } } }",
		"{ driver: http, url: 'http://192.168.1.20', outputs: { pump: { path: on, set: '/relay?turn={value}', safe: off } } }",
		"{ driver: thing, url: 'http://192.168.1.20', outputs: { pump: { safe: off } } }",
		"{ driver: mcp, url: 'http://192.168.1.20', outputs: { pump: { tool: get, set_tool: set, set_arguments: '{\"on\":{value}}', safe: off } } }",
	}
	for _, d := range Drivers(pi) {
		entries = append(entries, d.Shortest())
	}
	for _, entry := range entries {
		cfg, err := parse(entry)
		if err != nil {
			continue // of a family
		}
		user, ok := cfg.Devices[0].Config.(driver.ResourceUser)
		if _, byKernel := cfg.Devices[0].Config.(driver.Preparer); !ok || byKernel {
			continue
		}
		if err := pi.Missing(map[string][]driver.Resource{"it": user.Resources()}); err != nil {
			t.Errorf("%s: %v", entry, err)
		}
	}
}

// TestClaims: parts with kernel drivers have one owner, too: no channel, lamp or line has a second.
func TestClaims(t *testing.T) {
	for _, tc := range []struct{ first, second, says string }{
		{"driver: kernel:bme280, address: 0x76", "driver: bme280, address: 0x76", "first (line 3) needs"},
		{"driver: bme280, address: 0x76", "driver: kernel:bme280, address: 0x76", "first (line 3) has"},
		{"driver: kernel:bme280, address: 0x76", "driver: kernel:bmp280, address: 0x76", "kernel's driver bme280"},
		{"driver: iio, bind: { bus: i2c-1, address: 0x44, chip: sht4x }", "driver: sht4x, address: 0x44", "kernel's driver sht4x"},
		{"driver: kernel:bme280, address: 0x76", "driver: kernel:bme280, address: 0x77", ""},
		{"driver: kernel:bme280, bus: i2c-2, address: 0x76", "driver: bme280, address: 0x76", ""},
		{"driver: iio, bind: { bus: i2c-1, address: 0x40, chip: ina219 }", "driver: hwmon, bind: { bus: i2c-1, address: 0x40, chip: ina219 }", ""},
		{"driver: pwm, chip: pwmchip0, channel: 1, safe: off", "driver: pwm, chip: pwmchip0, channel: 1, safe: off", "pwmchip0/1 is already taken"},
		{"driver: pwm, chip: pwmchip0, channel: 1, safe: off", "driver: pwm, chip: pwmchip0, safe: off", ""},
		{"driver: led, name: ACT, safe: off", "driver: led, name: ACT, safe: off", "ACT is already taken"},
		{"driver: hx711, data: GPIO5, clock: GPIO6", "driver: tm1637, clock: P1_31, data: GPIO7", "GPIO6 is already taken"},
		{"driver: hc-sr04, trigger: GPIO5, echo: GPIO6", "driver: relay, pin: GPIO6, safe: off", "GPIO6 is already taken"},
	} {
		text := "site: { name: a }\ndevices:\n  first: { " + tc.first + " }\n  second: { " + tc.second + " }\n"
		_, err := config.Parse("a.yaml", []byte(text), Drivers(board.New()))
		if (err == nil) != (tc.says == "") || err != nil && (!strings.Contains(err.Error(), tc.says) || !strings.HasPrefix(err.Error(), "a.yaml:4:")) {
			t.Errorf("%s\n%v\nwant %q", text, err, tc.says)
		}
	}
}

// TestSurveyOfTheKernel: a chip that the kernel has is no obstacle to who reads it
// through the kernel.
func TestSurveyOfTheKernel(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "sys/bus/i2c/devices/1-0076")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../drivers/bmp280", filepath.Join(folder, "driver")); err != nil {
		t.Skip(err)
	}
	for driver, says := range map[string]string{"kernel:bme280": "", "bme280": "kernel driver bmp280"} {
		b := boardtest.Machine{Root: root}.Board()
		cfg, err := config.Parse("a.yaml", []byte("site: { name: a }\ndevices: { climate: { driver: "+driver+", bus: i2c-1, address: 0x76 } }\n"), Drivers(b))
		if err != nil {
			t.Fatal(err)
		}
		_, err = cfg.Devices[0].Config.Open(t.Context())
		if held := err != nil && strings.Contains(err.Error(), "kernel driver bmp280"); held != (says != "") {
			t.Errorf("%s: %v", driver, err)
		}
	}
}
