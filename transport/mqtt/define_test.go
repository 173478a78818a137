package mqtt

import (
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
