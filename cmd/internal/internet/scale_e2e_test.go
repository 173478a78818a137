//go:build e2e

package internet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/cmd/internal/internet/memnet"
	"agentsite/discovery"
	"agentsite/discovery/gossip"
)

// TestScaleTable: lookups stay complete and cheap as the network grows, and recover after 30 % of all have left at
// once. It is the product's DHT, cards and directories, in virtual time on a network in memory, without gossip: that
// stays within a realm. SCALE names the numbers of sites, and SCALE_IDLE how long they are watched.
func TestScaleTable(t *testing.T) {
	sizes := numbers(t, "SCALE", 100, 300)
	if os.Getenv("SOAK") != "" {
		sizes = numbers(t, "SCALE", 100, 300, 1000, 3000)
	}
	var servers, requests []float64
	for _, n := range sizes {
		relays := max(4, n/sitesPerRelay)
		simulate(t, n, func(t *testing.T) {
			median := scale(t, n, relays, max(2, n/realmSize), watched(t, 0), false, true)
			servers, requests = append(servers, float64(relays+n/openSites)), append(requests, float64(median))
		})
	}
	if len(servers) > 1 {
		a, b, off := fit(servers, requests)
		t.Logf("requests of a lookup are %.1f + %.1f × log2(servers), within %.1f", a, b, off)
	}
}

// fit returns the line of least squares through the logarithms of x, and its largest error.
func fit(x, y []float64) (a, b, off float64) {
	var sx, sy, sxx, sxy float64
	for i := range x {
		l := math.Log2(x[i])
		sx, sy, sxx, sxy = sx+l, sy+y[i], sxx+l*l, sxy+l*y[i]
	}
	n := float64(len(x))
	b = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	a = (sy - b*sx) / n
	for i := range x {
		off = max(off, math.Abs(y[i]-a-b*math.Log2(x[i])))
	}
	return a, b, off
}

// TestScaleGossip: what a site spends for its realm, by the realm's size. It is TestScaleTable with gossip, in one
// realm with four relays, without public sites and with them.
func TestScaleGossip(t *testing.T) {
	sizes := numbers(t, "SCALE_REALM", 10, 20)
	if os.Getenv("SOAK") != "" {
		sizes = numbers(t, "SCALE_REALM", 10, 20, 50, 100)
	}
	for _, n := range sizes {
		for _, public := range []bool{false, true} {
			t.Logf("a realm of %d, with public sites: %v", n, public)
			simulate(t, n, func(t *testing.T) { _ = scale(t, n, 4, 1, watched(t, time.Hour), true, public) })
		}
	}
}

