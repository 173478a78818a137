package site

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
	"agentsite/device/devicetest"
	"agentsite/device/driver"
	"agentsite/device/fake"
	"agentsite/node/config"
	"agentsite/node/rollback"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
)

// TestFakes: each driver's device has a fake with the same description, which passes the suite of every driver.
func TestFakes(t *testing.T) {
	b := board.New()
	all := Drivers(b)
	for _, d := range all {
		t.Run(d.Name, func(t *testing.T) {
			real, err := parse(d.Shortest())
			if err != nil {
				t.Fatal(err)
			}
			text := []byte("site: { name: a }\ndevices:\n  it: " + d.Shortest() + "\n")
			simulated, err := config.Parse("a.yaml", text, fake.Drivers(all))
			if err != nil {
				t.Fatal(err)
			}
			c := simulated.Devices[0].Config
			desc := c.(driver.Describer).Describe()
			if of, ok := real.Devices[0].Config.(driver.Describer); ok && !reflect.DeepEqual(desc, of.Describe()) {
				t.Errorf("the fake has %+v, and the device %+v", desc, of.Describe())
			}
			devicetest.Options{FakeClock: true}.Run(t, func(t *testing.T) device.Device {
				dev, err := driver.Open(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := dev.(*fake.Device); !ok {
					t.Fatalf("a %T is opened", dev)
				}
				return dev
			})
		})
	}
}

// TestSimulationLeavesPins: on a board with the very pins, a simulation requests none of them, neither as the site
// nor as the guard, which has the real drivers and a plan.
func TestSimulationLeavesPins(t *testing.T) {
	const text = "site: { name: a, watchdog: /dev/watchdog }\ndevices:\n" +
		"  pump: { driver: relay, pin: GPIO17, active_low: on, safe: off }\n  door: { driver: contact, pin: GPIO22 }\n"
	for name, parse := range map[string]func([]driver.Driver) (*config.Site, error){
		"real": func(drivers []driver.Driver) (*config.Site, error) {
			return config.Parse("a.yaml", []byte(text), drivers)
		},
		"site": func(drivers []driver.Driver) (*config.Site, error) {
			return config.Parse("a.yaml", []byte(text), fake.Drivers(drivers))
		},
		"guard": func(drivers []driver.Driver) (*config.Site, error) {
			cfg, err := config.Parse("a.yaml", []byte(text), fake.Drivers(AllDrivers()))
			if err != nil {
				return nil, err
			}
			return config.ParsePlan("plan", config.Plan(cfg, cfg.Devices), drivers)
		},
	} {
		header := boardtest.Header()
		cfg, err := parse(Drivers(boardtest.Lines(header)))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range cfg.Devices {
			dev, err := driver.Open(t.Context(), d.Config)
			if err != nil {
				t.Fatal(err)
			}
			if a, ok := dev.(device.Actuator); ok && d.Name == "pump" {
				if err := a.Apply(t.Context(), "relay", device.Bool(true)); err != nil {
					t.Fatal(err)
				}
			}
			defer dev.Close()
		}
		touched := header.Driven(17)
		if touched != (name == "real") {
			t.Errorf("%s: the pin is driven: %t", name, touched)
		}
		if name != "real" && (!cfg.Simulated || cfg.Watchdog != "") {
			t.Errorf("%s: simulated %t, watchdog %q", name, cfg.Simulated, cfg.Watchdog)
		}
	}
}

// TestOwnersFileIsNoPlan: the mark of a simulation counts in a plan only.
func TestOwnersFileIsNoPlan(t *testing.T) {
	if _, err := config.Parse("a.yaml", []byte("simulation: on\nsite: { name: a }\n"), AllDrivers()); err == nil {
		t.Error("it was accepted")
	}
}

// TestConfine: nothing that reaches other machines is left.
func TestConfine(t *testing.T) {
	const text = `site: { name: a }
internet: { realm: public }
http: { https: ":8474" }
discovery: { mdns: on }
wot: { register: "https://directory.example.org" }
devices:
  climate: { driver: sim, model: climate }
agents:
  frost: { kind: rule, may: set relay, when: climate/temperature < 5 Cel, hold: { relay/relay: on } }
  gpt: { kind: llm, model: { url: "http://nas:11434/v1", name: x } }
  house: { kind: remote, site: house }
mqtt: { broker: "mqtts://nas.local", may: read climate }
`
	cfg, err := config.Parse("a.yaml", []byte(text), fake.Drivers(AllDrivers()))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Agents = cfg.Agents[1:] // the rule's relay is in no test of rules
	if err := confine(cfg); err != nil {
		t.Fatal(err)
	}
	if len(cfg.Agents) != 1 || cfg.Agents[0].Name != "gpt" {
		t.Errorf("agents: %+v", cfg.Agents)
	}
	if cfg.Internet != nil || cfg.HTTP.HTTPS != config.ListenNone || cfg.Discovery.MDNS || cfg.WoT.Register != "" {
		t.Errorf("%+v", cfg)
	}
}

// TestSimulationSettlesNoTrial: in the folder of a site with real devices, a simulation ends no trial of a
// configuration.
func TestSimulationSettlesNoTrial(t *testing.T) {
	const before, tried = "site: { name: a }\n", "site: { name: b }\n"
	dir := t.TempDir()
	file := filepath.Join(dir, "agentsite.yaml")
	folder := state.Folder(filepath.Join(dir, "data"))
	sum := sha256.Sum256([]byte(tried))
	record, err := json.Marshal(rollback.Trial{
		File: file, Digest: hex.EncodeToString(sum[:]), Before: before, Seconds: 60, State: rollback.Running,
	})
	if err == nil {
		err = os.Mkdir(string(folder), 0o700)
	}
	for name, text := range map[string]string{
		file: tried, file + state.Before: before, folder.Path(state.TrialFile): string(record),
		folder.Path(state.PlanFile): before,
	} {
		if err == nil {
			err = os.WriteFile(name, []byte(text), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Options: Options{Simulate: true, Folder: folder}}
	if err := s.openTrials(); err == nil {
		t.Error("the folder is used")
	}
	if text, err := os.ReadFile(file); string(text) != tried {
		t.Errorf("the site's configuration is %q, %v", text, err)
	}
}

// TestRealFolderRefused: a simulation does not run in the folder of a site with real devices, but in its own.
func TestRealFolderRefused(t *testing.T) {
	cfg, err := config.Parse("a.yaml", []byte("site: { name: a }\ndevices:\n  pump: { driver: relay, pin: GPIO17, safe: "+
		"off }\n"), AllDrivers())
	if err != nil {
		t.Fatal(err)
	}
	fakes := *cfg
	fakes.Simulated = true
	for name, c := range map[string]struct {
		plan     []byte
		simulate bool
		refused  bool
	}{
		"new":                  {nil, true, false},
		"simulation":           {config.Plan(&fakes, cfg.Devices), true, false},
		"real":                 {config.Plan(cfg, cfg.Devices), true, true},
		"real without outputs": {config.Plan(cfg, nil), true, true},
		"its own site":         {config.Plan(cfg, cfg.Devices), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{Options: Options{Simulate: c.simulate, Folder: state.Folder(t.TempDir())}}
			if c.plan != nil {
				if err := os.WriteFile(s.Folder.Path(state.PlanFile), c.plan, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.checkFolder(); (err != nil) != c.refused {
				t.Error(err)
			}
		})
	}
}
