//go:build e2e && linux

package devices

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// BenchmarkIdle measures what ten relays at the end of a network cost at rest and safe: wake-ups and CPU of the site's
// process and its guard's, and bytes on the network. A row is a kind of device.
//
//	AGENTSITE=… go test -tags e2e -run ^$ -bench Idle -benchtime 1x ./cmd/internal/e2e/devices
func BenchmarkIdle(b *testing.B) {
	b.Run("none", func(b *testing.B) {
		idle(b, func(int) string { return "{ driver: sim, model: relay, min_off: 0s }" }, func() int64 { return 0 })
	})
	b.Run("mqtt", func(b *testing.B) {
		broker := startBroker(b)
		idle(b, func(i int) string {
			return fmt.Sprintf("{ driver: mqtt, broker: \"mqtt://%s\", outputs: { relay: { topic: x%[2]d/state, set: x%[2]d/set, safe: off } } }", broker.listen.Addr(), i)
		}, broker.carried.Load)
	})
}

// idle reports what a site with ten devices costs at rest. carried returns the bytes on the network so far.
func idle(b *testing.B, keys func(i int) string, carried func() int64) {
	b.Helper()
	const rest = time.Minute
	var devices strings.Builder
	for i := range 10 {
		fmt.Fprintf(&devices, "  d%d: %s\n", i, keys(i))
	}
	harness.AsService(b)
	r := harness.Start(b, "site: { name: idle }\ndevices:\n"+devices.String(),
		harness.Need(b, "the program", harness.Program))
	defer r.Stop(b)
	time.Sleep(10 * time.Second) // let the start settle
	pids := [2]int{r.Cmd.Process.Pid, r.Guard(b)}
	var woken, cpu [2]float64
	before := carried()
	for i, pid := range pids {
		woken[i], cpu[i] = harness.VoluntarySwitches(b, pid), harness.CPUTime(b, pid).Seconds()
	}
	time.Sleep(rest)
	for i, name := range []string{"site", "guard"} {
		b.ReportMetric((harness.VoluntarySwitches(b, pids[i])-woken[i])/rest.Seconds(), name+"-switches/s")
		b.ReportMetric((harness.CPUTime(b, pids[i]).Seconds()-cpu[i])*1000/rest.Seconds(), name+"-cpu-ms/s")
		b.ReportMetric(harness.Status(b, pids[i], "RssAnon:")/1024, name+"-anonymous-MB")
	}
	b.ReportMetric(float64(carried()-before)/rest.Seconds(), "network-bytes/s")
	b.ReportMetric(0, "ns/op")
}
