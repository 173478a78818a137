package devices

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
	"agentsite/device/chip"
	"agentsite/device/driver"
	"agentsite/device/gpio"
	"agentsite/device/host"
	"agentsite/device/sim"
	"agentsite/node/config"
)

// drivers returns the drivers of the configurations in these tests.
func drivers(b *board.Board) []driver.Driver {
	return slices.Concat([]driver.Driver{host.Driver(), sim.Driver()}, gpio.Drivers(b), chip.Drivers(b))
}

// checkFails checks a configuration of these devices, and expects an error with that text;
// "" expects none.
func checkFails(t *testing.T, devices, says string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte("site: { name: a }\ndevices:\n"+devices), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Check(file, drivers(board.New()))
	switch {
	case err == nil && says != "":
		t.Errorf("%s: it passes", devices)
	case err != nil && (says == "" || !strings.Contains(err.Error(), "a.yaml:"+says)):
		t.Errorf("%s: %v; want %q", devices, err, says)
	}
}

func TestStopButtonIsChecked(t *testing.T) {
	const relay = "  pump: { driver: relay, pin: GPIO17, safe: off }\n"
	checkFails(t, relay+"  panic: { driver: stop-button, pin: GPIO26 }\n  other: { driver: stop-button, pin: P1_36, active_low: on }\n", "")
	checkFails(t, "  panic: { driver: stop-button, pin: GPIO17 }\n", "3:12: panic: ")
	checkFails(t, relay+"  panic: { driver: stop-button, pin: P1_11 }\n", "4:38: panic: GPIO17 ")
}

func TestMultiplexerIsTheKernels(t *testing.T) {
	const (
		expander = "  relays: { driver: mcp23017, bus: i2c-1, outputs: { pump: { pin: GPA0, safe: off } } }\n"
		behind   = "  relays: { driver: mcp23017, bus: i2c-1/0x70:3, outputs: { pump: { pin: GPA0, safe: off } } }\n"
		sensor   = "  climate: { driver: bme280, bus: i2c-1/0x71:0 }\n"
		inputs   = "  door: { driver: mcp23017, bus: i2c-1, inputs: { open: { pin: GPA0 } } }\n"
	)
	checkFails(t, sensor+strings.ReplaceAll(expander, "i2c-1", "i2c-11"), "")
	checkFails(t, sensor+inputs, "")
	checkFails(t, behind, "3:31: relays: the multiplexer at 0x70 on i2c-1")
	checkFails(t, expander+sensor, "4:30: climate: the multiplexer at 0x71 on i2c-1")
	checkFails(t, sensor+expander, "3:30: climate: the multiplexer at 0x71")
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	cfg, from, err := Check("", drivers(board.New()))
	if err != nil || from != "" || cfg.Name != "demo" {
		t.Errorf("no file: %+v %q %v", cfg, from, err)
	}
	for _, tt := range []struct{ name, text, says string }{
		{"good", "site: { name: x }\ndevices:\n  g: { driver: sim, points: { heater: { lease: 1m } } }\n", ""},
		{"a long lease", "site: { name: x }\ndevices:\n  g: { driver: sim, points: { heater: { lease: 1h } } }\n", "agentsite.yaml:3:41: g/heater: lease 1h is longer than max_on 10m"},
		{"two mistakes", "site: { name: x }\ndevices:\n  g: { driver: sim, model: dimmer, lease: 1h }\n  h: { driver: sim, model: relay, lease: 2h }\n", "h/relay: lease 2h is longer than max_on 10m"},
		{"a limit without an output", "site: { name: x }\ndevices:\n  h: { driver: host, max_on: 5m }\n", "agentsite.yaml:3:22: h: max_on "},
		{"a measurement that is kept safe", "site: { name: x }\ndevices:\n  h: { driver: host, points: { uptime: { safe: off } } }\n", "agentsite.yaml:3:42: h/uptime: safe "},
		{"an unknown driver", "site: { name: x }\ndevices:\n  g: { driver: sin }\n", "agentsite.yaml:3:16: g: "},
		{"a wrong model", "site: { name: x }\ndevices:\n  g: { driver: sim, model: volcano }\n", "agentsite.yaml:3:28: g: model: "},
		{"no YAML", "site: [", "agentsite.yaml:1:"},
	} {
		if err := os.WriteFile(config.DefaultFile, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"", config.DefaultFile} {
			_, from, err := Check(path, drivers(board.New()))
			if from != config.DefaultFile || (err == nil) != (tt.says == "") || (err != nil && !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("%s: %q %v, want %s", tt.name, from, err, tt.says)
			}
			if tt.name == "two mistakes" && err != nil && !strings.Contains(err.Error(), "g/level") {
				t.Errorf("only one is told: %v", err)
			}
		}
	}
	if _, _, err := Check("nowhere.yaml", drivers(board.New())); err == nil || !errors.Is(err, fs.ErrNotExist) || !errors.As(err, new(*config.Error)) {
		t.Errorf("a named file that is not there: %v", err)
	}
}

// TestBoardConflicts: a resource of two devices is refused at the line of one of them.
func TestBoardConflicts(t *testing.T) {
	const text = `site: { name: a }
devices:
  pump: { driver: relay, pin: GPIO17, safe: off }
  lamp: { driver: relay, pin: gpiochip0/17, safe: off }
  gate: { driver: motor, forward: GPIO5, backward: GPIO6, safe: 0 }
`
	cfg, err := config.Parse("a.yaml", []byte(text), drivers(board.New()))
	if err != nil {
		t.Fatal(err)
	}
	chip := boardtest.Header()
	chip.Take(6, "w1")
	const want = `a.yaml:3:26: pump: GPIO17 is line 17 of gpiochip0, which lamp (gpiochip0/17) uses too; choose another line
    3 |   pump: { driver: relay, pin: GPIO17, safe: off }
      |                          ^`
	if err := checkBoard(cfg, boardtest.Lines(chip)); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if err := checkBoard(cfg, boardtest.Lines()); err != nil {
		t.Errorf("a machine without lines: %v", err)
	}
}

// remote is a driver of an output that is reached by a network.
type remote struct {
	KeyFile driver.File `json:"key_file"`
}

func (*remote) Open(context.Context) (device.Device, error) { return nil, errors.ErrUnsupported }
func (*remote) Peer() string                                { return "kitchen.local" }
func (*remote) SentTo() string                              { return "kitchen.local" }
func (*remote) Describe() device.Description {
	return device.Description{Model: "remote", Points: []device.Point{{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)}}}
}

// TestNetworkDoubts: that a lost network leaves an output as it is is said once, that a host gets a key without
// encryption once, too, and a missing key for each device.
func TestNetworkDoubts(t *testing.T) {
	cfg, err := config.Parse(filepath.Join(t.TempDir(), "a.yaml"), []byte("site: { name: a }\ndevices:\n"+
		"  one: { driver: remote, key_file: a.key }\n  two: { driver: remote, key_file: a.key }\n"),
		[]driver.Driver{{Name: "remote", Config: func() driver.Config { return new(remote) }}})
	if err != nil {
		t.Fatal(err)
	}
	doubts, missing := Doubts(cfg), 0
	for _, d := range doubts {
		if errors.Is(d, fs.ErrNotExist) {
			missing++
		}
	}
	if len(doubts) != 4 || missing != 2 {
		t.Errorf("%v", doubts)
	}
}
