//go:build e2e

package devices

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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

// mosquitto is the broker of that name, with a user.
type mosquitto struct {
	*testing.T
	dir, port string
	cmd       *exec.Cmd
}

const mqttPassword = "a long secret"

// debian returns the path of a program, which Debian may have in a folder of root.
func debian(t *testing.T, name string) string {
	t.Helper()
	for _, try := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(try); err == nil {
			return path
		}
	}
	return harness.Need(t, name, "")
}

func startMosquitto(t *testing.T) *mosquitto {
	m := &mosquitto{T: t, dir: harness.TempDir(t), port: harness.FreePort(t)}
	passwords := filepath.Join(m.dir, "passwords")
	if err := os.WriteFile(passwords, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(debian(t, "mosquitto_passwd"), "-b", passwords, "site", mqttPassword).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	conf := fmt.Sprintf("listener %s 127.0.0.1\nallow_anonymous false\npassword_file %s\n", m.port, passwords)
	if os.Getuid() == 0 {
		conf += "user root\n"
	}
	if err := os.WriteFile(filepath.Join(m.dir, "conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	m.start()
	t.Cleanup(func() { m.cmd.Process.Kill(); m.cmd.Wait() })
	return m
}

func (m *mosquitto) start() {
	m.Helper()
	m.cmd = exec.Command(debian(m.T, "mosquitto"), "-c", filepath.Join(m.dir, "conf"))
	if err := m.cmd.Start(); err != nil {
		m.Fatal(err)
	}
	harness.WaitFor(m, time.Minute, "the broker listens", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+m.port)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (m *mosquitto) client(name string, args ...string) *exec.Cmd {
	return exec.Command(debian(m.T, name),
		append([]string{"-h", "127.0.0.1", "-p", m.port, "-u", "site", "-P", mqttPassword}, args...)...)
}

func (m *mosquitto) publish(topic, payload string, more ...string) {
	m.Helper()
	if out, err := m.client("mosquitto_pub", append([]string{"-t", topic, "-m", payload}, more...)...).CombinedOutput(); err != nil {
		m.Fatalf("%v: %s", err, out)
	}
}

// zigbeePlug is a plug of Zigbee2MQTT: it follows the commands that mosquitto_sub prints.
type zigbeePlug struct {
	*mosquitto
	mu      sync.Mutex
	on      bool
	deaf    bool
	follows []string
}

func startPlug(t *testing.T, m *mosquitto) *zigbeePlug {
	p := &zigbeePlug{mosquitto: m}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil { // the broker may go
			p.listen(ctx)
			time.Sleep(100 * time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return p
}

func (p *zigbeePlug) listen(ctx context.Context) {
	cmd := p.client("mosquitto_sub", "-v", "-t", "zigbee2mqtt/plug/set", "-t", "zigbee2mqtt/plug/get", "-t", "test/ready")
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		topic, payload, _ := strings.Cut(lines.Text(), " ")
		p.mu.Lock()
		p.follows = append(p.follows, lines.Text())
		var command struct{ State string }
		if topic == "zigbee2mqtt/plug/set" && !p.deaf && json.Unmarshal([]byte(payload), &command) == nil {
			p.on = command.State == "ON"
		}
		deaf := p.deaf
		p.mu.Unlock()
		if !deaf && topic != "test/ready" {
			p.tell()
		}
	}
}

// tell publishes the state, where the broker is there.
func (p *zigbeePlug) tell() {
	p.mu.Lock()
	state := "OFF"
	if p.on {
		state = "ON"
	}
	p.mu.Unlock()
	p.client("mosquitto_pub", "-r", "-t", "zigbee2mqtt/plug", "-m", `{"state":"`+state+`","power":12.5}`).Run()
}

func (p *zigbeePlug) is() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.on }

// online is the message of Zigbee2MQTT that it has started.
func (p *zigbeePlug) online() {
	p.Helper()
	p.publish("zigbee2mqtt/bridge/state", `{"state":"online"}`, "-r")
	p.publish("zigbee2mqtt/plug/availability", `{"state":"online"}`, "-r")
	harness.WaitFor(p, time.Minute, "the plug hears the broker", func() bool {
		p.publish("test/ready", "x")
		p.mu.Lock()
		defer p.mu.Unlock()
		n := len(p.follows)
		return n > 0 && p.follows[n-1] == "test/ready x"
	})
	p.tell()
}

// mqttSite is a site with the plug and a thermometer of other topics.
func mqttSite(t *testing.T, m *mosquitto) *harness.Site {
	t.Helper()
	data := harness.TempDir(t)
	if err := os.WriteFile(filepath.Join(data, "broker.password"), []byte(mqttPassword), 0o600); err != nil {
		t.Fatal(err)
	}
	broker := fmt.Sprintf("driver: mqtt, broker: \"mqtt://127.0.0.1:%s\", user: site, password_file: broker.password",
		m.port)
	config := fmt.Sprintf(`owner: %q
http: { https: none }
site: { name: garden }
devices:
  plug: { %s, kind: zigbee2mqtt, name: plug, every: 1s, outputs: { relay: { safe: off } }, inputs: { power: { unit: W, range: 0..4000 } }, points: { relay: { min_off: 0s, max_on: 5m } } }
  air: { %s, every: 10m, inputs: { temperature: { topic: home/air, path: t, unit: Cel, range: -40..85 } } }
`, identity.New().ID(), broker, broker)
	return harness.StartIn(t, data, config, nil, harness.Need(t, "the program", harness.Program))
}

func readPoint(t *testing.T, s *harness.Site, point string) device.Reading {
	t.Helper()
	all, err := s.Client(t, false).Read(t.Context(), agents.Principal{}, agents.ReadRequest{Points: []string{point}})
	if err != nil {
		t.Fatal(err)
	}
	r := all.Readings[0]
	return device.Reading{Value: r.Value, Quality: r.Quality, Why: r.Why}
}

func waitPoint(t *testing.T, s *harness.Site, point string, most time.Duration, what string, is func(device.Reading) bool) {
	t.Helper()
	harness.WaitFor(t, most, point+" "+what, func() bool { return is(readPoint(t, s, point)) })
}

func isGood(v device.Value) func(device.Reading) bool {
	return func(r device.Reading) bool { return r.Quality == device.Good && r.Value == v }
}

func isFault(r device.Reading) bool { return r.Quality == device.Bad }

// TestMQTT: a plug and a thermometer behind mosquitto. Junk is a fault and no value; a broker that ends, or stands
// still, is noticed; the plug is safe once it is back.
func TestMQTT(t *testing.T) {
	m := startMosquitto(t)
	p := startPlug(t, m)
	m.publish("home/air", `{"t":85.5}`, "-r") // junk that is kept
	s := mqttSite(t, m)
	p.online()
	waitPoint(t, s, "plug/power", time.Minute, "is measured", isGood(device.Number(12.5)))
	waitPoint(t, s, "air/temperature", time.Minute, "of an unknown age is a fault", isFault)
	m.publish("home/air", `{"t":21.5}`, "-r")
	waitPoint(t, s, "air/temperature", time.Minute, "is measured", isGood(device.Number(21.5)))
	for _, junk := range []string{`{"t":"unavailable"}`, `{"t":1e999}`, `{"t":[21]}`, `{"t":21`, strings.Repeat(`{"t":`, 5000), "\x01", `{"t":-200}`} {
		m.publish("home/air", junk, "-r")
		waitPoint(t, s, "air/temperature", time.Minute, "of junk is a fault", isFault)
		m.publish("home/air", `{"t":21.5}`)
		waitPoint(t, s, "air/temperature", time.Minute, "is measured again", isGood(device.Number(21.5)))
	}
	m.publish("home/air", `{"t":22,"x":"`+strings.Repeat("x", 100<<10)+`"}`) // the broker keeps it to itself
	m.publish("home/air", `{"t":23}`)
	waitPoint(t, s, "air/temperature", time.Minute, "is measured after a long message", isGood(device.Number(23)))

	on := func() {
		t.Helper()
		harness.WaitFor(t, time.Minute, "the plug can be switched on", func() bool {
			_, err := s.Client(t, false).Move(t.Context(), agents.Principal{}, agents.MoveRequest{
				Output: "plug/relay", Value: device.Bool(true), For: new(240.0),
			})
			return err == nil
		})
		if !p.is() {
			t.Fatal("the move has succeeded, and the plug is off")
		}
	}
	off := func(what string) {
		t.Helper()
		harness.WaitFor(t, time.Minute, "the plug is off after "+what, func() bool { return !p.is() })
		waitPoint(t, s, "plug/relay", time.Minute, "is off after "+what, isGood(device.Bool(false)))
	}
	on()
	p.mu.Lock()
	p.on = false // its button
	p.mu.Unlock()
	p.tell()
	off("its button")

	on()
	m.cmd.Process.Kill()
	m.cmd.Wait()
	waitPoint(t, s, "plug/power", 30*time.Second, "without a broker is a fault", isFault)
	waitPoint(t, s, "air/temperature", 30*time.Second, "without a broker is a fault", isFault)
	m.start()
	p.online()
	off("the broker has ended")

	on()
	m.cmd.Process.Signal(syscall.SIGSTOP)
	waitPoint(t, s, "plug/power", 40*time.Second, "of a broker that stands still is a fault", isFault)
	m.cmd.Process.Signal(syscall.SIGCONT)
	off("the broker stood still")

	p.mu.Lock()
	p.deaf = true
	p.mu.Unlock()
	if _, err := s.Client(t, false).Move(t.Context(), agents.Principal{}, agents.MoveRequest{Output: "plug/relay", Value: device.Bool(true)}); err == nil {
		t.Error("a move that the plug did not follow has succeeded")
	}
	p.mu.Lock()
	p.deaf = false
	p.mu.Unlock()
	on()
	s.Stop(t)
	if p.is() {
		t.Error("the site has ended, and the plug is on")
	}
}
