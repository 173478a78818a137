//go:build e2e

package home

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device"
	"agentsite/node/identity"
)

const (
	brokerUser     = "garden"
	brokerPassword = "a long secret"
)

// broker is a mosquitto.
type broker struct {
	*testing.T
	dir, port string
	cmd       *exec.Cmd
}

// find returns the path of a program, which Debian may have in a folder of root.
func find(t *testing.T, name string) string {
	t.Helper()
	for _, try := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(try); err == nil {
			return path
		}
	}
	return harness.Need(t, name, "")
}

// startBroker starts a mosquitto that knows one user.
func startBroker(t *testing.T) *broker {
	t.Helper()
	find(t, "mosquitto")
	b := &broker{T: t, dir: harness.TempDir(t), port: harness.FreePort(t)}
	passwords := filepath.Join(b.dir, "passwords")
	if err := os.WriteFile(passwords, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(find(t, "mosquitto_passwd"), "-b", passwords, brokerUser, brokerPassword).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	conf := fmt.Sprintf("listener %s 127.0.0.1\nallow_anonymous false\npassword_file %s\n", b.port, passwords)
	if os.Getuid() == 0 { // so that it reads the file
		conf += "user root\n"
	}
	if err := os.WriteFile(filepath.Join(b.dir, "conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start()
	t.Cleanup(func() { b.signal(syscall.SIGKILL); b.cmd.Wait() })
	return b
}

// start starts the broker, with nothing of an earlier one.
func (b *broker) start() {
	b.Helper()
	b.cmd = exec.Command(find(b.T, "mosquitto"), "-c", filepath.Join(b.dir, "conf"))
	if err := b.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	harness.WaitFor(b, time.Minute, "the broker listens", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+b.port)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
}

// anonymous starts the broker again, for clients without a name.
func (b *broker) anonymous() {
	b.Helper()
	b.signal(syscall.SIGKILL)
	b.cmd.Wait()
	if err := os.WriteFile(filepath.Join(b.dir, "conf"), []byte("listener "+b.port+" 127.0.0.1\nallow_anonymous true\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	b.start()
}

func (b *broker) signal(s syscall.Signal) { b.cmd.Process.Signal(s) }

// publish publishes a message.
func (b *broker) publish(topic, payload string, more ...string) {
	b.Helper()
	args := append([]string{"-h", "127.0.0.1", "-p", b.port, "-u", brokerUser, "-P", brokerPassword, "-t", topic, "-m", payload}, more...)
	if out, err := exec.Command(find(b.T, "mosquitto_pub"), args...).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// mqttSection configures the bridge for a broker at a port of this machine.
func mqttSection(port, may, more string) string {
	return fmt.Sprintf("mqtt: { broker: \"mqtt://127.0.0.1:%s\", user: %s, password_file: mqtt.password, every: 1s, may: '%s'%s }\n", port, brokerUser, may, more)
}

// site is a site that has an owner, with a bridge to a broker.
type site struct {
	*harness.Site
	id string // among all on a broker
}

// startSite starts a site with a configuration and an owner.
func startSite(t *testing.T, config, password string) *site {
	t.Helper()
	s := &site{}
	data := harness.TempDir(t)
	if err := os.WriteFile(filepath.Join(data, "mqtt.password"), []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	config = fmt.Sprintf("owner: %q\nhttp: { https: none }\n", identity.New().ID()) + config
	s.Site = harness.StartIn(t, data, config, nil, harness.Need(t, "the program", harness.Program))
	out, err := s.CLI(t, "identity")
	if err != nil {
		t.Fatal(err)
	}
	did := regexp.MustCompile(`did:key:\w+`).FindString(out)
	if did == "" {
		t.Fatal(out)
	}
	s.id = "agentsite-" + did[len(did)-12:]
	return s
}

// says waits until the bridge says something.
func (s *site) says(t *testing.T, words string) {
	t.Helper()
	harness.WaitFor(t, time.Minute, "the bridge says "+words, func() bool {
		out, err := s.CLI(t, "agents")
		return err == nil && strings.Contains(out, words)
	})
}

// value returns the value and the quality of a point.
func (s *site) value(t *testing.T, c agents.Site, point string) (device.Value, device.Quality) {
	t.Helper()
	all, err := c.Read(t.Context(), agents.Principal{}, agents.ReadRequest{Points: []string{point}})
	if err != nil {
		t.Fatal(err)
	}
	return all.Readings[0].Value, all.Readings[0].Quality
}

// is waits until a point has a value, and returns how long that took.
func (s *site) is(t *testing.T, point string, v device.Value, most time.Duration) time.Duration {
	t.Helper()
	c, begun := s.Client(t, false), time.Now()
	harness.WaitFor(t, most, fmt.Sprintf("%s is %v", point, v), func() bool {
		got, _ := s.value(t, c, point)
		return got == v
	})
	return time.Since(begun)
}

// homeAssistant runs testdata/homeassistant.py, sends it commands, and reads the states that it prints.
type homeAssistant struct {
	*testing.T
	cmd *exec.Cmd
	in  io.Writer

	mu     sync.Mutex
	states map[string]entity
	lines  []string // of all else
}

// entity is the state of one in Home Assistant.
type entity struct {
	Platform   string
	Available  bool
	State      any
	Attributes map[string]any
	Brightness float64
	Position   float64
	Bytes      int
}

// startHome starts a Home Assistant that takes slow from a discovery to a subscription.
func startHome(t *testing.T, b *broker, slow time.Duration) *homeAssistant {
	t.Helper()
	const python = "/usr/bin/python3" // Debian's, which has its packages
	if err := exec.Command(python, "-c", "import jinja2, paho.mqtt.client").Run(); err != nil {
		harness.Need(t, "python3-jinja2 and python3-paho-mqtt", "")
	}
	h := &homeAssistant{T: t, states: make(map[string]entity)}
	h.cmd = exec.Command(python, "testdata/homeassistant.py", b.port, brokerUser, brokerPassword,
		fmt.Sprint(slow.Seconds()))
	var log harness.LogBuffer
	h.cmd.Stderr = &log
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.in = in
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			h.heard(lines.Text())
		}
	}()
	t.Cleanup(func() {
		h.cmd.Process.Kill()
		<-done
		h.cmd.Wait()
		if text := log.String(); text != "" {
			t.Errorf("Home Assistant: %s", text)
		}
	})
	return h
}

func (h *homeAssistant) heard(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var e struct {
		Key string
		entity
	}
	if err := json.Unmarshal([]byte(line), &e); err == nil && e.Key != "" {
		h.states[e.Key] = e.entity
		return
	}
	h.lines = append(h.lines, line)
	if strings.Contains(line, `"error"`) {
		h.Errorf("Home Assistant: %s", line)
	}
}

// get returns the state of an entity.
func (h *homeAssistant) get(key string) entity {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[key]
}

// shows waits until an entity is available and has a state.
func (h *homeAssistant) shows(key string, state any) {
	h.Helper()
	h.until(key, func(e entity) bool { return e.Available && e.State == state })
}

func (h *homeAssistant) until(key string, is func(entity) bool) {
	h.Helper()
	defer func() {
		if h.Failed() {
			h.Logf("%s is %+v", key, h.get(key))
		}
	}()
	harness.WaitFor(h.T, time.Minute, key, func() bool { return is(h.get(key)) })
}

// hears waits for a line with words.
func (h *homeAssistant) hears(words ...string) {
	h.Helper()
	harness.WaitFor(h.T, time.Minute, fmt.Sprintf("a line of %q", words), func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return slices.ContainsFunc(h.lines, func(l string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(l, w) })
		})
	})
}

// call calls a service of an entity.
func (h *homeAssistant) call(key, do string, with any) {
	h.Helper()
	text, err := json.Marshal(map[string]any{"key": key, "do": do, "with": with})
	if err != nil {
		h.Fatal(err)
	}
	if _, err := h.in.Write(append(text, '\n')); err != nil {
		h.Fatal(err)
	}
}

var on, off = device.Bool(true), device.Bool(false)

const homeConfig = `site: { name: garden }
devices:
  lamp: { driver: sim, model: relay, min_off: 0s, max_on: 6s }
  plug: { driver: sim, model: relay, min_off: 0s }
  tap: { driver: sim, model: relay, min_off: 0s }
  dim: { driver: sim, model: dimmer, min_off: 0s }
  spot: { driver: sim, model: dimmer, min_off: 0s }
  vent: { driver: sim, model: dimmer, min_off: 0s }
  gate: { driver: sim, model: relay, min_off: 0s, confirm: owner }
  seen: { driver: sim, model: relay, min_off: 0s }
  air: { driver: sim, model: climate, every: 1s }
  house: { driver: sim, model: greenhouse, every: 1s, speed: 60 }
`

const homeMay = "read *, set lamp+plug+tap+dim+spot+vent+gate max 3s, show house/message, capture house/camera"

// TestHomeAssistant: a Home Assistant that is slow to subscribe finds every point as an entity with the value that
// the site itself reads, and moves outputs in the words of each platform.
func TestHomeAssistant(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	h := startHome(t, b, time.Second)
	h.hears(`"born"`)
	s := startSite(t, homeConfig+mqttSection(b.port, homeMay, ", lights: [plug/relay, spot/level], valves: [tap/relay, vent/level], about: [stop, lease, approval]"), brokerPassword)
	c := s.Client(t, false)

	// All that the site reads is there, though Home Assistant subscribed later than it was first told.
	list, err := c.Points(t.Context(), agents.Principal{}, agents.SiteRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Points {
		key := strings.ReplaceAll(p.Point, "/", ".")
		switch p.Kind {
		case device.KindText, device.KindImage, device.KindEvent:
			h.until(key, func(e entity) bool { return e.Available })
		default:
			h.until(key, func(e entity) bool {
				v, quality := s.value(t, c, p.Point)
				return e.Available && quality == device.Good && e.Attributes["quality"] == "good" && same(e, v)
			})
		}
	}
	for key, platform := range map[string]string{
		"lamp.relay": "switch", "plug.relay": "light", "tap.relay": "valve", "dim.level": "number", "spot.level": "light",
		"vent.level": "valve",
		"seen.relay": "switch", "air.temperature": "sensor", "house.message": "notify", "house.camera": "image",
		"house.camera.take": "button", "house.button": "event", "happened": "event",
	} {
		if key == "seen.relay" {
			platform = "binary_sensor" // it may only be read
		}
		if got := h.get(key).Platform; got != platform {
			t.Errorf("%s is a %s", key, got)
		}
	}

	// Each platform says it in its own words.
	for _, move := range []struct {
		key, do string
		with    any
		is      device.Value
		shows   any
	}{
		{"plug.relay", "turn_on", nil, on, "on"}, {"plug.relay", "turn_off", nil, off, "off"},
		{"tap.relay", "open_valve", nil, on, "open"}, {"tap.relay", "close_valve", nil, off, "closed"},
		{"dim.level", "set_value", 40, device.Number(40), 40.0}, {"dim.level", "set_value", 12.5, device.Number(12.5), 12.5},
		{"dim.level", "set_value", 0, device.Number(0), 0.0},
		{"spot.level", "turn_on", 128, device.Number(50), "on"}, {"spot.level", "turn_off", nil, device.Number(0), "off"},
		{"spot.level", "turn_on", nil, device.Number(50), "on"},
		{"vent.level", "open_valve", nil, device.Number(100), "open"}, {"vent.level", "set_position", 30, device.Number(30), "open"}, {"vent.level", "close_valve", nil, device.Number(0), "closed"},
	} {
		h.call(move.key, move.do, move.with)
		s.is(t, strings.ReplaceAll(move.key, ".", "/"), move.is, time.Minute)
		h.shows(move.key, move.shows)
	}
	if e := h.get("spot.level"); e.Brightness != 128 {
		t.Errorf("the brightness is %v", e.Brightness)
	}

	// What is refused moves nothing, and says why.
	h.call("gate.relay", "turn_on", nil)
	h.until("gate.relay", func(e entity) bool { return e.Available && e.State == "off" && e.Attributes["refused"] != nil })
	if v, _ := s.value(t, c, "gate/relay"); v != off {
		t.Error("what an owner confirms was moved")
	}

	// A picture is taken, and an event is heard.
	h.call("house.camera.take", "press", nil)
	h.until("house.camera", func(e entity) bool { return e.Bytes > 100 })
	h.hears(`"trigger"`, `house button`)
	h.hears(`"event": "house.button"`, `"type": "on"`)

	// A switch stays on longer than a lease lasts, and no longer than max_on, whatever Home Assistant says.
	begun := time.Now()
	h.call("lamp.relay", "turn_on", nil)
	s.is(t, "lamp/relay", on, time.Minute)
	held := s.is(t, "lamp/relay", off, 20*time.Second)
	if whole := time.Since(begun); held < 4500*time.Millisecond {
		t.Errorf("the lamp was on for %v of %v: its lease was not renewed", held, whole)
	}
	h.shows("lamp.relay", "off")

	// What happens at the site is an event, to which Home Assistant can notify people.
	h.hears(`"event": "happened"`, `"lease"`, "lamp/relay")
	c.Move(t.Context(), agents.Principal{}, agents.MoveRequest{Output: "gate/relay", Value: on})
	for _, do := range []string{"stop", "reset"} {
		if _, err := s.CLI(t, do); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{`"approval"`, `"stop"`, `"stop_ends"`} {
		h.hears(`"event": "happened"`, kind)
	}

	// Who was not there is told everything when it comes.
	h.cmd.Process.Kill()
	later := startHome(t, b, 100*time.Millisecond)
	later.hears(`"born"`)
	later.shows("lamp.relay", "off")
	later.shows("dim.level", 0.0)
	s.Kill(t)
	later.until("dim.level", func(e entity) bool { return !e.Available })
}

// same reports whether an entity has a value.
func same(e entity, v device.Value) bool {
	switch e.Platform {
	case "switch", "light", "binary_sensor":
		return e.State == map[bool]string{true: "on", false: "off"}[v == on || v != off && v != device.Number(0)]
	case "valve":
		return e.State == map[bool]string{true: "open", false: "closed"}[v == on || v != off && v != device.Number(0)]
	}
	n, ok := e.State.(float64)
	return ok && v == device.Number(n)
}
