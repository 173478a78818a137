//go:build e2e

package home

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device"
)

const permissionConfig = `site: { name: shed }
devices:
  lamp: { driver: sim, model: relay, min_off: 0s, max_on: 5m }
  fan: { driver: sim, model: relay, min_off: 10m }
  gate: { driver: sim, model: relay, min_off: 0s, confirm: owner }
  bolt: { driver: sim, model: relay, min_off: 0s }
  dim: { driver: sim, model: dimmer, min_off: 0s }
  door: { driver: sim, model: relay, min_off: 0s }
  den: { driver: sim, model: climate, every: 1s }
  attic: { driver: sim, model: climate, every: 1s }
`

const permission = "read den+lamp+dim+gate+fan+bolt, set lamp+gate+dim+fan, set bolt 2/h"

// calls are asked in this order. A value of none releases.
var calls = []struct {
	output  string
	value   device.Value
	payload string // the same by MQTT
	done    bool
}{
	{"lamp/relay", on, "ON", true},
	{"lamp/relay", device.Value{}, "OFF", true},
	{"dim/level", device.Number(40), "40", true},
	{"dim/level", device.Number(60), "60.0", true},
	{"dim/level", device.Number(140), "140", false},
	{"dim/level", device.Value{}, "OFF", true},
	{"fan/relay", on, "ON", false}, // it rests after the start
	{"bolt/relay", on, "ON", true},
	{"bolt/relay", device.Value{}, "OFF", true}, // which no rate counts
	{"bolt/relay", on, "ON", true},
	{"bolt/relay", device.Value{}, "OFF", true},
	{"bolt/relay", on, "ON", false}, // the third of two an hour
	{"gate/relay", on, "ON", false}, // an owner would have to confirm it
}

// listener hears what is published, by mosquitto_sub.
type listener struct {
	mu   sync.Mutex
	all  map[string][]map[string]any // states by topic
	text map[string]string           // all else
}

func listen(t *testing.T, b *broker, topics string) *listener {
	t.Helper()
	l := &listener{all: make(map[string][]map[string]any), text: make(map[string]string)}
	cmd := exec.Command(find(t, "mosquitto_sub"), "-h", "127.0.0.1", "-p", b.port, "-u", brokerUser, "-P", brokerPassword,
		"-t", topics, "-v")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			topic, payload, _ := strings.Cut(lines.Text(), " ")
			var state map[string]any
			l.mu.Lock()
			if json.Unmarshal([]byte(payload), &state) == nil {
				l.all[topic] = append(l.all[topic], state)
			}
			l.text[topic] = payload
			l.mu.Unlock()
		}
	}()
	t.Cleanup(func() { cmd.Process.Kill(); <-done; cmd.Wait() })
	return l
}

// last returns the last state of a topic, and how many there were.
func (l *listener) last(topic string) (state map[string]any, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n = len(l.all[topic]); n > 0 {
		state = l.all[topic][n-1]
	}
	return state, n
}

