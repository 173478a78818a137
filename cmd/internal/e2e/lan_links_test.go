//go:build e2e && linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/discovery/bed"
)

// TestLANKilled: a site that is killed says no goodbye, and is missed nevertheless.
func TestLANKilled(t *testing.T) {
	t.Parallel() // it waits, mostly
	b := bed.New(t)
	l := laptop{b.Host("10.77.0.100/24"), folder(t)}
	r := startOn(t, b.Host("10.77.0.1/24"), folder(t), "shed")
	did := r.did(t)
	w := l.watch(t)
	w.all(30*time.Second, did)
	r.kill(t)
	_, took := w.await(200*time.Second, "the killed site goes", gone(did))
	t.Logf("killed, and gone after %v (at most 130 s)", took.Round(time.Second))
}

// TestLANGone: a site that is stopped is missed by all who look, every time.
func TestLANGone(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	var watches []*watching
	for i := range 3 {
		watches = append(watches, laptop{b.Host(fmt.Sprintf("10.77.0.%d/24", 100+i)), folder(t)}.watch(t))
	}
	host := b.Host("10.77.0.1/24")
	var took []time.Duration
	for range times(10) {
		r := startOn(t, host, folder(t), "shed")
		did := r.did(t)
		for _, w := range watches {
			w.await(30*time.Second, "the site is found", func(e seen) bool { return e.DID == did })
		}
		time.Sleep(1200 * time.Millisecond) // as at most times, nobody has asked for a second
		begun := time.Now()
		r.Stop(t)
		for _, w := range watches {
			w.await(50*time.Second, "the stopped site goes", gone(did))
		}
		took = append(took, time.Since(begun))
	}
	told(t, "stopped, and gone for all who look (at most 5 s)", took)
}

// TestLANIPv6: there is no other, and one site has the address of its link alone.
func TestLANIPv6(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	l := laptop{b.Host("fd77::100/64"), folder(t)}
	wide := startOn(t, b.Host("fd77::1/64"), folder(t), "wide")
	narrow := startOn(t, b.Host(""), folder(t), "narrow")
	w := l.watch(t)
	w.all(30*time.Second, wide.did(t), narrow.did(t))
	t.Logf("both found %v after the start of discover --watch", time.Since(w.begun).Round(time.Millisecond))
	out := l.must(t, "discover")
	for _, url := range []string{"https://[fd77::1]:8474/mcp", "https://[fe80::"} {
		if !strings.Contains(out, url) {
			t.Errorf("no %s in\n%s", url, out)
		}
	}
	for r, name := range map[*running]string{wide: "wide", narrow: "narrow"} {
		l.claim(t, r, name)
		took, ok := l.reads(t, name)
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
	l := laptop{b.Host("10.77.0.100/24"), folder(t)}
	host := b.Host("10.77.0.1/24", "10.77.0.2/24")
	r := startOn(t, host, folder(t), "shed")
	w := l.watch(t)
	w.await(30*time.Second, "both addresses", func(e seen) bool {
		return at(r.did(t), "10.77.0.1:")(e) && at(r.did(t), "10.77.0.2:")(e)
	})
	if out := l.must(t, "discover", "--json"); strings.Count(out, "\n") != 1 {
		t.Errorf("a site with two cables is shown as\n%s", out)
	}
	l.claim(t, r, "shed")
	for _, change := range [][]string{{"link set eth0 down"}, {"link set eth0 up", "link set eth1 down"}, {"link set eth1 up"}} {
		b.IP(host, change...)
		begun := time.Now()
		for {
			if _, ok := l.reads(t, "shed"); ok {
				break
			}
			if time.Since(begun) > 30*time.Second {
				t.Fatalf("%s: the site is not reached", change)
			}
		}
		t.Logf("%s: read again after %v (at most 3 s)", change, time.Since(begun).Round(time.Millisecond))
	}
}

// TestLANCrowd: fifty sites on one bridge, and what it costs each to be there.
func TestLANCrowd(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	const many, rest = 50, 20 * time.Second
	var sites []*running
	var dids []string
	for i := range many {
		r := startOn(t, b.Host(fmt.Sprintf("10.77.0.%d/24", i+1)), folder(t), fmt.Sprintf("site-%d", i))
		sites, dids = append(sites, r), append(dids, r.did(t))
	}
	l := laptop{b.Host("10.77.0.100/24"), folder(t)}
	w := l.watch(t)
	t.Logf("%d sites are found after %v (at most 1 s)", many, w.all(30*time.Second, dids...).Round(time.Millisecond))
	if out := l.must(t, "discover"); strings.Count(out, "did:key:") != many {
		t.Errorf("discover says\n%s", out)
	}
	var used []time.Duration
	for _, r := range sites {
		used = append(used, -cpuTime(t, r.Cmd.Process.Pid))
	}
	time.Sleep(rest)
	for i, r := range sites {
		used[i] += cpuTime(t, r.Cmd.Process.Pid)
	}
	slices.Sort(used)
	most := used[many-1]
	t.Logf("each uses a processor for %v of %v at most, the median for %v (at most 1 %%)", most, rest, used[many/2])
	if most > rest/10 {
		t.Errorf("an idle site uses a processor for %v of %v", most, rest)
	}
}
