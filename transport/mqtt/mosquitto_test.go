package mqtt

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/mqtt/packet"
	"agentsite/transport/adapter/adaptertest"
)

// mosquitto is the broker of that name, with TLS, a user and a password. It skips a test where it is not installed.
type mosquitto struct {
	*testing.T
	dir, port string
	run       *exec.Cmd
	bridges   int
}

func newMosquitto(t *testing.T) *mosquitto {
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		if program = "/usr/sbin/mosquitto"; !exists(program) {
			t.Skip("SKIPPED: mosquitto is not installed; .ci/install quick installs it, and CI runs this")
		}
	}
	m := &mosquitto{T: t, dir: t.TempDir()}
	for range 20 { // below the kernel's ephemeral ports, so that it stays free while the broker restarts
		m.port = strconv.Itoa(10_000 + mathrand.IntN(20_000))
		ln, err := net.Listen("tcp", "127.0.0.1:"+m.port)
		if err == nil {
			ln.Close()
			break
		}
	}
	m.certificate()
	m.write("passwords", "")
	if out, err := exec.Command("mosquitto_passwd", "-b", m.file("passwords"), "garden", "secret").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.write("conf", fmt.Sprintf("listener %s 127.0.0.1\ncafile %s\ncertfile %s\nkeyfile %s\nallow_anonymous false\npassword_file %s\n", m.port, m.file("ca"), m.file("ca"), m.file("key"), m.file("passwords")))
	m.start(program)
	t.Cleanup(m.stop)
	return m
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func (m *mosquitto) file(name string) string { return filepath.Join(m.dir, name) }

func (m *mosquitto) write(name, text string) {
	if err := os.WriteFile(m.file(name), []byte(text), 0o600); err != nil {
		m.Fatal(err)
	}
}

func (m *mosquitto) certificate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		m.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		m.Fatal(err)
	}
	m.write("ca", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	if der, err = x509.MarshalECPrivateKey(key); err != nil {
		m.Fatal(err)
	}
	m.write("key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
}

// start starts the broker, and waits until it listens. Root is not given up, so that it reads the files.
func (m *mosquitto) start(program string) {
	conf, _ := os.ReadFile(m.file("conf"))
	if os.Getuid() == 0 && !strings.Contains(string(conf), "user root") {
		m.write("conf", string(conf)+"user root\n")
	}
	m.run = exec.Command(program, "-c", m.file("conf"))
	if err := m.run.Start(); err != nil {
		m.Fatal(err)
	}
	until(m.T, 10*time.Second, "mosquitto listens", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+m.port)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (m *mosquitto) stop() {
	m.run.Process.Kill()
	m.run.Wait()
}

func (m *mosquitto) options(args ...string) []string {
	return append([]string{"-h", "127.0.0.1", "-p", m.port, "--cafile", m.file("ca"), "-u", "garden", "-P", "secret"},
		args...)
}

// publish publishes a message by mosquitto_pub.
func (m *mosquitto) publish(args ...string) {
	m.Helper()
	if out, err := exec.Command("mosquitto_pub", m.options(args...)...).CombinedOutput(); err != nil {
		m.Fatalf("%v: %s", err, out)
	}
}

// until waits for a message that is so, by mosquitto_sub, which prints topics and payloads.
func (m *mosquitto) until(what string, is func(topic, payload string) bool, topics ...string) {
	m.Helper()
	args := m.options("-v", "-W", "20")
	for _, t := range topics {
		args = append(args, "-t", t)
	}
	c := exec.Command("mosquitto_sub", args...)
	out, err := c.StdoutPipe()
	if err != nil {
		m.Fatal(err)
	}
	if err := c.Start(); err != nil {
		m.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if topic, payload, _ := strings.Cut(lines.Text(), " "); is(topic, payload) {
			return
		}
	}
	m.Fatalf("%s: not within 20 s", what)
}

// bridge starts a bridge to the broker.
func (m *mosquitto) bridge(site *adaptertest.Site, bend func(*Agent)) *Agent {
	a := Kind(World{
		Site: "garden", ID: "agentsite-test", Version: "9", Claimed: func() bool { return true },
		Secret: func(string) (string, error) { return "secret", nil },
		File:   func(name string) ([]byte, error) { return os.ReadFile(m.file(name)) },
	}).New().(*Agent)
	a.Broker, a.User, a.PasswordFile, a.CAFile, a.Every, a.retry = "mqtts://127.0.0.1:"+m.port, "garden", "password", "ca", time.Second, 50*time.Millisecond
	if bend != nil {
		bend(a)
	}
	if _, err := a.Define(); err != nil {
		m.Fatal(err)
	}
	m.bridges++
	token, _ := site.Token(m, fmt.Sprint("bridge", m.bridges), all)
	self, err := site.Node.Bearer(token, true)
	if err != nil {
		m.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, self, site.Node) }()
	m.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			m.Error(err)
		}
	})
	return a
}