// numbers returns the numbers in an environment variable, or the usual ones.
func numbers(t *testing.T, variable string, usual ...int) (all []int) {
	for _, word := range strings.Fields(os.Getenv(variable)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	if len(all) > 0 {
		return all
	}
	return usual
}

func watched(t *testing.T, usual time.Duration) time.Duration {
	text := os.Getenv("SCALE_IDLE")
	if text == "" {
		return usual
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// memoryLimit is the size from which garbage is collected more often. What is alive may exceed it.
const memoryLimit = 11 << 30

// simulate runs one size, and says what that took.
func simulate(t *testing.T, sites int, run func(*testing.T)) {
	// The memory limit and the garbage collection of one site are not for thousands.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	defer debug.SetGCPercent(debug.SetGCPercent(200))
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.DiscardHandler)) // hosts that leave cause thousands of lines
	t.Run(fmt.Sprint(sites), func(t *testing.T) {
		begun, used := time.Now(), cpu()
		synctest.Test(t, run)
		t.Logf("%d sites took %v of this machine, %v of its processors, and %d MB", sites,
			time.Since(begun).Round(time.Second), cpu()-used, megabytes())
	})
	debug.FreeOSMemory()
}

// scale runs relays and sites of realms, has some of them leave, and returns the requests of a median lookup.
func scale(t *testing.T, sites, relays, realms int, idle time.Duration, withGossip, public bool) (median int) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{
		t: t, net: memnet.New(packetLoss, gossip.Protocol), ctx: ctx, end: cancel, gossip: withGossip, public: public,
	}
	defer w.close()
	for i := range realms {
		r, err := discovery.NewRealm(fmt.Sprint("realm-", i))
		if err != nil {
			t.Fatal(err)
		}
		w.realms = append(w.realms, r)
	}
	w.populate(sites, relays, realms)
	t.Logf("all have come; %v of processor time", cpu())
	time.Sleep(settling)
	servers := relays + len(w.group(func(s *simSite) bool { return s.open }))
	runtime.GC()
	t.Logf("%d sites in %d realms, %d relays, %d servers of the table; %d MB, %d goroutines, %v of processor time",
		sites, realms, relays, servers, megabytes(), runtime.NumGoroutine(), cpu())

	// How many of their realm the sites know.
	known := 0
	for _, s := range w.sites {
		known += len(s.network.directory.Sites())
	}
	t.Logf("a site knows %.1f sites of its realm", float64(known)/float64(sites))

	private, open := w.group(func(s *simSite) bool { return !s.open }), w.group(func(s *simSite) bool { return s.open })
	var relaying []*memnet.Host
	for _, r := range w.relays {
		relaying = append(relaying, r.Host)
	}
	if idle > 0 {
		b1, b2, b3 := usage(private), usage(open), usage(relaying)
		time.Sleep(idle)
		a1, a2, a3 := usage(private), usage(open), usage(relaying)
		t.Logf("idle for %v; %v of processor time", idle, cpu())
		t.Logf("idle, a day of a site behind a router: %s", rate(b1, a1, len(private), idle))
		t.Logf("idle, a day of a public site with server: on: %s", rate(b2, a2, len(open), idle))
		t.Logf(
			"idle, a day of a relay with %d places: %s", relaysOfSite*len(private)/relays, rate(b3, a3, len(relaying), idle),
		)
	}
	t.Logf("connections at a time: %.1f of a site behind a router, %.1f of a public one, %.1f of a relay",
		perHost(private), perHost(open), perHost(relaying))
	var entries []int
	for _, s := range w.sites {
		if s.open {
			entries = append(entries, s.network.tables[0].Entries())
		}
	}
	of := func(n int) int { return n }
	t.Logf("entries of a public site: median %d, largest %d", quantile(entries, 0.5, of), quantile(entries, 1, of))
	entries = nil
	for _, r := range w.relays {
		entries = append(entries, r.table.Entries())
	}
	t.Logf("entries of a relay: median %d, largest %d", quantile(entries, 0.5, of), quantile(entries, 1, of))

	times := min(200, sites)
	all := w.look(times)
	t.Logf("lookup: %.1f %% of %d found all; requests median %d, p95 %d, most %d; time median %v, p95 %v, longest %v",
		100*wholeShare(all), times,
		quantile(all, 0.5, requestsOf), quantile(all, 0.95, requestsOf), quantile(all, 1, requestsOf),
		quantile(all, 0.5, timeOf), quantile(all, 0.95, timeOf), quantile(all, 1, timeOf))
	if wholeShare(all) < convergence {
		t.Errorf("only %.1f %% of the lookups find all", 100*wholeShare(all))
	}

	median = quantile(all, 0.5, requestsOf)

	w.depart()
	left := time.Now()
	for round := 0; ; round++ {
		all := w.look(times)
		since := time.Since(left).Round(time.Second)
		found := 0.
		for _, l := range all {
			found += l.found / float64(len(all))
		}
		t.Logf("%v after: %.1f %% of lookups found all, %.2f %% of sites found; requests median %d, p95 %d; time median "+
			"%v, p95 %v, longest %v",
			since, 100*wholeShare(all), 100*found, quantile(all, 0.5, requestsOf), quantile(all, 0.95, requestsOf),
			quantile(all, 0.5, timeOf), quantile(all, 0.95, timeOf), quantile(all, 1, timeOf))
		if wholeShare(all) >= convergence {
			t.Logf("converged %v after they left", since)
			break
		}
		if round == maxRounds {
			t.Error(errors.New("the lookups do not converge"))
			break
		}
		time.Sleep(roundPause)
	}
	return median
}

// depart cuts the power of 30 % of the sites and of the relays.
func (w *world) depart() {
	w.sites = slices.DeleteFunc(w.sites, func(s *simSite) bool { // so that their memory is free
		if rand.Float64() >= leaving {
			return false
		}
		s.Host.Vanish()
		w.ending.Go(s.leave)
		return true
	})
	for _, r := range w.relays {
		if rand.Float64() >= leaving {
			continue
		}
		if r.gone = true; w.cut() == len(w.realms) { // nothing would be left to look for
			r.gone = false
			continue
		}
		r.Host.Vanish()
		w.ending.Go(r.leave)
	}
	w.t.Logf("%.0f %% of the sites and relays leave; %d of %d realms have no relay left, and are not looked for",
		100*leaving, w.cut(), len(w.realms))
}

// cut returns how many realms have no relay left.
func (w *world) cut() (n int) {
	for i := range w.realms {
		if !w.reachable(i) {
			n++
		}
	}
	return n
}

// megabytes returns the memory that this process has of the system: heap, stacks and garbage.
func megabytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return (m.Sys - m.HeapReleased) >> 20
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Round(100 * time.Millisecond)
}
