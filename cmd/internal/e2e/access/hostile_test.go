//go:build e2e

package access

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestStopGetsThrough stops a site over HTTP and through the owner's socket. Meanwhile half
// requests with a valid token take as many connections as they can, and clients that do not read
// flood the agents' socket.
func TestStopGetsThrough(t *testing.T) {
	r := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	harness.WaitFor(t, time.Minute, "the heater switches", func() bool {
		_, err := r.CLI(t, "set", "greenhouse/heater", "on", "--for", "5m")
		return err == nil
	})
	host := strings.TrimPrefix(r.URL, "http://")
	half := "POST /mcp HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + r.Token + "\r\nContent-Type: application/json\r\n" +
		"Mcp-Protocol-Version: 2026-07-28\r\nContent-Length: 100\r\n\r\n{"
	for range 300 {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, half)
	}
	var floods sync.WaitGroup
	defer floods.Wait()
	for i := range 64 {
		c, err := net.Dial("unix", filepath.Join(r.Folder, "agents.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		floods.Go(func() {
			if i%2 == 0 {
				io.WriteString(c, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}`+"\n")
			}
			for n := 1; ; n++ {
				if _, err := fmt.Fprintf(c, `{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", n); err != nil {
					return
				}
			}
		})
	}
	for _, way := range [][]string{{"stop", "--url", r.URL}, {"stop"}} {
		if out, err := r.CLI(t, way...); err != nil || !strings.Contains(out, "safe value") {
			t.Errorf("%q: %s %v", way, out, err)
		}
	}
	if most := harness.Status(t, r.Cmd.Process.Pid, "VmHWM:") / 1024; most > 300 {
		t.Errorf("it took %.0f MB, as if nothing bounded it", most)
	} else {
		t.Logf("it took %.0f MB at most", most)
	}
}

// TestClumsy: each mistake before a site runs is refused with advice.
func TestClumsy(t *testing.T) {
	r := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	notAFolder := filepath.Join(harness.TempDir(t), "file")
	write(t, notAFolder, "")
	yaml := func(text string) string {
		file := filepath.Join(harness.TempDir(t), "bad.yaml")
		write(t, file, text)
		return file
	}
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"a second run on one folder": {[]string{"--data", r.Folder}, []string{`the site "demo"`, "--data"}},
		"a folder that is none":      {[]string{"--data", notAFolder}, []string{"data folder", "--data"}},
		"a port that is taken":       {[]string{"--data", harness.TempDir(t), "--listen", strings.TrimPrefix(r.URL, "http://")}, []string{"--listen"}},
		"all networks":               {[]string{"--data", harness.TempDir(t), "--listen", "0.0.0.0:0"}, []string{"127.0.0.1"}},
		"a typo":                     {[]string{"--data", harness.TempDir(t), "--config", yaml("site: { name: x }\ndevices:\n  a: { drivr: sim }\n")}, []string{"bad.yaml:3:", "driver"}},
		"a duplicate key":            {[]string{"--data", harness.TempDir(t), "--config", yaml("site: { name: x }\nsite: { name: y }\n")}, []string{"bad.yaml:2:"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(harness.Program, append([]string{"run"}, c.args...)...)
			cmd.Dir = harness.TempDir(t)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("it ran: %s", out)
			}
			for _, s := range c.says {
				if !strings.Contains(string(out), s) {
					t.Errorf("it does not say %q: %s", s, out)
				}
			}
		})
	}
}

// TestStop ends a site while an output is on, and checks by a witness outside the process that it
// is safe; then again with the emergency stop.
func TestStop(t *testing.T) {
	witness := filepath.Join(harness.TempDir(t), "outputs")
	r := harness.Start(t, "site: { name: stop }\ndevices:\n  box: { driver: sim, model: relay, min_off: 0s, outputs_file: "+witness+" }\n", harness.Need(t, "the program", harness.Program))
	harness.WaitFor(t, time.Minute, "the relay switches", func() bool {
		_, err := r.CLI(t, "set", "box/relay", "on", "--for", "1m")
		return err == nil
	})
	if got := slurp(t, witness); !strings.Contains(got, "on") {
		t.Fatalf("the witness saw %q", got)
	}
	r.Stop(t)
	if got := slurp(t, witness); strings.Contains(got, "on") {
		t.Errorf("after the end the witness saw %q", got)
	}

	again := exec.Command(harness.Program, "run", "--data", r.Folder, "--config", filepath.Join(r.Folder, "agentsite.yaml"), "--listen", "127.0.0.1:0")
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { again.Process.Signal(syscall.SIGTERM); again.Wait() }()
	harness.WaitFor(t, time.Minute, "the relay switches again", func() bool {
		_, err := r.CLI(t, "set", "box/relay", "on", "--for", "1m")
		return err == nil
	})
	if _, err := r.CLI(t, "stop"); err != nil {
		t.Error(err)
	}
	if got := slurp(t, witness); strings.Contains(got, "on") {
		t.Errorf("after the emergency stop the witness saw %q", got)
	}
	if _, err := r.CLI(t, "set", "box/relay", "on"); err == nil || !strings.Contains(err.Error(), "emergency stop") {
		t.Errorf("a move while stopped: %v", err)
	}
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func slurp(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