// TestOnePermission: by MQTT the same calls are decided as by MCP, with the same words, and the outputs move the same.
// A neighbour on the broker moves nothing by anything else, and nothing once the bridge may not.
func TestOnePermission(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	s := startSite(t, permissionConfig+mqttSection(b.port, permission, ""), brokerPassword)
	s.says(t, "it tells")
	heard := listen(t, b, "agentsite/"+s.id+"/#")
	topic := func(point string) string { return "agentsite/" + s.id + "/" + point }
	b.publish("homeassistant/status", "online") // so that all is told
	for _, point := range []string{"lamp/relay", "dim/level", "fan/relay", "bolt/relay", "gate/relay", "den/temperature"} {
		harness.WaitFor(t, time.Minute, point+" is told", func() bool { _, n := heard.last(topic(point)); return n > 0 })
	}

	twin := harness.Start(t, permissionConfig, harness.Need(t, "the program", harness.Program))
	_, client := twin.AddToken(t, "caller", permission)
	harness.WaitFor(t, time.Minute, "the outputs are there", func() bool {
		out, err := twin.CLI(t, "read", "den/temperature", "--json")
		return err == nil && strings.Contains(out, `"good"`)
	})
	for _, c := range calls {
		_, err := client.Move(t.Context(), agents.Principal{}, agents.MoveRequest{Output: c.output, Value: c.value})
		if (err == nil) != c.done {
			t.Errorf("%s %s by MCP: %v", c.output, c.payload, err)
		}
		_, before := heard.last(topic(c.output))
		b.publish(topic(c.output)+"/set", c.payload, "-q", "1")
		want := c.value
		if want.IsZero() {
			if want = off; strings.HasSuffix(c.output, "level") {
				want = device.Number(0)
			}
		}
		var got map[string]any
		harness.WaitFor(t, time.Minute, fmt.Sprintf("%s %s is decided by MQTT", c.output, c.payload), func() bool {
			state, n := heard.last(topic(c.output))
			got = state
			return n > before && (state["refused"] != nil || state["value"] == valueOf(want))
		})
		refused, _ := got["refused"].(string)
		var needs *agents.ApprovalNeeded
		switch {
		case (refused == "") != c.done:
			t.Errorf("%s %s by MQTT: %v", c.output, c.payload, got)
		case !c.done && !errors.As(err, &needs) && !similar(refused, err.Error()):
			t.Errorf("%s %s: %q by MQTT, %q by MCP", c.output, c.payload, refused, err)
		}
	}
	for _, one := range []*harness.Site{s.Site, twin} {
		if _, err := one.CLI(t, "stop"); err != nil {
			t.Fatal(err)
		}
	}
	b.publish(topic("lamp/relay/set"), "ON", "-q", "1")
	harness.WaitFor(t, time.Minute, "a stopped site refuses",
		func() bool { state, _ := heard.last(topic("lamp/relay")); return state["refused"] != nil })
	if _, err := client.Move(t.Context(), agents.Principal{}, agents.MoveRequest{Output: "lamp/relay", Value: on}); err == nil {
		t.Error("a stopped site moves by MCP")
	}
	var mine, its map[string][]string
	harness.WaitFor(t, time.Minute, "the outputs did the same", func() bool {
		mine, its = moved(t, s.Site), moved(t, twin)
		return reflect.DeepEqual(mine, its)
	})
	if len(mine["lamp/relay"]) == 0 || len(mine["dim/level"]) == 0 {
		t.Errorf("%v %v", mine, its)
	}
	if _, err := s.CLI(t, "reset"); err != nil {
		t.Fatal(err)
	}

	// What a neighbour sends otherwise.
	own := "agentsite/" + s.id
	for _, payload := range []string{"on", "true", "1", "", "ON ", "\"ON\"", "{}", "TOGGLE", strings.Repeat("ON", 40)} {
		b.publish(own+"/lamp/relay/set", payload)
	}
	for _, payload := range []string{"NaN", "Inf", "1e999", "0x28", "4_0", "-1", "101", "ON", strings.Repeat("4", 70)} {
		b.publish(own+"/dim/level/set", payload)
	}
	b.publish(own+"/lamp/relay/set", "ON", "-r")
	for _, at := range []string{
		"/door/relay/set", "/attic/temperature/set", "/den/temperature/set", "/LAMP/relay/set", "/lamp/relay/set/",
		"/lamp/relay/set/set", "/../door/relay/set", "/lamp//relay/set", "/stop", "/ask/x/talk/press",
		"/lamp/relay/capture", "/../" + s.id + "/lamp/relay/set",
	} {
		b.publish(own+at, "ON")
	}
	b.publish("agentsite/agentsite-aaaaaaaaaaaa/lamp/relay/set", "ON")
	b.publish(own+"/dim/level/set", "7", "-q", "1") // behind all that
	s.is(t, "dim/level", device.Number(7), time.Minute)
	c := s.Client(t, false)
	for _, output := range []string{"lamp/relay", "door/relay", "gate/relay", "fan/relay"} {
		if v, _ := s.value(t, c, output); v != off {
			t.Errorf("a neighbour moved %s", output)
		}
	}
	heard.mu.Lock()
	for at, text := range heard.text {
		if (strings.Contains(at, "attic") || strings.Contains(at, "door")) && !strings.HasSuffix(at, "/set") && !strings.HasSuffix(at, "/set/") {
			t.Errorf("%s was told: %s", at, text)
		}
	}
	heard.mu.Unlock()

	// Without its permission the bridge holds nothing and moves nothing.
	if _, err := s.CLI(t, "agents", "pause", "mqtt"); err != nil {
		t.Fatal(err)
	}
	s.is(t, "dim/level", device.Number(0), time.Minute)
	b.publish(own+"/lamp/relay/set", "ON", "-q", "1")
	b.publish(own+"/behind", "it")
	harness.WaitFor(t, time.Minute, "the broker has passed all on",
		func() bool { heard.mu.Lock(); defer heard.mu.Unlock(); return heard.text[own+"/behind"] == "it" })
	if v, _ := s.value(t, c, "lamp/relay"); v != off {
		t.Error("a paused bridge moves")
	}
}

// valueOf returns a value as JSON has it.
func valueOf(v device.Value) any {
	switch v {
	case on:
		return true
	case off:
		return false
	}
	return v.Number()
}

// similar reports whether two texts are the same but for when to try again, which differs between two moments.
func similar(a, b string) bool {
	a, _, _ = strings.Cut(a, "; try again")
	b, _, _ = strings.Cut(b, "; try again")
	return a == b
}

// moved returns what the outputs did.
func moved(t *testing.T, r *harness.Site) map[string][]string {
	t.Helper()
	all, c := make(map[string][]string), r.Client(t, false)
	for _, output := range []string{"lamp/relay", "fan/relay", "gate/relay", "bolt/relay", "dim/level", "door/relay"} {
		h, err := c.History(t.Context(), agents.Principal{}, agents.HistoryRequest{Point: output})
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range h.Changes {
			all[output] = append(all[output], fmt.Sprint(change.Value, change.Cause))
		}
	}
	return all
}
