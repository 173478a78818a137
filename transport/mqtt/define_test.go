package mqtt

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestDefine: a mistake is at its key.
func TestDefine(t *testing.T) {
	for _, tt := range []struct {
		key  string
		bend func(*Agent)
	}{
		{"", func(a *Agent) {}},
		{"", func(a *Agent) { a.Broker, a.Plain = "mqtt://192.168.1.2:1883", true }},
		{"", func(a *Agent) { a.Broker = "mqtt://[::1]" }},
		{"broker", func(a *Agent) { a.Broker = "" }},
		{"broker", func(a *Agent) { a.Broker = "mqtt://192.168.1.2" }},
		{"broker", func(a *Agent) { a.Broker = "mqtts://u:p@b" }},
		{"broker", func(a *Agent) { a.Broker = "https://b" }},
		{"broker", func(a *Agent) { a.Broker = "mqtts://b/x" }},
		{"", func(a *Agent) { a.Broker = "homeassistant" }},
		{"broker", func(a *Agent) { a.Broker, a.User = "homeassistant", "u" }},
		{"plain", func(a *Agent) { a.Plain = true }},
		{"user", func(a *Agent) { a.PasswordFile = "p" }},
		{"password_file", func(a *Agent) { a.User, a.PasswordFile = "u", "../p" }},
		{"ca_file", func(a *Agent) { a.CAFile = "/etc/x" }},
		{"discovery", func(a *Agent) { a.Discovery = "a/b" }},
		{"discovery", func(a *Agent) { a.Discovery = "#" }},
		{"discovery", func(a *Agent) { a.Discovery = "on" }},
		{"broker", func(a *Agent) { a.Broker = "mqtts://broker.example.org:99999" }},
		{"every", func(a *Agent) { a.Every = time.Millisecond }},
		{"hold", func(a *Agent) { a.Hold = 0 }},
		{"lights", func(a *Agent) { a.Lights = []string{"lamp"} }},
		{"valves", func(a *Agent) { a.Lights, a.Valves = []string{"a/b"}, []string{"a/b"} }},
	} {
		a := Kind(World{}).New().(*Agent)
		a.Broker = "mqtts://broker.example.org"
		tt.bend(a)
		_, err := a.Define()
		key := ""
		if err != nil {
			key, _, _ = strings.Cut(err.Error(), ":")
		}
		if key != tt.key {
			t.Errorf("%+v: %v, want a mistake at %q", a, err, tt.key)
		}
	}
}

// TestBroker: where a bridge connects, and as whom. The broker of Home Assistant is asked for each time.
func TestBroker(t *testing.T) {
	asked := 0
	w := World{Secret: func(string) (string, error) { return "secret", nil }}
	home := w
	home.Supervised = func(context.Context) (Broker, error) {
		asked++
		return Broker{Host: "core-mosquitto", Port: 1884, User: "addons", Password: "p"}, nil
	}
	for _, tt := range []struct {
		world              World
		broker, user, file string
		want               Broker
	}{
		{w, "mqtts://b", "", "", Broker{Host: "b", Port: 8883, TLS: true}},
		{w, "mqtt://127.0.0.1", "", "", Broker{Host: "127.0.0.1", Port: 1883}},
		{w, "mqtts://[fd00::1]:1", "u", "f", Broker{Host: "fd00::1", Port: 1, TLS: true, User: "u", Password: "secret"}},
		{home, "homeassistant", "", "", Broker{Host: "core-mosquitto", Port: 1884, User: "addons", Password: "p"}},
		{w, "homeassistant", "", "", Broker{}},
	} {
		a := &Agent{Broker: tt.broker, User: tt.user, PasswordFile: tt.file, world: tt.world}
		got, err := a.broker(t.Context())
		if got != tt.want || (err != nil) != (tt.want == Broker{}) {
			t.Errorf("%s: %+v, %v", tt.broker, got, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}
