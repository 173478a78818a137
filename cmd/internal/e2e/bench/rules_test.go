//go:build e2e

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// BenchmarkRules measures the costs of 64 rules at rest: the medians of three sites of thirty
// devices with them, less those of three without. All run at once, so that each has the same share
// of the program.
func BenchmarkRules(b *testing.B) {
	const runs, rest = 3, 150 * time.Second // the runtime collects garbage every two minutes
	var sites [2][runs]*harness.Site
	for i := range runs {
		for with, rules := range [...]string{"", sixtyFourRules()} {
			sites[with][i] = harness.Start(b, harness.ThirtyDevices("10s")+rules, harness.Need(b, "the program", harness.Program))
		}
	}
	more := func(measure func(pid int) float64) float64 {
		var of [2][]float64
		for with := range sites {
			for _, s := range sites[with] {
				of[with] = append(of[with], measure(s.Cmd.Process.Pid))
			}
		}
		return median(of[1]) - median(of[0])
	}
	memory := func(file, key string) func(int) float64 {
		return func(pid int) float64 { return harness.StatusFile(b, fmt.Sprintf("/proc/%d/%s", pid, file), key) / 1024 }
	}
	time.Sleep(10 * time.Second) // let the start settle; what follows is at rest
	before := make(map[int]float64)
	more(func(pid int) float64 { before[pid] = harness.VoluntarySwitches(b, pid); return 0 })
	time.Sleep(rest)
	b.ReportMetric(more(func(pid int) float64 { return (harness.VoluntarySwitches(b, pid) - before[pid]) / rest.Seconds() }), "more-voluntary-switches/s(≤0.5)")
	b.ReportMetric(more(memory("smaps_rollup", "Pss:")), "more-proportional-MB(≤1)")
	b.ReportMetric(more(memory("status", "RssAnon:")), "more-anonymous-MB")
	b.ReportMetric(0, "ns/op")
}

// sixtyFourRules are rules over the sensors of ThirtyDevices for its relays, whose conditions
// are false.
func sixtyFourRules() string {
	var y strings.Builder
	y.WriteString("agents:\n")
	for i := range 64 {
		sensor, other, relay := i%20+1, (i+7)%20+1, i%10+1
		fmt.Fprintf(&y, "  rule-%02d: { kind: rule, priority: %d, may: set relay-%02d, hold: { relay-%02d/relay: on },\n", i, i/10, relay, relay)
		fmt.Fprintf(&y, "    when: \"climate-%02d/temperature < -40 Cel and mean(climate-%02d/temperature, 10m) < 5 Cel\" }\n", sensor, other)
	}
	return y.String()
}
