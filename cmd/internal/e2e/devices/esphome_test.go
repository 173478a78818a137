//go:build e2e

package devices

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device"
	"agentsite/device/esphome/esphometest"
)

const (
	esphomeKey  = "QRTIErOb/fcE9Ukd/5qA3RGYMn0Y+p06U58SCtOXvPc="
	esphomeKey2 = "EBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8="
)

func esphomeKitchen() *esphometest.Node {
	return esphometest.New(
		&esphometest.Entity{Kind: "sensor", Name: "Air Temperature", Unit: "°C", Number: 21.3},
		&esphometest.Entity{Kind: "binary_sensor", Name: "Door", On: true},
		&esphometest.Entity{Kind: "text_sensor", Name: "Mode", Text: "idle"},
		&esphometest.Entity{Kind: "switch", Name: "Heater"},
		&esphometest.Entity{Kind: "number", Name: "Target", Unit: "°C", Min: 5, Max: 30, Step: 0.5, Number: 5},
		&esphometest.Entity{Kind: "light", Name: "Lamp", Levels: true},
		&esphometest.Entity{Kind: "valve", Name: "Water", Levels: true},
		&esphometest.Entity{Kind: "cover", Name: "Blind", Levels: true},
		&esphometest.Entity{Kind: "fan", Name: "Vent", Speeds: 4},
		&esphometest.Entity{Kind: "select", Name: "Scene", Options: []string{"day", "night"}, Text: "day"},
	)
}

// TestESPHomeFake holds the fake node that other tests use to an independent client of the protocol.
func TestESPHomeFake(t *testing.T) {
	modules, program := harness.Need(t, "npm's packages", os.Getenv("NPM_MODULES")), harness.Need(t, "Node 22",
		harness.NodeProgram)
	for name, key := range map[string]string{"with a key": esphomeKey, "without": ""} {
		t.Run(name, func(t *testing.T) {
			n := esphomeKitchen()
			n.Key = key
			host, port, err := net.SplitHostPort(n.Listen(t))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "testdata/esphome.mjs", modules, host, port, key)
			var log harness.LogBuffer
			cmd.Stderr = &log
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s%s", err, out, &log)
			}
			var seen struct {
				Entities  []struct{ ID, Type, Name string }
				Before    map[string]map[string]any
				Moved     map[string]map[string]any
				Encrypted bool
			}
			if err := json.Unmarshal(out, &seen); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if len(seen.Entities) != 10 || seen.Encrypted != (key != "") {
				t.Errorf("%s", out)
			}
			if got := seen.Before["sensor-air_temperature"]["state"]; got == nil || fmt.Sprintf("%.4v", got) != "21.3" {
				t.Errorf("the temperature is %v", got)
			}
			if !n.Get("switch/heater").On || n.Get("number/target").Number != 12.5 || n.Get("light/lamp").Number != 0.4 || n.Get("valve/water").Number != 1 {
				t.Errorf("the node is not where the client moved it: %s", out)
			}
			if got := seen.Moved["valve"]["position"]; got != 1.0 {
				t.Errorf("%v", seen.Moved)
			}
		})
	}
}

