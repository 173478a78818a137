//go:build e2e && linux

package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

// BenchmarkDiscovery measures the costs of discovery at rest: a site alone, with and without mDNS,
// and a site beside agentsite discover --watch, each on its own network. The counts include the
// kernel's own packets; the site without mDNS has only those.
func BenchmarkDiscovery(b *testing.B) {
	alone := func(words ...string) (*harness.Site, *bed.Bed) {
		net := bed.New(b)
		return harness.StartOn(b, net.Host("10.77.0.1/24"), harness.TempDir(b), "shed", words...), net
	}
	with, _ := alone()
	without, _ := alone("discovery: { mdns: off }")
	watched, net := alone()
	w := harness.NewLaptop(b, net.Host("10.77.0.100/24")).Watch(b)
	w.AwaitSites(10*time.Second, watched.DID(b))
	processes := []struct {
		name string
		pid  int
	}{{"with", with.Cmd.Process.Pid}, {"without", without.Cmd.Process.Pid}, {"watched", watched.Cmd.Process.Pid}, {"watch", w.Cmd.Process.Pid}}

	time.Sleep(75 * time.Second) // until who looks asks once a minute
	const rest = 2 * time.Minute
	var woken, sent []float64
	for _, p := range processes {
		woken, sent = append(woken, harness.VoluntarySwitches(b, p.pid)), append(sent, onWire(b, p.pid))
	}
	time.Sleep(rest)
	for i, p := range processes {
		woken[i], sent[i] = harness.VoluntarySwitches(b, p.pid)-woken[i], onWire(b, p.pid)-sent[i]
	}
	for i, p := range processes {
		b.Run(p.name, func(b *testing.B) {
			b.ReportMetric(woken[i]/rest.Seconds(), "voluntary-switches/s")
			b.ReportMetric(sent[i]/rest.Minutes(), "wire-B/min")
			b.ReportMetric(harness.Status(b, p.pid, "VmRSS:")/1024, "resident-MB")
			b.ReportMetric(harness.Status(b, p.pid, "RssAnon:")/1024, "anonymous-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// onWire is how many bytes have come and gone at a process's eth0.
func onWire(b testing.TB, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, counts, _ := strings.Cut(string(text), "eth0:")
	columns := strings.Fields(counts)
	if len(columns) < 9 {
		b.Fatalf("no eth0 in\n%s", text)
	}
	sum := 0.0
	for _, c := range []string{columns[0], columns[8]} {
		n, err := strconv.ParseFloat(c, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return sum
}
