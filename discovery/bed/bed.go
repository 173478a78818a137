// Package bed builds a network for tests: a bridge with hosts, each in its own network namespace,
// isolated from the machine's networks. The test chooses the programs that run on a host. The
// package imports nothing of ours.
package bed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Bed is a bridge and its hosts, which are gone when the test is.
type Bed struct {
	t             testing.TB
	name          string
	hosts, cables int
}

var beds atomic.Int32

// New makes a bridge; where the machine permits none the test is skipped, loudly, and
// fails where the environment variable CI is set.
func New(t testing.TB) *Bed {
	t.Helper()
	sweep.Do(clean)
	b := &Bed{t: t, name: fmt.Sprintf("bed%d-%d", os.Getpid(), beds.Add(1))}
	if out, err := exec.Command("ip", "netns", "add", b.name).CombinedOutput(); err != nil {
		missing(t, "no network namespace can be made here, which takes root and iproute2: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", b.name).Run() })
	b.IP(b.name, "link add br0 type bridge mcast_snooping 0", "link set br0 up")
	return b
}

func missing(t testing.TB, what string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(what, args...)
	}
	t.Skipf("SKIPPED, AND NOTHING SHOWN OF THE NETWORK: "+what, args...)
}

var sweep sync.Once

// clean removes the remains of killed tests.
func clean() {
	all, _ := os.ReadDir("/run/netns")
	for _, ns := range all {
		var pid, n int
		if _, err := fmt.Sscanf(ns.Name(), "bed%d-%d", &pid, &n); err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); errors.Is(err, fs.ErrNotExist) {
			_ = exec.Command("ip", "netns", "del", ns.Name()).Run()
		}
	}
}

// IP runs commands of ip on a host.
func (b *Bed) IP(host string, commands ...string) {
	b.t.Helper()
	cmd := exec.Command("ip", "-n", host, "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n"))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("ip %q: %v\n%s", commands, err, out)
	}
}

// Host adds one with a cable per list of addresses: eth0, eth1 and so on. It returns its
// name, that of its namespace.
func (b *Bed) Host(cables ...string) string {
	b.t.Helper()
	b.hosts++
	host := fmt.Sprintf("%s-%d", b.name, b.hosts)
	if out, err := exec.Command("ip", "netns", "add", host).CombinedOutput(); err != nil {
		b.t.Fatalf("%v %s", err, out)
	}
	b.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", host).Run() })
	b.IP(host, "link set lo up")
	for i, addrs := range cables {
		b.Cable(host, i, addrs)
	}
	return host
}

// Cable connects a host to the bridge with its i-th interface, which gets addresses such
// as "10.77.0.1/24 fd77::1/64".
func (b *Bed) Cable(host string, i int, addrs string) {
	b.t.Helper()
	b.cables++
	port := fmt.Sprintf("port%d", b.cables)
	b.IP(b.name, fmt.Sprintf("link add %s type veth peer name eth%d netns %s", port, i, host), fmt.Sprintf("link set %s master br0 up", port))
	var commands []string
	for a := range strings.FieldsSeq(addrs) {
		if strings.Contains(a, ":") {
			a += " nodad" // it is there at once
		}
		commands = append(commands, fmt.Sprintf("addr add %s dev eth%d", a, i))
	}
	b.IP(host, append(commands, fmt.Sprintf("link set eth%d up", i))...)
}

// On are the words that run a command on a host, in the process that they start.
func On(host string, argv ...string) []string {
	return append([]string{"ip", "netns", "exec", host}, argv...)
}
