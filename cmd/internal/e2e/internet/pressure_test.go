//go:build e2e && linux

package internet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/discovery/bed"
)

// relayed is a relay with sites and their owner. Each is behind a symmetric NAT, so that
// every connection between them goes through the relay.
type relayed struct {
	*far
	homes []*bed.Home
	sites []*harness.Site
	ann   harness.Laptop
}

func (f *far) relayed(t *testing.T, homes, each int) *relayed {
	t.Helper()
	c := &relayed{far: f, ann: f.laptop(t, f.Home(bed.Symmetric).Host(), harness.NewPerson(t))}
	for range homes {
		home := f.Home(bed.Symmetric)
		c.homes = append(c.homes, home)
		for range each {
			c.sites = append(c.sites, f.site(t, home.Host()))
		}
	}
	return c
}

// claimed claims all sites for the owner, under the names shed-0, shed-1 and so on.
func (c *relayed) claimed(t *testing.T) {
	t.Helper()
	for i, s := range c.sites {
		harness.WaitFor(t, time.Minute, "a site is claimed", func() bool {
			_, err := c.ann.CLI(t, "claim", s.Invitation(t).String(), "--name", fmt.Sprint("shed-", i))
			return err == nil
		})
	}
	harness.WaitFor(t, time.Minute, "all sites are found", func() bool { return len(c.ann.Find(t)) == len(c.sites) })
}

func (c *relayed) dids(t *testing.T) (all []string) {
	for _, s := range c.sites {
		all = append(all, s.DID(t))
	}
	return all
}

// firstFound measures how long find takes to print the first of the owner's sites, on a
// machine that knows only the realm. It returns -1 when find prints none.
func (c *relayed) firstFound(t *testing.T) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // find goes on to ask peers that never answer
	begun := time.Now()
	for line := range lines(t, c.laptop(t, c.ann.Host, harness.NewPerson(t)).Command(ctx, "find", "--json")) {
		if slices.ContainsFunc(c.sites, func(s *harness.Site) bool { return strings.Contains(line, s.DID(t)) }) {
			return time.Since(begun)
		}
	}
	return -1
}

// TestPressure: forty hostile keys on four addresses use up as much of a relay and of its
// DHT table as they can. The owner still reaches every site that has a reservation there,
// over a new connection each time, and find still prints the first site soon.
func TestPressure(t *testing.T) {
	c := newFar(t).relayed(t, 3, 1)
	c.claimed(t)
	round := func() (took []time.Duration) {
		for i := range c.sites {
			begun := time.Now()
			if out, err := c.ann.CLI(t, "ping", fmt.Sprint("shed-", i), "-c1", "--json"); err != nil || !strings.Contains(out, `"relayed"`) {
				t.Errorf("the owner does not reach a site: %s %v", out, err)
				continue
			}
			took = append(took, time.Since(begun))
		}
		return took
	}
	alone, first := round(), c.firstFound(t)
	var hostile []*actor
	for range 4 {
		on, ip := c.Public()
		hostile = append(hostile, act(t, on, role{What: "hostile", Relay: c.relay.Addresses, Sites: c.dids(t), IP: ip, Keys: 10}))
	}
	for _, a := range hostile {
		harness.WaitFor(t, time.Minute, "they press", func() bool { return strings.Contains(a.said.String(), "all press") })
	}
	t.Logf("alone: a command reaches a site within %v, find prints the first within %v", slices.Max(alone), first)
	const most, mostFirst = time.Second, 2 * time.Second
	for try := 1; ; try++ { // this machine is shared
		var called, found []time.Duration
		for begun := time.Now(); time.Since(begun) < harness.Workload(12*time.Second, 2*time.Minute); {
			called, found = append(called, round()...), append(found, c.firstFound(t))
		}
		slices.Sort(called)
		slices.Sort(found)
		if len(called) == 0 || found[0] < 0 {
			t.Fatalf("%d commands reach theirs, and find prints the first site after %v", len(called), found)
		}
		p99, last := called[len(called)*99/100], found[len(found)-1]
		t.Logf("under pressure: %d of %d commands reach theirs, median %v, p99 %v; find, %d times, takes up to %v",
			len(called), len(found)*len(c.sites), called[len(called)/2], p99, len(found), last)
		if p99 <= most && last <= mostFirst {
			break
		}
		if try == 3 {
			t.Errorf("that is more than %v, or than %v for find, three times", most, mostFirst)
			break
		}
	}
	for _, a := range hostile {
		a.end()
		t.Log(a.last())
	}
}

