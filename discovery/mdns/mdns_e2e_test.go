//go:build e2e && linux

package mdns

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"
)

// TestFound: three sites and a laptop on one bridge.
func TestFound(t *testing.T) {
	b := newBed(t)
	laptop := b.Host("10.77.0.100/24")
	var hosts []string
	for i := range 3 {
		hosts = append(hosts, b.Host(fmt.Sprintf("10.77.0.%d/24", i+1)))
	}
	var took []time.Duration
	for run := range 20 {
		start := time.Now()
		var find *process
		if run%2 == 0 { // who looks is there before, or comes after
			find = b.start(laptop, "find")
		}
		var sites []*process
		for i, h := range hosts {
			sites = append(sites, b.announce(h, fmt.Sprintf("site-%d", i)))
		}
		if find == nil {
			find = b.start(laptop, "find")
		}
		find.all(3, 5*time.Second)
		took = append(took, time.Since(start).Round(time.Millisecond))
		for _, p := range append(sites, find) {
			p.end()
		}
	}
	slices.Sort(took)
	t.Logf("from the start of the processes until three sites are found and reached (p95 ≤ 1 s): median %v, p95 %v, most %v", took[10], took[18], took[19])
}

// TestGoneAndMoved: one is stopped, one gets another address, one loses its cable.
func TestGoneAndMoved(t *testing.T) {
	b := newBed(t)
	find := b.start(b.Host("10.77.0.100/24 10.88.0.100/24"), "find")
	stops, moves := b.Host("10.77.0.1/24"), b.Host("10.77.0.2/24")
	stopping, moving := b.announce(stops, "stops"), b.announce(moves, "moves")
	find.all(2, 5*time.Second)

	start := time.Now()
	stopping.end()
	find.await(5*time.Second, "the stopped site goes", gone(stopping.label))
	t.Logf("stopped, and gone after %v", time.Since(start).Round(time.Millisecond))

	for i, change := range []string{"10.77.0.77", "10.88.0.2"} {
		before := []string{"10.77.0.2", "10.77.0.77"}[i]
		start := time.Now()
		b.IP(moves, "addr del "+before+"/24 dev eth0", "addr add "+change+"/24 dev eth0")
		find.await(3*time.Second, "it is at "+change+" now, and at "+before+" no more", func(e event) bool {
			return e.Label == moving.label && slices.Contains(e.At, netip.MustParseAddr(change)) && !slices.Contains(e.At, netip.MustParseAddr(before))
		})
		find.await(3*time.Second, "the site is reached at "+change, reachedAt(moving.label, change))
		t.Logf("another address, and reached after %v", time.Since(start).Round(time.Millisecond))
	}

	b.IP(moves, "link set eth0 down", "addr add 10.77.0.3/24 dev eth0")
	start = time.Now()
	b.IP(moves, "link set eth0 up")
	find.await(3*time.Second, "the cable is in again", reachedAt(moving.label, "10.77.0.3"))
	t.Logf("the cable out and in with another address, and reached after %v", time.Since(start).Round(time.Millisecond))
}

// TestKilled: nobody says goodbye, and the site is gone nevertheless.
func TestKilled(t *testing.T) {
	t.Parallel() // it waits, mostly
	b := newBed(t)
	find := b.start(b.Host("10.77.0.100/24"), "find")
	site := b.announce(b.Host("10.77.0.1/24"), "killed")
	find.all(1, 5*time.Second)
	time.Sleep(20 * time.Second) // it asks rarely by now, and hears what is said unasked
	late := b.announce(b.Host("10.77.0.2/24"), "late")
	_, heard := find.await(2*time.Second, "a site that comes later", appeared(late.label))
	t.Logf("a later site is found after %v", heard.Round(time.Millisecond))
	site.kill()
	_, took := find.await(130*time.Second, "the killed site goes", gone(site.label))
	t.Logf("killed, and gone after %v", took.Round(time.Second))
	if took < 30*time.Second {
		t.Errorf("it was given up after %v already", took)
	}
}

