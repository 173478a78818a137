//go:build e2e

package install

import (
	"cmp"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// manager is a service manager's end of sd_notify(3).
type manager struct {
	conn *net.UnixConn
	said chan string
}

func newManager(t *testing.T, name string, patience time.Duration) *manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", strconv.FormatInt(patience.Microseconds(), 10))
	m := &manager{conn, make(chan string, 1000)}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			m.said <- string(buf[:n])
		}
	}()
	return m
}

// hears waits at most that long for what begins with words, and fails on anything else.
func (m *manager) hears(t *testing.T, words string, most time.Duration) string {
	t.Helper()
	select {
	case said := <-m.said:
		if !strings.HasPrefix(said, words) {
			t.Fatalf("%q, want %q", said, words)
		}
		return said
	case <-time.After(most):
		t.Fatalf("%v without %q", most, words)
	}
	return ""
}

// TestServiceManager: the service manager is notified when the outputs are safe and the site
// listens, while a guard responds, and when the site ends.
func TestServiceManager(t *testing.T) {
	const patience = 3 * time.Second
	m := newManager(t, filepath.Join(harness.TempDir(t), "notify"), patience)
	r := harness.StartRelay(t)
	if said := m.hears(t, "READY=1\n", time.Second); !strings.Contains(said, "at their safe values") || r.State() != "off" {
		t.Errorf("%q, and the relay is %s", said, r.State())
	}
	for range 3 {
		m.hears(t, "WATCHDOG=1", patience)
	}

	t.Log("a guard that stands still and is replaced")
	syscall.Kill(r.Guard(t), syscall.SIGSTOP)
	for range 3 {
		m.hears(t, "WATCHDOG=1", patience)
	}

	t.Log("one that cannot be replaced")
	plan := filepath.Join(r.Folder, "outputs.yaml")
	if err := os.Rename(plan, plan+".away"); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(r.Guard(t), syscall.SIGSTOP)
	select {
	case said := <-m.said:
		t.Errorf("there is no guard, and the site says %q", said)
	case <-time.After(patience):
	}
	if code, answer := r.Post(t, harness.ToolCall("read_points", `{}`)); code != 200 {
		t.Errorf("nobody would know but by the guard: %d %s", code, answer)
	}
	if err := os.Rename(plan+".away", plan); err != nil {
		t.Fatal(err)
	}
	m.hears(t, "WATCHDOG=1", 10*time.Second)
	r.Stop(t)
	for said := range m.said {
		if strings.HasPrefix(said, "STOPPING=1") {
			break
		}
	}
}

// TestServiceManagerWithoutOutputs has the other kind of socket, too.
func TestServiceManagerWithoutOutputs(t *testing.T) {
	m := newManager(t, "@agentsite-"+strconv.Itoa(os.Getpid()), time.Second)
	r := harness.Start(t, "site: { name: bare }\n", harness.Need(t, "the program", harness.Program))
	m.hears(t, "READY=1\n", time.Second)
	for range 3 {
		m.hears(t, "WATCHDOG=1", time.Second)
	}
	r.Stop(t)
}

// TestLatchedStart: a site that starts with the emergency stop latched says so.
func TestLatchedStart(t *testing.T) {
	m := newManager(t, filepath.Join(harness.TempDir(t), "notify"), time.Minute)
	r := harness.StartRelay(t)
	m.hears(t, "READY=1\n", time.Second)
	m.hears(t, "WATCHDOG=1", time.Second)
	if _, err := r.CLI(t, "stop"); err != nil {
		t.Fatal(err)
	}
	r.Stop(t)
	m.hears(t, "STOPPING=1", time.Second)
	again := exec.Command(harness.Program, "run", "--data", r.Folder, "--listen", "127.0.0.1:0", "--config", filepath.Join(r.Folder, "agentsite.yaml"))
	var out, log harness.LogBuffer
	again.Stdout, again.Stderr = &out, &log
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	if said := m.hears(t, "READY=1\n", 10*time.Second); !strings.Contains(said, "STOP IS LATCHED") {
		t.Error(said)
	}
	again.Process.Signal(syscall.SIGTERM)
	if err := again.Wait(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "STOP IS LATCHED") || !strings.Contains(log.String(), "emergency stop is latched") {
		t.Errorf("%s\n%s", &out, &log)
	}
}

// units are all that the package brings.
var units = []string{"agentsite-prepare.service", "agentsite-claim.service", "agentsite-config@.service", "agentsite-poweroff@.service", "agentsite-console.service", "agentsite-relay.service", "agentsite-relay@.service", "agentsite.service"}

// TestUnit has systemd read its units, and say how much of the board they lay open.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		harness.Need(t, "systemd-analyze, of Debian's package systemd,", "")
	}
	dir := harness.TempDir(t)
	const dropIn = "agentsite-relay@.service.d/public.conf"
	if err := os.Mkdir(filepath.Join(dir, filepath.Dir(dropIn)), 0o700); err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{"agentsite-relay@.service": "agentsite-relay.service", dropIn: "agentsite-relay-public.conf"}
	for _, name := range append([]string{dropIn}, units...) {
		unit, err := os.ReadFile("../../../../deploy/" + cmp.Or(sources[name], name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(unit)
		for _, installed := range []string{"/usr/bin/agentsite ", "/usr/lib/agentsite/agentsite "} {
			text = strings.ReplaceAll(text, installed, harness.Need(t, "the program", harness.Program)+" ")
		}
		if text == string(unit) {
			t.Fatalf("%s does not start the program", name)
		}
		// systemd 254 and newer know these; an older one here would take them for mistakes.
		text = regexp.MustCompile(`(?m)^Restart(Steps|MaxDelaySec)=.*`).ReplaceAllString(text, "")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"agentsite-claim.path", "agentsite-config.socket", "agentsite-poweroff.socket"} {
		text, err := os.ReadFile("../../../../deploy/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range units {
		file := filepath.Join(dir, name)
		out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", file).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%v\n%s", err, out)
		}
		out, err = exec.Command(analyze, "security", "--offline=yes", "--no-pager", "--threshold=25", file).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Log(lines[len(lines)-1])
		if err != nil {
			t.Errorf("%s lays more open than 2.5: %v", name, err)
		}
	}
}
