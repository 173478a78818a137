//go:build e2e

package home

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device/mqtt/packet"
)

const faultConfig = `site: { name: garden }
devices:
  lamp: { driver: sim, model: relay, min_off: 0s, max_on: 5m }
  fan: { driver: sim, model: relay, min_off: 0s, max_on: 5m }
  short: { driver: sim, model: relay, min_off: 0s, max_on: 6s }
  air: { driver: sim, model: climate, every: 1s }
`

const faultMay = "read *, set lamp+short max 3s"

// bridged starts a site with a bridge to a broker, and with the file of the lamp's output.
func bridged(t *testing.T, port, devices string) (s *site, lamp string) {
	t.Helper()
	lamp = filepath.Join(harness.TempDir(t), "lamp")
	config := strings.Replace(faultConfig, "lamp: { ", "lamp: { outputs_file: "+lamp+", ", 1) + devices
	return startSite(t, config+mqttSection(port, faultMay, ""), brokerPassword), lamp
}

func (s *site) set(device string) string { return "agentsite/" + s.id + "/" + device + "/relay/set" }

// turnOn switches a relay on by the broker.
func (s *site) turnOn(t *testing.T, b *broker, device string) {
	t.Helper()
	s.says(t, "it tells")
	b.publish(s.set(device), "ON", "-q", "1")
	s.is(t, device+"/relay", on, time.Minute)
}

// safe checks that the lamp is safe within a time after a cause. prepare switches it on.
func (s *site) safe(t *testing.T, what, lamp string, within time.Duration, prepare, cause func()) {
	t.Helper()
	took := harness.CheckOrdinaryDeadline(t, within, func() time.Duration {
		prepare()
		begun := time.Now()
		cause()
		harness.WaitFor(t, within+time.Minute, "the lamp is safe", func() bool {
			value, _ := harness.ReadWitness(lamp)
			return value == "off"
		})
		return time.Since(begun)
	})
	t.Logf("%s: safe after %v", what, took.Round(time.Millisecond))
}