// TestIPv6Only: with an address of the prefix, and with that of the link alone.
func TestIPv6Only(t *testing.T) {
	b := newBed(t)
	find := b.start(b.Host("fd77::100/64"), "find")
	wide, narrow := b.announce(b.Host("fd77::1/64"), "wide"), b.announce(b.Host(""), "narrow")
	start := time.Now()
	find.await(5*time.Second, "a site with IPv6 alone", reachedAt(wide.label, "fd77::1"))
	find.await(5*time.Second, "a site with the address of its link alone", reachedAt(narrow.label, "%25eth0"))
	t.Logf("both reached after %v", time.Since(start).Round(time.Millisecond))
	for _, p := range []*process{wide, narrow} {
		p.end()
		find.await(5*time.Second, "it goes", gone(p.label))
	}
}

// TestCableComes: both start without any network, and the board's cable moves to another
// socket later.
func TestCableComes(t *testing.T) {
	b := newBed(t)
	laptop, board := b.Host(), b.Host()
	find, site := b.start(laptop, "find"), b.announce(board, "greenhouse")
	find.await(2*time.Second, "the finder runs", func(e event) bool { return e.Reached != nil })
	b.Cable(laptop, 0, "10.77.0.100/24")
	start := time.Now()
	b.Cable(board, 0, "10.77.0.1/24")
	find.await(3*time.Second, "its cable is in", reachedAt(site.label, "10.77.0.1"))
	t.Logf("the first cable is in, and the site reached after %v", time.Since(start).Round(time.Millisecond))
	b.IP(board, "link del eth0")
	start = time.Now()
	b.Cable(board, 1, "10.77.0.2/24")
	find.await(3*time.Second, "its other cable is in", reachedAt(site.label, "10.77.0.2"))
	t.Logf("another interface, and reached after %v", time.Since(start).Round(time.Millisecond))
}

