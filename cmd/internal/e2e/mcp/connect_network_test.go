//go:build e2e

package mcp

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// network is two machines with a cable between them, as namespaces.
type network struct{ near, far string }

func newNetwork(t *testing.T) network {
	t.Helper()
	n := network{fmt.Sprint("house-a-", os.Getpid()), fmt.Sprint("house-b-", os.Getpid())}
	if out, err := exec.Command("ip", "netns", "add", n.near).CombinedOutput(); err != nil {
		harness.Need(t, "a network namespace: "+strings.TrimSpace(string(out)), "")
	}
	t.Cleanup(func() { exec.Command("ip", "netns", "del", n.near).Run() })
	n.ip(t, "netns", "add", n.far)
	t.Cleanup(func() { exec.Command("ip", "netns", "del", n.far).Run() })
	n.ip(t, "link", "add", "cable", "netns", n.near, "type", "veth", "peer", "name", "cable", "netns", n.far)
	for name, address := range map[string]string{n.near: "10.77.0.1/24", n.far: "10.77.0.2/24"} {
		n.ip(t, "-n", name, "addr", "add", address, "dev", "cable")
		n.ip(t, "-n", name, "link", "set", "lo", "up")
		n.ip(t, "-n", name, "link", "set", "cable", "up")
		n.ip(t, "-n", name, "route", "add", "224.0.0.0/4", "dev", "cable")
	}
	return n
}

func (n network) ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// TestConnectMoves: a site whose address changes, and one whose cable is out for a while, are
// missed and found again by a connect that runs.
func TestConnectMoves(t *testing.T) {
	t.Parallel() // it waits, mostly
	program := harness.Need(t, "the program", harness.Program)
	n := newNetwork(t)
	r := harness.StartIn(t, harness.TempDir(t), "site: { name: shed }\ndevices:\n  den: { driver: sim, model: climate }\n", nil,
		"ip", "netns", "exec", n.far, program, "run", "--listen-https", "0.0.0.0:8474")
	h := &harness.ConnectedSites{Person: harness.NewPerson(t)}
	near := func(args ...string) *exec.Cmd {
		cmd := exec.Command("ip", append([]string{"netns", "exec", n.near, program}, args...)...)
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+h.Folder, "XDG_STATE_HOME="+harness.TempDir(t))
		return cmd
	}
	for _, args := range [][]string{{"claim", r.Invitation(t).String()}, {"agents", "allow"}} {
		if out, err := near(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	m := harness.ConnectSDK(t, near("connect"), "2026-07-28")
	reads := func() bool {
		return strings.Contains(m.Call(t, "read_points", map[string]any{"points": []string{"shed/den/temperature"}}), `"good"`)
	}
	if !reads() {
		t.Fatal("it is not there")
	}
	back := func(what string, most time.Duration) {
		t.Helper()
		begun := time.Now()
		harness.WaitFor(t, most, what, reads)
		t.Logf("%s: usable after %v", what, time.Since(begun).Round(10*time.Millisecond))
	}
	n.ip(t, "-n", n.far, "addr", "del", "10.77.0.2/24", "dev", "cable")
	n.ip(t, "-n", n.far, "addr", "add", "10.77.0.9/24", "dev", "cable")
	n.ip(t, "-n", n.far, "route", "replace", "224.0.0.0/4", "dev", "cable")
	back("another address", 20*time.Second)

	n.ip(t, "-n", n.far, "link", "set", "cable", "down")
	begun := time.Now()
	if reads() {
		t.Error("it answers without a cable")
	}
	t.Logf("no cable: a fault after %v", time.Since(begun).Round(10*time.Millisecond))
	if time.Since(begun) > 20*time.Second {
		t.Error("that took long")
	}
	n.ip(t, "-n", n.far, "link", "set", "cable", "up")
	n.ip(t, "-n", n.far, "route", "replace", "224.0.0.0/4", "dev", "cable")
	back("the cable is in again", 20*time.Second)
}
