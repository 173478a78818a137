//go:build e2e && linux

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

// TestLANKilled: a site that is killed says no goodbye, and is missed nevertheless.
func TestLANKilled(t *testing.T) {
	t.Parallel() // it waits, mostly
	b := bed.New(t)
	l := harness.NewLaptop(t, b.Host("10.77.0.100/24"))
	r := harness.StartOn(t, b.Host("10.77.0.1/24"), harness.TempDir(t), "shed")
	did := r.DID(t)
	w := l.Watch(t)
	w.AwaitSites(30*time.Second, did)
	r.Kill(t)
	_, took := w.Await(200*time.Second, "the killed site goes", gone(did))
	t.Logf("killed, and gone after %v (at most 130 s)", took.Round(time.Second))
}

// TestLANGone: a site that is stopped is missed by all who look, every time.
func TestLANGone(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	var watches []*harness.Watch
	for i := range 3 {
		watches = append(watches, harness.NewLaptop(t, b.Host(fmt.Sprintf("10.77.0.%d/24", 100+i))).Watch(t))
	}
	host := b.Host("10.77.0.1/24")
	var took []time.Duration
	for range harness.Workload(3, 100) {
		r := harness.StartOn(t, host, harness.TempDir(t), "shed")
		did := r.DID(t)
		for _, w := range watches {
			w.Await(30*time.Second, "the site is found", func(e harness.Discovered) bool { return e.DID == did })
		}
		time.Sleep(1200 * time.Millisecond) // as at most times, nobody has asked for a second
		begun := time.Now()
		r.Stop(t)
		for _, w := range watches {
			w.Await(50*time.Second, "the stopped site goes", gone(did))
		}
		took = append(took, time.Since(begun))
	}
	harness.LogDurations(t, "stopped, and gone for all who look (at most 5 s)", took)
}

// TestLANIPv6: there is no other, and one site has the address of its link alone.
func TestLANIPv6(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	l := harness.NewLaptop(t, b.Host("fd77::100/64"))
	wide := harness.StartOn(t, b.Host("fd77::1/64"), harness.TempDir(t), "wide")
	narrow := harness.StartOn(t, b.Host(""), harness.TempDir(t), "narrow")
	w := l.Watch(t)
	w.AwaitSites(30*time.Second, wide.DID(t), narrow.DID(t))
	t.Logf("both found %v after the start of discover --watch", time.Since(w.Begun).Round(time.Millisecond))
	out := l.MustCLI(t, "discover")
	for _, url := range []string{"https://[fd77::1]:8474/mcp", "https://[fe80::"} {
		if !strings.Contains(out, url) {
			t.Errorf("no %s in\n%s", url, out)
		}
	}
	for r, name := range map[*harness.Site]string{wide: "wide", narrow: "narrow"} {
		l.Claim(t, r, name)
		took, ok := l.Read(t, name)
		if !ok {
			t.Errorf("%s is not read", name)
		}
		t.Logf("%s is read in %v", name, took.Round(time.Millisecond))
	}
}

// TestLANTwoCables: both of a site's cables are in one bridge, and one of them is out.
func TestLANTwoCables(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	l := harness.NewLaptop(t, b.Host("10.77.0.100/24"))
	host := b.Host("10.77.0.1/24", "10.77.0.2/24")
	r := harness.StartOn(t, host, harness.TempDir(t), "shed")
	w := l.Watch(t)
	w.Await(30*time.Second, "both addresses", func(e harness.Discovered) bool {
		return at(r.DID(t), "10.77.0.1:")(e) && at(r.DID(t), "10.77.0.2:")(e)
	})
	if out := l.MustCLI(t, "discover", "--json"); strings.Count(out, "\n") != 1 {
		t.Errorf("a site with two cables is shown as\n%s", out)
	}
	l.Claim(t, r, "shed")
	for _, change := range [][]string{{"link set eth0 down"}, {"link set eth0 up", "link set eth1 down"}, {"link set eth1 up"}} {
		b.IP(host, change...)
		begun := time.Now()
		harness.WaitFor(t, 30*time.Second, fmt.Sprint(change, ": the site is read"), func() bool { _, ok := l.Read(t, "shed"); return ok })
		t.Logf("%s: read again after %v (at most 3 s)", change, time.Since(begun).Round(time.Millisecond))
	}
}

// TestLANFiftySites: fifty sites on one bridge, and what it costs each to be there.
func TestLANFiftySites(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	const many, rest = 50, 10 * time.Second
	var sites []*harness.Site
	var dids []string
	for i := range many {
		r := harness.StartOn(t, b.Host(fmt.Sprintf("10.77.0.%d/24", i+1)), harness.TempDir(t), fmt.Sprintf("site-%d", i))
		sites, dids = append(sites, r), append(dids, r.DID(t))
	}
	l := harness.NewLaptop(t, b.Host("10.77.0.100/24"))
	w := l.Watch(t)
	t.Logf("%d sites are found after %v (at most 1 s)", many, w.AwaitSites(30*time.Second, dids...).Round(time.Millisecond))
	if out := l.MustCLI(t, "discover"); strings.Count(out, "did:key:") != many {
		t.Errorf("discover says\n%s", out)
	}
	var used []time.Duration
	for _, r := range sites {
		used = append(used, -harness.CPUTime(t, r.Cmd.Process.Pid))
	}
	time.Sleep(rest)
	for i, r := range sites {
		used[i] += harness.CPUTime(t, r.Cmd.Process.Pid)
	}
	slices.Sort(used)
	most := used[many-1]
	t.Logf("each uses a processor for %v of %v at most, the median for %v (at most 1 %%)", most, rest, used[many/2])
	if most > rest/10 {
		t.Errorf("an idle site uses a processor for %v of %v", most, rest)
	}
}
