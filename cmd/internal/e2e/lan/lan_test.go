//go:build e2e && linux

// Package lan tests discovery and calls between hosts of a local network, in network namespaces.
package lan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

func gone(did string) func(harness.Discovered) bool {
	return func(e harness.Discovered) bool { return e.Change == "gone" && e.DID == did }
}

// at reports whether a site is seen at an address.
func at(did, address string) func(harness.Discovered) bool {
	return func(e harness.Discovered) bool {
		return e.DID == did && slices.ContainsFunc(e.URLs, func(u string) bool { return strings.Contains(u, address) })
	}
}

// TestLANFound: three sites and a laptop on one bridge.
func TestLANFound(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	l := harness.NewLaptop(t, b.Host("10.77.0.100/24"))
	var dids []string
	for i := range 3 {
		r := harness.StartOn(t, b.Host(fmt.Sprintf("10.77.0.%d/24", i+1)), harness.TempDir(t), fmt.Sprintf("site-%d", i+1))
		dids = append(dids, r.DID(t))
	}
	var took []time.Duration
	for range harness.Workload(20, 200) {
		w := l.Watch(t)
		took = append(took, w.AwaitSites(30*time.Second, dids...))
		w.End()
	}
	harness.LogDurations(t, "from the start of discover --watch until three sites are found (at most 1 s)", took)
	out := l.MustCLI(t, "discover")
	for i, did := range dids {
		if !strings.Contains(out, did) || !strings.Contains(out, fmt.Sprintf("https://10.77.0.%d:8474/mcp", i+1)) || strings.Count(out, "not yours") != 3 {
			t.Errorf("discover says\n%s", out)
		}
	}
}

// TestLANLives: sites are claimed, move, lose their cables, and are stopped.
func TestLANLives(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	l := harness.NewLaptop(t, b.Host("10.77.0.100/24 10.88.0.100/24"))
	shed, barn := b.Host("10.77.0.1/24"), b.Host("10.77.0.2/24")
	one, two := harness.StartOn(t, shed, harness.TempDir(t), "shed"), harness.StartOn(t, barn, harness.TempDir(t), "barn")
	l.Claim(t, one, "shed")
	l.Claim(t, two, "byre") // what the user calls it
	for _, name := range []string{"shed", "byre"} {
		if took, ok := l.Read(t, name); !ok {
			t.Fatalf("%s is not read after its claim", name)
		} else {
			t.Logf("%s is read in %v", name, took.Round(time.Millisecond))
		}
	}
	w := l.Watch(t)
	for range 2 {
		e, _ := w.Await(30*time.Second, "what is known", func(e harness.Discovered) bool { return e.Change == "appeared" })
		if want := map[string]string{"shed": "shed", "barn": "byre"}[e.Name]; e.Known != want {
			t.Errorf("%+v", e)
		}
	}

	// Another address on the same network, on another, and on both ends of a cable.
	change := func(what, to string, how func()) {
		t.Helper()
		begun := time.Now()
		how()
		harness.WaitFor(t, 30*time.Second, what+": the site is read", func() bool { _, ok := l.Read(t, "shed"); return ok })
		t.Logf("%s: read again after %v (at most 3 s)", what, time.Since(begun).Round(time.Millisecond))
		// The link's own address may answer first, so that another call finds the new one.
		harness.WaitFor(t, 30*time.Second, what+": it is known at "+to, func() bool {
			l.Read(t, "shed")
			at := slices.DeleteFunc(l.Addresses(t, "shed"), func(at string) bool { return strings.HasPrefix(at, "[fe80:") })
			return at[0] == to+":8474" && slices.Contains(at, "10.77.0.1:8474")
		})
		w.Await(30*time.Second, what+", and seen", at(one.DID(t), to))
	}
	change("another address", "10.77.0.77", func() { b.IP(shed, "addr del 10.77.0.1/24 dev eth0", "addr add 10.77.0.77/24 dev eth0") })
	change("another network", "10.88.0.1", func() { b.IP(shed, "addr del 10.77.0.77/24 dev eth0", "addr add 10.88.0.1/24 dev eth0") })
	b.IP(shed, "link set eth0 down", "addr add 10.77.0.3/24 dev eth0", "addr del 10.88.0.1/24 dev eth0")
	if _, ok := l.Read(t, "shed"); ok {
		t.Error("a site is read whose cable is out")
	}
	change("the cable out and in", "10.77.0.3", func() { b.IP(shed, "link set eth0 up") })

	// One whose address changed while it was away.
	two.Stop(t)
	if out := l.MustCLI(t, "discover"); strings.Contains(out, two.DID(t)) {
		t.Errorf("a stopped site is found:\n%s", out)
	}
	if took, ok := l.Read(t, "byre"); ok || took > 20*time.Second {
		t.Errorf("a stopped site is read, or missed after %v", took)
	}
	b.IP(barn, "addr del 10.77.0.2/24 dev eth0", "addr add 10.77.0.22/24 dev eth0")
	harness.StartOn(t, barn, two.Folder, "barn")
	if _, ok := l.Read(t, "byre"); !ok {
		t.Error("it is not reached where it is now")
	}
}