// answers checks that the site reads for a while, moves and stops in time, whatever its broker does.
func (s *site) answers(t *testing.T, within, reading time.Duration) {
	t.Helper()
	c := s.Client(t, false)
	timed := func(what string, ask func(context.Context) error) {
		t.Helper()
		harness.CheckOrdinaryDeadline(t, within, func() time.Duration {
			begun := time.Now()
			if err := ask(t.Context()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			return time.Since(begun)
		})
	}
	for n, begun := 0, time.Now(); n < 20 || time.Since(begun) < reading; n++ {
		timed("read", func(ctx context.Context) error {
			_, err := c.Read(ctx, agents.Principal{}, agents.ReadRequest{Points: []string{"air/temperature"}})
			return err
		})
	}
	length := 60.0
	timed("move", func(ctx context.Context) error {
		_, err := c.Move(ctx, agents.Principal{}, agents.MoveRequest{Output: "fan/relay", Value: on, For: &length})
		return err
	})
	timed("stop", func(ctx context.Context) error {
		_, err := c.Stop(ctx, agents.Principal{}, agents.SiteRequest{})
		return err
	})
	if v, _ := s.value(t, c, "fan/relay"); v != off {
		t.Error("a stopped site has an output on")
	}
}

// TestBrokerEnds: a broker is killed and comes back, Home Assistant vanishes, the site hangs: outputs are safe in time,
// and no earlier command moves anything.
func TestBrokerEnds(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	s, lamp := bridged(t, b.port, "")
	s.safe(t, "the broker is killed", lamp, 2*time.Second, func() {
		if b.cmd.ProcessState != nil {
			b.start()
		}
		s.turnOn(t, b, "lamp")
	}, func() { b.signal(syscall.SIGKILL); b.cmd.Wait() })
	s.says(t, "is not reached")
	b.start()
	s.says(t, "it tells")
	if v, _ := s.value(t, s.Client(t, false), "lamp/relay"); v != off {
		t.Error("the lamp is on again by itself")
	}

	var h *homeAssistant
	come := func(device string) func() {
		return func() {
			h = startHome(t, b, 0)
			h.hears(`"born"`)
			h.shows(device+".relay", "off")
			h.call(device+".relay", "turn_on", nil)
			s.is(t, device+"/relay", on, time.Minute)
		}
	}
	s.safe(t, "Home Assistant is killed", lamp, 2*time.Second, come("lamp"), func() { h.cmd.Process.Kill() }) // the broker has its will
	come("short")()
	h.cmd.Process.Signal(syscall.SIGSTOP) // it said on and vanishes, and the broker does not know
	s.is(t, "short/relay", off, 20*time.Second)
	h.cmd.Process.Kill()

	pid := s.Cmd.Process.Pid
	defer syscall.Kill(pid, syscall.SIGCONT)
	s.safe(t, "the site hangs", lamp, 4*time.Second, func() { // by the lease of 3 s, in the guard's process
		syscall.Kill(pid, syscall.SIGCONT)
		s.turnOn(t, b, "lamp")
	}, func() { syscall.Kill(pid, syscall.SIGSTOP) })
}

// TestBrokerFrozen: with a broker that is frozen outputs are safe after its silence.
func TestBrokerFrozen(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	s, lamp := bridged(t, b.port, "")
	s.safe(t, "the broker is frozen", lamp, 33*time.Second, func() {
		b.signal(syscall.SIGCONT)
		s.turnOn(t, b, "lamp")
	}, func() { b.signal(syscall.SIGSTOP) })
	s.answers(t, time.Second, 0)
	b.signal(syscall.SIGCONT)
}

// TestBrokerFull: a broker that pings and orders, but reads nothing, is left when it has taken nothing for ten seconds.
func TestBrokerFull(t *testing.T) {
	t.Parallel()
	f := newFullBroker(t)
	devices := ""
	for i := range 30 {
		devices += fmt.Sprintf("  air%d: { driver: sim, model: climate, every: 1s, seed: %d }\n", i, i+1)
	}
	s, lamp := bridged(t, f.port, devices)
	f.order.Store(s.set("lamp"))
	s.safe(t, "the broker is full", lamp, 20*time.Second, func() {
		f.full.Store(false)
		s.is(t, "lamp/relay", on, time.Minute)
	}, func() { f.full.Store(true) })
	s.answers(t, time.Second, 0)
	if rss := harness.Status(t, s.Cmd.Process.Pid, "VmHWM:"); rss > 150<<10 {
		t.Errorf("the site used %v KiB", rss)
	}
}

// fullBroker is a broker that can stop to read, while it answers as if it lived.
type fullBroker struct {
	port  string
	order atomic.Value // a topic to which it says ON
	full  atomic.Bool
}

func newFullBroker(t *testing.T) *fullBroker {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	f := &fullBroker{}
	_, f.port, _ = net.SplitHostPort(ln.Addr().String())
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go f.serve(c)
		}
	}()
	return f
}

// serve speaks 3.1.1, after it has refused 5.
func (f *fullBroker) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 4096)
	head, err := in.Peek(10)
	if err != nil {
		return
	}
	if _, rest, ok := bytes.Cut(head, []byte("MQTT")); !ok || len(rest) == 0 || rest[0] != packet.V311 {
		c.Write([]byte{0x20, 2, 0, 1})
		return
	}
	ended := make(chan struct{})
	defer close(ended)
	c.Write([]byte{0x20, 2, 0, 0})
	go func() { // what it says does not depend on what it reads
		said := false
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			b := []byte{0xd0, 0}
			if topic, ok := f.order.Load().(string); ok && !said {
				b, said = packet.AppendPublish(nil, packet.V311, 0, topic, []byte("ON"), false), true
			}
			if _, err := c.Write(b); err != nil {
				c.Close()
				return
			}
		}
	}()
	buf := make([]byte, 2048)
	for {
		if f.full.Load() {
			<-ended // never: the other goroutine closes the connection once the site has
		}
		if _, err := in.Read(buf); err != nil {
			return
		}
	}
}

// TestBrokerRefuses: with a wrong password the site says so, and works.
func TestBrokerRefuses(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	s := startSite(t, faultConfig+mqttSection(b.port, faultMay, ""), "wrong")
	s.says(t, "password")
	s.answers(t, time.Second, 0)
	if out, err := s.CLI(t, "agents", "--json"); err != nil || strings.Contains(out, brokerPassword) || strings.Contains(out+s.Log.String(), `"wrong"`) {
		t.Errorf("%s %v", out, err)
	}
}