// TestESPHome runs a site with a node: readings, moves, a button at the node, a restart, a lost link, another key.
func TestESPHome(t *testing.T) {
	program := harness.Need(t, "the program", harness.Program)
	n := esphomeKitchen()
	n.Key = esphomeKey
	data := harness.TempDir(t)
	keyFile := filepath.Join(data, "kitchen.key")
	if err := os.WriteFile(keyFile, []byte(esphomeKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s := harness.StartIn(t, data, fmt.Sprintf(`
site: { name: house }
http: { https: none }
devices:
  kitchen:
    driver: esphome
    address: %q
    key_file: kitchen.key
    mac: "A4:CF:12:01:02:03"
    inputs:
      temperature: { entity: sensor/air_temperature, unit: Cel, range: -40..85 }
      door: { entity: binary_sensor/door, state: on }
    outputs:
      heater: { entity: switch/heater, safe: off }
      lamp: { entity: light/lamp, unit: "%%", range: 0..80, safe: 0 }
    points: { heater: { min_off: 1s }, lamp: { min_off: 1s } }
  sensors: { driver: esphome, address: %[1]q, key_file: kitchen.key, every: 1s }
`, n.Listen(t)), nil, program)
	c := s.Client(t, false)
	read := func(point string) (device.Value, device.Quality, string) {
		all, err := c.Read(t.Context(), agents.Principal{}, agents.ReadRequest{Points: []string{point}})
		if err != nil {
			t.Fatal(err)
		}
		r := all.Readings[0]
		return r.Value, r.Quality, r.Why
	}
	is := func(point string, v device.Value) {
		t.Helper()
		harness.WaitFor(t, time.Minute, fmt.Sprintf("%s is %v", point, v), func() bool {
			got, q, _ := read(point)
			return q == device.Good && got == v
		})
	}
	move := func(point string, v device.Value) {
		t.Helper()
		var err error
		length := 300.0
		harness.WaitFor(t, time.Minute, fmt.Sprintf("%s moves to %v", point, v), func() bool {
			_, err = c.Move(t.Context(), agents.Principal{}, agents.MoveRequest{Output: point, Value: v, For: &length})
			return err == nil
		})
	}
	is("kitchen/temperature", device.Number(21.3))
	is("sensors/air_temperature", device.Number(21.3))
	t.Logf("from the start of the site to the first reading: %v", time.Since(began))
	n.Set("binary_sensor/door", func(e *esphometest.Entity) { e.On = false })
	is("kitchen/door", device.Bool(false))

	move("kitchen/heater", device.Bool(true))
	move("kitchen/lamp", device.Number(62.5))
	if !n.Get("switch/heater").On || n.Get("light/lamp").Number != 0.625 {
		t.Errorf("%+v %+v", n.Get("switch/heater"), n.Get("light/lamp"))
	}

	// Somebody presses the button at the node: the guard returns the output to safe, where it is already.
	n.Set("switch/heater", func(e *esphometest.Entity) { e.On = false })
	is("kitchen/heater", device.Bool(false))

	// The node restarts with its outputs on: the guard drives them to safe.
	move("kitchen/heater", device.Bool(true))
	n.Drop()
	n.Set("light/lamp", func(e *esphometest.Entity) { e.On, e.Number = true, 1 })
	harness.WaitFor(t, time.Minute, "both are safe after a restart of the node", func() bool {
		return !n.Get("switch/heater").On && !n.Get("light/lamp").On
	})
	is("kitchen/heater", device.Bool(false))

	// The link is lost while an output is on: a fault, and safe once it is back.
	move("kitchen/heater", device.Bool(true))
	n.Freeze(true)
	lost := time.Now()
	harness.WaitFor(t, time.Minute, "a lost link is a fault", func() bool {
		_, q, why := read("kitchen/heater")
		return q == device.Bad && why != ""
	})
	t.Logf("a silent node is a fault after %v", time.Since(lost))
	n.Freeze(false)
	harness.WaitFor(t, 2*time.Minute, "it is safe once the node answers",
		func() bool { return !n.Get("switch/heater").On })

	// The owner of the node has changed its key.
	n.SetKey(esphomeKey2)
	n.Drop()
	harness.WaitFor(t, time.Minute, "another key is a fault that says so", func() bool {
		_, q, why := read("sensors/air_temperature")
		return q == device.Bad && strings.Contains(why, "key")
	})
	if err := os.WriteFile(keyFile, []byte(esphomeKey2), 0o600); err != nil {
		t.Fatal(err)
	}
	is("kitchen/heater", device.Bool(false))
	for _, secret := range []string{esphomeKey, esphomeKey2} {
		if strings.Contains(s.Log.String(), secret) {
			t.Error("the log has a key")
		}
	}
}