// TestNoRelay: a site's configured relay is no relay, or grants reservations and then closes
// the connections. The site retries with a back-off.
func TestNoRelay(t *testing.T) {
	for _, what := range []string{"no relay", "closing relay"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			on, ip := f.Public()
			counted := act(t, on, role{What: "count"})
			false := act(t, on, role{What: what, IP: ip})
			harness.WaitFor(t, time.Minute, "it is there", func() bool { return counted.last() != "" && false.last() != "" })
			f.relay.Addresses = []string{"/ip4/" + ip + "/udp/8475/quic-v1/p2p/" + false.last(), "/ip4/" + ip + "/tcp/8475/p2p/" + false.last()}
			f.site(t, f.Home(bed.Preserving).Host())
			within := harness.Workload(20*time.Second, 2*time.Minute)
			time.Sleep(within) // the period of the count
			n, err := strconv.Atoi(counted.last())
			t.Logf("%d handshakes in the first %v", n, within)
			if err != nil || n == 0 || n > harness.Workload(30, 50) { // by two transports each time
				t.Errorf("%d handshakes in the first %v: %v", n, within, err)
			}
		})
	}
}

// TestHerd: a relay is killed and restarted. Soon all its sites are reachable through it
// again, after a bounded number of handshakes.
func TestHerd(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	c := f.relayed(t, harness.Workload(1, 5), harness.Workload(5, 10))
	from, _ := f.Public()
	reach := role{What: "reach", Relay: f.relay.Addresses, Sites: c.dids(t)}
	all := act(t, from, reach)
	harness.WaitFor(t, 60*time.Second, "all sites have a place", func() bool { return all.last() == "all reached" })
	all.end()
	f.relay.Kill()
	time.Sleep(time.Second) // as deploy/agentsite-relay.service has it
	counted := act(t, f.relay.Host, role{What: "count"})
	harness.WaitFor(t, time.Minute, "it is counted", func() bool { return counted.last() != "" })
	f.relay.Start(t)
	begun := time.Now()
	all = act(t, from, reach)
	harness.WaitFor(t, 60*time.Second, "all sites are back", func() bool { return all.last() == "all reached" })
	took := time.Since(begun)
	time.Sleep(time.Until(begun.Add(harness.Workload(8*time.Second, 30*time.Second)))) // a site that is back must not go on trying either
	n, err := strconv.Atoi(counted.last())
	t.Logf("%d sites are back %v after the relay, by %d handshakes", len(c.sites), took.Round(10*time.Millisecond), n)
	if err != nil || took > 30*time.Second || n > 5*len(c.sites)+2 { // those of the actor that reaches them, over both transports
		t.Errorf("%d sites are back %v after the relay, by %d handshakes: %v", len(c.sites), took, n, err)
	}
}

// TestAway: a site is found within a minute of its return. In one case its router was down, and a
// client and another site of its realm look for it all the time. In the other its relay, also the
// DHT server, was down and has lost its table.
func TestAway(t *testing.T) {
	away := harness.Workload(15*time.Second, time.Hour)
	found := func(c *relayed, s *harness.Site) func() bool {
		return func() bool {
			return slices.ContainsFunc(c.laptop(t, c.ann.Host, harness.NewPerson(t)).Find(t, "--capability", "switch"), func(f peer.Found) bool { return f.DID == s.DID(t) })
		}
	}
	within := func(t *testing.T, what string, ok func() bool) {
		t.Helper()
		begun := time.Now()
		harness.WaitFor(t, 2*time.Minute, what, ok)
		took := time.Since(begun).Round(10 * time.Millisecond)
		t.Logf("%s, %v after the return of what was away for %v", what, took, away)
		if took > time.Minute {
			t.Error("that is more than a minute")
		}
	}
	t.Run("site", func(t *testing.T) {
		t.Parallel()
		c := newFar(t).relayed(t, 2, 1)
		c.claimed(t)
		gone, other := c.sites[0], c.sites[1]
		c.IP(c.homes[0].Router, "link set eth0 down")
		begun := time.Now()
		other.Stop(t)
		other = c.siteAt(t, other.Folder, c.homes[1].Host()) // with no cached records of others
		time.Sleep(time.Until(begun.Add(away)))
		if all := c.ann.Find(t, "--capability", "switch"); len(all) != 1 {
			t.Errorf("while it is away these are found: %v", all)
		}
		c.IP(c.homes[0].Router, "link set eth0 up")
		within(t, "a site is found, and known to another", func() bool {
			out, err := other.CLI(t, "find", "--json")
			return err == nil && strings.Contains(out, gone.DID(t)) && found(c, gone)()
		})
	})
	for _, behind := range []string{"nothing", "a router"} {
		t.Run("relay of a site behind "+behind, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			c := f.relayed(t, 0, 0)
			on, _ := f.Public()
			if behind == "a router" {
				on = f.Home(bed.Symmetric).Host()
			}
			c.sites = append(c.sites, f.site(t, on))
			c.claimed(t)
			c.relay.Kill()
			time.Sleep(away)
			c.relay.Start(t)
			within(t, "the site is found", found(c, c.sites[0]))
		})
	}
}
