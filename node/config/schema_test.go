package config

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"agentsite/device/driver"
)

func resolved(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := Schema(fakes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}

// instance is what an editor sees of a file.
func instance(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(asJSON, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSchemaAgreesWithParse(t *testing.T) {
	schema := resolved(t)
	const head = "site: { name: a }\n"
	for _, tc := range []struct {
		text string
		good bool
	}{
		{greenhouse, true},
		{head, true},
		{head + "devices:\n", true},
		{head + "devices: { r: { driver: relay, pin: GPIO1, active_low: off, max_on: unlimited } }", true},
		{head + "devices: { s: { driver: servo, range: -90..90, pulse: 2ms, safe: -5.5 } }", true},
		{head + "devices: { t: { driver: thermo, every: 500ms } }", true},
		{head + "devices: { t: { driver: thermo, scale: -50, clamp: 0..100, unit: \"%\" } }", true},
		{head + "devices: { m: { driver: multi, points: { temperature: { scale: 1.8, offset: 32, unit: \"[degF]\" } } } }", true},
		{head + "devices: { r: { driver: relay, pin: GPIO1, min_on: 5s, duty: 20m/1h, rate: 20/1h, requires: { point: t/temperature, within: 5..30 } }, t: { driver: thermo } }", true},
		{head + "devices: { s: { driver: servo, confirm: owner } }", true},
		{head + "devices: { s: { driver: servo, confirm: on } }", false},
		{head + "devices: { s: { driver: servo, slew: 4.5/s, ramp_to_safe: on, requires: { point: p/door, is: on, max_age: 1m } }, p: { driver: pair } }", true},
		{head + "devices: { m: { driver: multi, points: { heater: { interlock: { group: a, gap: 1s } }, vent: { interlock: { group: a, gap: 1s } } } } }", true},
		{head + "devices: { r: { driver: relay, pin: GPIO1, duty: 20m } }", false},
		{head + "devices: { r: { driver: relay, pin: GPIO1, rate: 20/h } }", false},
		{head + "devices: { s: { driver: servo, slew: 45 } }", false},
		{head + "devices: { s: { driver: servo, interlock: { gap: 1s } } }", false},
		{head + "devices: { s: { driver: servo, requires: { point: level, within: 0..1 } } }", false},
		{head + "devices: { t: { driver: thermo, scale: a } }", false},
		{head + "devices: { t: { driver: thermo, clamp: 5 } }", false},
		{head + "devices: { t: { driver: thermo, unit: °C } }", false},
		{"devices: {}", false},
		{"site: { name: Green House }", false},
		{head + "sites: {}", false},
		{head + "http: { port: 1 }", false},
		{head + "http: { hosts: a }", false},
		{head + "http:", false},
		{head + "protocols: [anp]\nhttp: { domain: garden.example.org, certificate: a.pem, certificate_key: a.key, callers: [\"did:wba:example.com%3A8474:user:ann\"] }", true},
		{head + "http: { domain: garden.example.org }", false},
		{head + "http: { certificate: a.pem, certificate_key: a.key }", false},
		{head + "protocols: [anp]\nhttp: { callers: [\"did:key:z6Mk\"] }", false},
		{head + "protocols: [anp]\nhttp: { callers: [\"did:wba:127.0.0.1\"] }", false},
		{head + "http: { push_hosts: [hooks.example.com, \"192.168.1.20:8443\", \"[fd00::20]:8443\", \"[fd00::21]\"] }", true},
		{head + "http: { push_hosts: [\"https://hooks.example.com\"] }", false},
		{head + "http: { push_hosts: [Hooks.example.com] }", false},
		{head + "http: { push_hosts: [\"*.example.com\"] }", false},
		{head + "http: { push_hosts: [\"hooks.example.com:0\"] }", false},
		{head + "http: { push_hosts: [\"hooks.example.com/path\"] }", false},
		{head + "http: { push_hosts: [\"ann@hooks.example.com\"] }", false},
		{head + "internet:", false},
		{head + "internet: {}", true},
		{head + "internet: { realm: public, relays: [/ip4/192.0.2.7/udp/8475/quic-v1/p2p/12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo] }", true},
		{head + "internet: { realm: \"home:aaaaaaaaaaaaaaaaaaaaaaaaaa\", port_map: off, server: on, ipfs: on, listen: \":0\" }", true},
		{head + "internet: { realm: home }", false},
		{head + "internet: { relays: [192.0.2.7] }", false},
		{head + "internet: { public: on, relays: [/ip4/192.0.2.7/udp/8475/quic-v1/p2p/12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo], acme: staging }", true},
		{head + "internet: { public: board.example.org, public_listen: ':8443', acme: 'https://ca.example/dir' }", true},
		{head + "internet: { public: Board.example.org, public_listen: ':8443' }", false},
		{head + "internet: { public: board.example.org, public_listen: ':8443', acme: 'http://ca.example/dir' }", false},
		{head + "internet: { acme: staging }", false},
		{head + "internet: { public: board.example.org, public_listen: ':8443', ct: 'https://crt.sh/' }", true},
		{head + "internet: { public: board.example.org, public_listen: ':8443', ct: crt.sh }", false},
		{head + "internet: { public: board.example.org, public_listen: '127.0.0.1:8443', proxies: [127.0.0.1, '2001:db8::1'] }", true},
		{head + "internet: { public: board.example.org, proxies: [127.0.0.1] }", false},
		{head + "devices: { R: { driver: relay, pin: GPIO1 } }", false},
		{head + "devices: { r: { pin: GPIO1 } }", false},
		{head + "devices: { r: { driver: rely, pin: GPIO1 } }", false},
		{head + "devices: { r: { driver: relay } }", false},
		{head + "devices: { r: { driver: relay, pin: GPIO1, colour: red } }", false},
		{head + "devices: { r: { driver: relay, pin: GPIO1, active_low: maybe } }", false},
		{head + "devices: { r: { driver: relay, pin: GPIO1, lease: 10 } }", false},
		{head + "devices: { r: { driver: relay, pin: GPIO1, lease: unlimited } }", false},
		{head + "devices: { r: { driver: relay, pin: GPIO1, safe: maybe } }", false},
		{head + "devices: { m: { driver: multi, points: { heater: { saf: off } } } }", false},
		{head + "devices: { m: { driver: multi, points: { heater: } } }", false},
		{head + "devices: { t: { driver: thermo, address: -1 } }", false},
	} {
		_, err := Parse("a.yaml", []byte(tc.text), fakes())
		if (err == nil) != tc.good {
			t.Errorf("Parse of\n%s\ngives %v", tc.text, err)
		}
		if err := schema.Validate(instance(t, tc.text)); (err == nil) != tc.good {
			t.Errorf("the schema says of\n%s\n%v", tc.text, err)
		}
	}
}

func TestSchemaIsDeterministic(t *testing.T) {
	first, err := Schema(fakes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if again, _ := Schema(fakes(), nil); !bytes.Equal(first, again) {
			t.Fatal("the bytes differ")
		}
	}
	for _, want := range []string{`"BCM number of the pin"`, `"default": "1ms"`, `"default": 118`} {
		if !bytes.Contains(first, []byte(want)) {
			t.Errorf("%s is not in\n%s", want, first)
		}
	}
}

type greedy struct {
	unopened
	Every int `json:"every"`
}

type opaque struct {
	unopened
	Call func() `json:"call"`
}

func TestSchemaRefusesDrivers(t *testing.T) {
	for want, config := range map[string]driver.Config{
		"driver bad: its key every": &greedy{},
		"driver bad: ":              &opaque{},
	} {
		_, err := Schema([]driver.Driver{{Name: "bad", Config: func() driver.Config { return config }}}, nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