// TestRetainedJunk: what a broker has kept on every topic of the site moves nothing, and what it described too much is
// taken out of Home Assistant.
func TestRetainedJunk(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	s := startSite(t, faultConfig+mqttSection(b.port, faultMay, ""), brokerPassword)
	s.says(t, "it tells")
	base := "agentsite/" + s.id
	s.Stop(t)
	junk := strings.Repeat("\xff{\"", 30_000)
	described := "homeassistant/device/" + s.id + "/config"
	for _, topic := range []string{
		base + "/status", base + "/lamp/relay", base + "/lamp/relay/set", base + "/fan/relay/set", base + "/short/relay/set",
		base + "/air/temperature", base + "/air/temperature/set",
		base + "/ask/a/b/press", base + "/lamp/relay/capture", base + "/nothing", base + "/a/b/c/d/set",
		"homeassistant/status",
	} {
		for _, payload := range []string{"ON", "online", "offline", `{"value":0,"quality":"good"}`} {
			b.publish(topic, payload, "-r", "-q", "1")
		}
		if strings.HasSuffix(topic, "set") {
			b.publish(topic, "ON", "-r", "-q", "1")
		}
	}
	b.publish(base+"/junk/junk/set", junk, "-r")
	b.publish(described, `{"components":{"ghost.relay":{"platform":"switch","unique_id":"x","command_topic":"y"},"../bad":{"platform":"switch"}},"device":3}`, "-r", "-q", "1")
	again := &site{Site: harness.StartIn(t, s.Folder, faultConfig+mqttSection(b.port, faultMay, ""), nil, harness.Program), id: s.id}
	again.says(t, "it tells")
	h := startHome(t, b, 0)
	h.hears(`"born"`)
	h.shows("lamp.relay", "off")
	h.shows("short.relay", "off")
	for _, output := range []string{"lamp/relay", "fan/relay", "short/relay"} {
		if v, _ := again.value(t, again.Client(t, false), output); v != off {
			t.Errorf("%s was moved by what was kept", output)
		}
	}
	if e := h.get("ghost.relay"); e.Platform != "" {
		t.Error("what the site has not is still there")
	}
	again.turnOn(t, b, "lamp")
	again.answers(t, time.Second, 0)
}

// TestBrokerFlood: ten thousand messages a second by a neighbour on the broker cost neither outputs nor answers.
func TestBrokerFlood(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	s, _ := bridged(t, b.port, "")
	s.turnOn(t, b, "lamp")
	before := harness.Status(t, s.Cmd.Process.Pid, "VmHWM:")
	sent := new(atomic.Int64)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- flood(ctx, b.port, s.set("lamp"), sent) }()
	harness.WaitFor(t, time.Minute, "the site leaves the broker", func() bool {
		out, err := s.CLI(t, "agents")
		return err == nil && strings.Contains(out, "more than")
	})
	begun, from := time.Now(), sent.Load()
	s.is(t, "lamp/relay", off, 10*time.Second) // left, so released
	s.answers(t, 2*time.Second, 5*time.Second)
	took, n := time.Since(begun), sent.Load()-from
	end()
	if err := <-done; err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	rate := float64(n) / took.Seconds()
	t.Logf("%.0f messages a second for %v; the peak of memory went from %v to %v KiB", rate, took, before,
		harness.Status(t, s.Cmd.Process.Pid, "VmHWM:"))
	if after := harness.Status(t, s.Cmd.Process.Pid, "VmHWM:"); after > before+32<<10 {
		t.Errorf("the peak of memory went from %v to %v KiB", before, after)
	}
	s.says(t, "it tells") // it comes back when that is over
}

// flood publishes commands, some ten thousand in a second, until ctx ends.
func flood(ctx context.Context, port, topic string, sent *atomic.Int64) error {
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	hello := packet.Hello{Client: "neighbour", User: brokerUser, Password: brokerPassword, Seconds: 600, Longest: 1 << 16}
	if _, err := c.Write(packet.AppendConnect(nil, packet.V311, hello)); err != nil {
		return err
	}
	if p, err := packet.Read(bufio.NewReader(c), packet.V311, 1<<16); err != nil || p.Code() != 0 {
		return errors.Join(err, fmt.Errorf("refused: %d", p.Code()))
	}
	const batch = 100
	tick := time.NewTicker(time.Second * batch / 10_000)
	defer tick.Stop()
	for n := 0; ; {
		var all []byte
		for range batch {
			n++
			all = packet.AppendPublish(all, packet.V311, 0, topic, []byte([]string{"ON", "OFF"}[n%2]), false)
		}
		if _, err := c.Write(all); err != nil {
			return err
		}
		sent.Add(batch)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
