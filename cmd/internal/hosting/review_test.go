package hosting

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/device/driver"
	"agentsite/device/sim"
	"agentsite/node/config"
)

// TestSecrets: a file with a secret that is not there is a doubt, whatever section names it.
func TestSecrets(t *testing.T) {
	for _, text := range []string{
		"mqtt: { broker: mqtts://b.example, user: u, password_file: missing, may: read * }",
		"export: { remote_write: { url: https://m.example/w, user: u, password_file: missing }, may: read * }",
		"export: { remote_write: { url: https://m.example/w, key_file: missing }, may: read * }",
		"notify: { to: { phone: { ntfy: https://ntfy.example/t, key_file: missing } } }",
		"agents: { m: { kind: llm, model: { url: https://m.example/v1, name: q, key_file: missing } } }",
		"agents: { m: { kind: remote, a2a: https://a.example/card.json, signed_by: did:key:z6MkexAyB77i7cC5hsRLsGmRuVoFXd6sMDdJ11325wJH45KG, key_file: missing, may: ask agent } }",
	} {
		cfg, err := config.Parse("a.yaml", []byte("site: { name: a }\ndevices: { g: { driver: sim } }\n"+text+"\n"),
			[]driver.Driver{sim.Driver()})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := Check(cfg); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if doubts := Doubts(cfg, t.TempDir()+"/a.yaml"); len(doubts) != 1 {
			t.Errorf("%s: %v", text, doubts)
		}
	}
}

// TestReview: what the permission of an agent or the limits of an output would refuse whenever it is
// tried is found by a check, and what may be a mistake is a doubt. A site starts with both. What a
// message says to write is accepted.
func TestReview(t *testing.T) {
	const devices = "site: { name: a }\ndevices:\n  g: { driver: sim, points: { heater: { max_on: 20m }, lamp: { lease: 1m }, vent: { max_on: unlimited } } }\n"
	for text, want := range map[string]string{ // "" for fine, ? for a doubt, else a part of the message
		"{ kind: rule, may: set g/lamp, when: g/pump == on, hold: { g/lamp: on } }":                                                            "",
		"{ kind: rule, when: g/soil_moisture < 40 %, for: 1m, hold: { g/pump: on } }":                                                          "may: set g/pump",
		"{ kind: rule, may: set g/pump, when: g/soil_moisture < 40 %, for: 1m, hold: { g/pump: on } }":                                         "",
		"{ kind: rule, may: set g/pump, when: g/soil_moisture < 40 %, for: 1m, hold: { g/pump: on, g/lamp: on } }":                             "may: 'set g/pump, set g/lamp'",
		"{ kind: rule, may: 'set g/pump, set g/lamp', when: g/soil_moisture < 40 %, for: 1m, hold: { g/pump: on, g/lamp: on } }":               "",
		"{ kind: rule, may: set g/vent 0..30, every: 1h, do: [ { set: { g/vent: 50 } } ] }":                                                    "0..30",
		"{ kind: rule, may: set g/vent 0..50 max 1m, every: 1h, do: [ { set: { g/vent: 50 }, for: 10h } ] }":                                   "",
		"{ kind: rule, may: set g/heater, every: 1h, do: [ { set: { g/heater: on }, for: 45m } ] }":                                            "?",
		"{ kind: rule, may: set g/pump, when: g/soil_moisture < 40 %, hold: { g/pump: on } }":                                                  "?",
		"{ kind: rule, may: set g/pump, when: g/soil_moisture < 40 %, until: g/soil_moisture > 50 %, hold: { g/pump: on } }":                   "",
		"{ kind: rule, may: set g/pump, when: 'mean(g/soil_moisture, 5m) < 40 %', hold: { g/pump: on } }":                                      "",
		"{ kind: rule, may: set g/pump, when: 'age(g/soil_moisture) < 1m', hold: { g/pump: on } }":                                             "",
		"{ kind: rule, may: set g/pump, when: 'now > 22:00 and now < 6:00', hold: { g/pump: on } }":                                            "?",
		"{ kind: rule, may: set g/pump, when: 'now > 6:00 and now < 22:00', hold: { g/pump: on } }":                                            "",
		"{ kind: rule, may: set g/pump, when: 'now > 22:00 or now < 6:00', hold: { g/pump: on } }":                                             "",
		"{ kind: rule, may: set g/pump, when: 'g/temperature < 7 Cel', until: 'g/temperature < 5 Cel', hold: { g/pump: on } }":                 "?",
		"{ kind: rule, may: set g/pump, when: 'g/temperature < 5 Cel', until: 'g/temperature < 7 Cel', hold: { g/pump: on } }":                 "?",
		"{ kind: rule, may: set g/pump, when: 'g/temperature < 5 Cel', until: 'g/temperature > 7 Cel', hold: { g/pump: on } }":                 "",
		"{ kind: rule, may: set g/pump, when: 'g/temperature < 5 Cel', until: 'g/temperature < 7 Cel and now > 22:00', hold: { g/pump: on } }": "",
		"{ kind: rule, may: 'set g/pump+g/lmap, read *', when: g/soil_moisture < 40 %, for: 1m, hold: { g/pump: on } }":                        "?",
		"{ kind: rule, may: 'set g, read cellar', when: g/soil_moisture < 40 %, for: 1m, hold: { g/pump: on } }":                               "?",
		"{ kind: rule, may: 'set g, ask cellar', when: g/soil_moisture < 40 %, for: 1m, hold: { g/pump: on } }":                                "",
		"{ kind: remote, peer: 'did:key:z6MkexAyB77i7cC5hsRLsGmRuVoFXd6sMDdJ11325wJH45KG', may: read attic/t+cellar }":                         "",
		"mqtt: { broker: mqtts://b.example, may: 'read *, set g/pump', valves: [g/pump] }":                                                     "",
		"mqtt: { broker: mqtts://b.example, may: 'read *, set g/lamp', valves: [g/pump] }":                                                     "set g/pump",
		"mqtt: { broker: mqtts://b.example, may: 'read *, set *', valves: [g/light] }":                                                         "?",
		"{ kind: routine, steps: [ { set: { g/pump: on } } ] }":                                                                                "may: set g/pump",
		"{ kind: routine, steps: [ { set: { g/pump: off } } ] }":                                                                               "",
		"{ kind: routine, may: set g, steps: [ { set: { g/heater: on }, for: 20m }, { show: { g/message: hi } } ] }":                           "may: 'set g, show g/message'",
		"{ kind: routine, may: 'set g, show g/message', steps: [ { set: { g/heater: on }, for: 20m }, { show: { g/message: hi } } ] }":         "",
		"{ kind: routine, may: set g max 10m, steps: [ { set: { g/heater: on }, for: 20m } ] }":                                                "10m",
		"{ kind: routine, may: set g, steps: [ { set: { g/heater: on }, for: 21m } ] }":                                                        "for: 20m",
		"{ kind: routine, may: set g, steps: [ { set: { g/lamp: on }, for: 61s } ] }":                                                          "for: 1m",
		"{ kind: routine, may: set g, steps: [ { set: { g/pump: on }, for: 11m } ] }":                                                          "for: 10m",
		"{ kind: routine, may: set g, steps: [ { set: { g/vent: 5 }, for: 24h } ] }":                                                           "",
	} {
		section := text
		if strings.HasPrefix(text, "{") {
			section = "agents:\n  x: " + text
		}
		cfg, err := config.Parse("a.yaml", []byte(devices+section+"\n"), []driver.Driver{sim.Driver()})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		err = Check(cfg)
		if wrong := want != "" && want != "?"; wrong != (err != nil) || wrong && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if doubts := Doubts(cfg, ""); (len(doubts) == 1) != (want == "?") {
			t.Errorf("%s: %v", text, doubts)
		}
		if err := Accept(cfg); err != nil {
			t.Errorf("%s: it does not start: %v", text, err)
		}
	}
}