// TestIPv4Only: the kernel has no IPv6 on either.
func TestIPv4Only(t *testing.T) {
	b := newBed(t)
	laptop, board := b.Host(), b.Host()
	for _, ns := range []string{laptop, board} {
		if out, err := exec.Command("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1").CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	b.Cable(laptop, 0, "10.77.0.100/24")
	b.Cable(board, 0, "10.77.0.1/24")
	find, site := b.start(laptop, "find"), b.announce(board, "greenhouse")
	find.await(2*time.Second, "a site with IPv4 alone", reachedAt(site.label, "10.77.0.1"))
	site.end()
	find.await(5*time.Second, "it goes", gone(site.label))
}

// TestTwoCables: both of a site's cables are in one bridge, and it hears itself.
func TestTwoCables(t *testing.T) {
	b := newBed(t)
	find := b.start(b.Host("10.77.0.100/24"), "find")
	two := b.Host("10.77.0.1/24", "10.77.0.2/24")
	site := b.announce(two, "twice")
	find.all(1, 5*time.Second)
	find.await(5*time.Second, "both addresses", func(e event) bool { return len(e.Reached[site.label]) == 2 })
	b.IP(two, "link set eth0 down")
	start := time.Now()
	find.await(10*time.Second, "the other cable", func(e event) bool { return len(e.Reached[site.label]) >= 1 })
	t.Logf("one of two cables is out, and the site reached after %v", time.Since(start).Round(time.Millisecond))
	site.end()
	find.await(5*time.Second, "it goes", gone(site.label))
}

// TestSuite is the suite that every medium passes, on a host of its own.
func TestSuite(t *testing.T) {
	if os.Getenv(role) == "suite" {
		discoverytest.Run(t, 5*time.Second, func(*testing.T, identity.Key) discovery.Medium { return new(Medium) })
		return
	}
	b := newBed(t)
	cmd := exec.Command("ip", "netns", "exec", b.Host("10.77.0.1/24"), os.Args[0], "-test.run", "^TestSuite$", "-test.v")
	cmd.Env = append(os.Environ(), role+"=suite")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestFlood: 10,000 invented sites, truncated packets and forged records do not affect the existing
// sites, the known site and the memory.
func TestFlood(t *testing.T) {
	b := newBed(t)
	known := identity.New()
	find := b.start(b.Host("10.77.0.100/16"), "find", known.ID().PeerID())
	early := b.announce(b.Host("10.77.0.1/16"), "early")
	find.all(1, 5*time.Second)
	before, earlyBefore := find.memory(), early.memory()

	flood := b.start(b.Host("10.77.0.66/16"), "flood")
	find.await(20*time.Second, "more than can be taken", func(e event) bool { return e.Ignored.Full > 0 })
	late := b.announce(b.Host("10.77.0.2/16"), "a-known-one", string(known.PEM())) // first by name
	find.await(10*time.Second, "the known site, in the flood", reachedAt(late.label, "10.77.0.2"))
	if line := <-flood.lines; line != "flooded" {
		t.Fatal(line)
	}
	e, _ := find.await(10*time.Second, "the early site, after it", reachedAt(early.label, "10.77.0.1"))
	t.Logf("%d sites, %+v; the finder grew from %d to %d KiB, a site from %d to %d KiB", e.Sites, e.Ignored, before, find.memory(), earlyBefore, early.memory())
	if e.Sites > discovery.MaxSites+1 || e.Ignored.Forged == 0 || e.Ignored.Malformed == 0 || e.Ignored.Full == 0 {
		t.Errorf("%+v", e)
	}
	if grew := find.memory() - before; grew > 20<<10 {
		t.Errorf("the finder grew by %d KiB", grew)
	}
}

// part is a tenth of a time, and the whole of it with SOAK=1.
func part(d time.Duration) time.Duration {
	if os.Getenv("SOAK") != "" {
		return d
	}
	return d / 10
}

// settled is how long it takes until questions are rare.
const settled = maxQueryInterval + 10*time.Second

// TestFiftySites: 50 sites that look for each other, and what that costs each of them.
func TestFiftySites(t *testing.T) {
	t.Parallel() // it waits, mostly
	b := newBed(t)
	const many = 50
	laptop := b.Host("10.77.0.100/24")
	var sites []*process
	for i := range many {
		sites = append(sites, b.announce(b.Host(fmt.Sprintf("10.77.0.%d/24", i+1)), fmt.Sprintf("site-%d", i), "looks"))
	}
	find := b.start(laptop, "find")
	t.Logf("%d sites are found after %v", many, find.all(many, 10*time.Second).Round(time.Millisecond))
	find.end()
	time.Sleep(settled)
	costs(t, part(time.Minute), sites...)
}

// TestIdle measures the costs of a site that looks for others, beside another such site.
func TestIdle(t *testing.T) {
	t.Parallel() // it waits, mostly
	b := newBed(t)
	one, two := b.announce(b.Host("10.77.0.1/24"), "one", "looks"), b.announce(b.Host("10.77.0.2/24"), "two", "looks")
	time.Sleep(settled)
	costs(t, part(3*time.Minute), one, two)
}

// TestOffLinkQuery: the port cannot be used to flood others. Queries from another link are not
// answered, nor by the library's sockets.
func TestOffLinkQuery(t *testing.T) {
	b := newBed(t)
	laptop, host := b.Host("10.77.0.100/24 10.99.0.1/24"), b.Host("10.77.0.1/24")
	b.IP(host, "route add 10.99.0.0/24 via 10.77.0.100")
	site := b.announce(host, "greenhouse")
	find := b.start(laptop, "find")
	find.all(1, 5*time.Second)
	find.end()
	ask := func(from, name, qtype string) string {
		return <-b.start(laptop, "ask", from, "10.77.0.1:5353", name, qtype).lines
	}
	if got := ask("10.77.0.100:0", site.label+".local.", "A"); !strings.Contains(got, "10.77.0.1") {
		t.Errorf("from the link itself: %s", got)
	}
	for _, name := range []string{site.label + ".local.", services} {
		if got := ask("10.99.0.1:0", name, "ANY"); got != "0 []" {
			t.Errorf("%s, asked from another network: %s", name, got)
		}
	}
}
