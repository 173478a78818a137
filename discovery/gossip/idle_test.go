package gossip

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/peer"
)

var idle = flag.Duration("idle", 0, "measure an idle node with 16 peers for so long")

const peersOf = "GOSSIP_TEST_REALM" // has a process be the 16 peers

// TestIdlePeers is the other process of TestIdle.
func TestIdlePeers(t *testing.T) {
	if os.Getenv(peersOf) == "" {
		t.Skip("it is run by TestIdle")
	}
	w := newTown(t, 2)
	hosts := w.forwarders
	for range 14 {
		key := identity.New()
		m := w.member(key, w.realm)
		w.announce(m, key)
		hosts = append(hosts, m.o.Host.(*p2p.Host))
	}
	fmt.Println(w.realm)
	for _, h := range hosts {
		fmt.Printf("%v/p2p/%v\n", h.Addrs()[0], h.ID())
	}
	io.Copy(io.Discard, os.Stdin)
}

// TestIdle prints what a node costs that has 16 peers, without gossip and with it. It is
// for a network namespace of its own, whose traffic it counts:
// unshare -n sh -c 'ip link set lo up; go test -run TestIdle$ -v ./discovery/gossip -idle 60s'
func TestIdle(t *testing.T) {
	if *idle == 0 || runtime.GOOS != "linux" {
		t.Skip("run it with -idle 60s, on Linux")
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestIdlePeers$")
	cmd.Env = append(os.Environ(), peersOf+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	lines := bufio.NewScanner(out)
	lines.Scan()
	w := newTown(t, 0)
	realm := lines.Text()
	if w.realm, err = discovery.ParseRealm(realm); err != nil {
		t.Fatal(err)
	}
	key := identity.New()
	h := w.host(key, nil)
	for range 16 {
		lines.Scan()
		p, err := peer.AddrInfoFromString(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		h.ConnManager().Protect(p.ID, "test")
		if err := h.Connect(context.Background(), *p); err != nil {
			t.Fatal(err)
		}
	}
	measure(t, "a host with 16 peers")
	m, err := New(Options{Host: h, Realm: w.realm, Ask: w.ask})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	w.announce(m, key)
	w.find(m)
	measure(t, "and gossip")
}

func measure(t *testing.T, what string) {
	time.Sleep(*idle / 2)
	switches, bytes := switched(t), received(t)
	time.Sleep(*idle)
	t.Logf("%s: %.1f voluntary context switches a second, %.0f bytes a minute, %d goroutines, %s", what,
		float64(switched(t)-switches)/idle.Seconds(), float64(received(t)-bytes)/idle.Minutes(), runtime.NumGoroutine(), field(t, "/proc/self/status", "VmRSS:"))
}

func switched(t *testing.T) (n int) {
	all, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		n += integer(t, field(t, path, "voluntary_ctxt_switches:"))
	}
	return n
}

func received(t *testing.T) int {
	return integer(t, strings.Fields(field(t, "/proc/net/dev", "    lo:"))[0])
}

func integer(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func field(t *testing.T, path, name string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "0" // a thread that has ended
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("%s has no %s", path, name)
	return ""
}