func (m *mosquitto) is(site *adaptertest.Site, output string, v device.Value) {
	m.Helper()
	until(m.T, 40*time.Second, output+" is "+v.String(), func() bool { return site.Value("greenhouse/"+output) == v })
}

// TestMosquitto: with a real broker, by both versions: states and commands over TLS, kept commands, the wills of both
// ends, a broker that is killed and one that is frozen.
func TestMosquitto(t *testing.T) {
	for _, version := range []byte{packet.V5, packet.V311} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			m := newMosquitto(t)
			site := adaptertest.New(t, nil)
			set := "agentsite/agentsite-test/greenhouse/heater/set"
			m.publish("-t", set, "-m", "ON", "-r") // before the site comes
			a := m.bridge(site, func(a *Agent) { a.version, a.timing = version, timing{100 * time.Millisecond, time.Second} })
			m.until("it is there", func(topic, payload string) bool { return payload == online }, a.base()+"/status")
			m.until("it is described", func(_, payload string) bool { return strings.Contains(payload, `"greenhouse.heater"`) }, "homeassistant/device/+/config")
			m.until("a reading", func(_, payload string) bool { return strings.Contains(payload, `"quality":"good"`) }, a.base()+"/greenhouse/temperature")
			if site.Value("greenhouse/heater") != not {
				t.Fatal("a kept command moved it")
			}
			m.publish("-t", set, "-m", "ON", "-q", "1")
			m.is(site, "heater", on)
			m.publish("-t", "homeassistant/status", "-m", offline)
			m.is(site, "heater", not)
			m.publish("-t", set, "-m", "ON")
			m.is(site, "heater", on)
			m.run.Process.Signal(syscall.SIGSTOP)
			m.is(site, "heater", not)
			m.run.Process.Signal(syscall.SIGCONT)
			m.until("it is back", func(topic, payload string) bool { return payload == online }, a.base()+"/status")
			m.publish("-t", set, "-m", "ON")
			m.is(site, "heater", on)
			program := m.run.Path
			m.stop()
			m.is(site, "heater", not)
			m.start(program)
			m.until("it is back", func(topic, payload string) bool { return payload == online }, a.base()+"/status")
			m.is(site, "heater", not)
		})
	}
}

// TestMosquittoRefuses: a wrong password, and a certificate of another authority, are said, and tried again later.
func TestMosquittoRefuses(t *testing.T) {
	m := newMosquitto(t)
	other := newMosquitto(t)
	site := adaptertest.New(t, nil)
	for says, bend := range map[string]func(*Agent){
		"the user or the password": func(a *Agent) { a.User = "nobody" },
		"certificate":              func(a *Agent) { a.world.File = func(string) ([]byte, error) { return os.ReadFile(other.file("ca")) } },
	} {
		a := m.bridge(site, bend)
		until(t, 20*time.Second, says, func() bool { return strings.Contains(a.Report(t.Context()).Says, says) })
	}
}