// TestBroker: what the bridge to a broker could not do is said with its key.
func TestBroker(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "open"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "closed"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"may: read *, user: u, password_file: closed": "", "user: u": "doubt mqtt:", "may: read *, user: u, password_file: open": "doubt password_file:", "may: read *, user: u, password_file: none": "doubt password_file:",
		"may: 'read *, set g', lights: [g/lamp], valves: [g/vent]": "",
		"may: 'read *, set g/pump', lights: [g/lamp]":              "error lights:",
		"may: 'read *, set g 1..5 max 5s', valves: [g/vent]":       "", "may: 'read *, set g', lights: [g/light]": "doubt lights:",
		"may: 'read *, set g', valves: [g/vont]": "doubt valves:", "may: 'read *, set g', valves: [h/vent]": "doubt valves:",
	} {
		cfg, err := config.Parse("a.yaml", []byte("site: { name: a }\ndevices: { g: { driver: sim } }\nmqtt: { broker: 'mqtts://b', "+text+" }\n"), []driver.Driver{sim.Driver()})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		err, doubts := Check(cfg), Doubts(cfg, filepath.Join(dir, "agentsite.yaml"))
		got := ""
		if err != nil {
			got = "error " + err.Error()
		}
		for _, d := range doubts {
			got += "doubt " + d.Error()
		}
		kind, key, _ := strings.Cut(want, " ")
		if want == "" && got != "" || want != "" && (!strings.HasPrefix(got, kind) || !strings.Contains(got, key)) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
