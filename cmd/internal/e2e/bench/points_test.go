//go:build e2e

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// BenchmarkThousandPoints measures the processor time per second of a site with 1,002 simulated
// points that are read once a second, and beside it that of an empty site.
func BenchmarkThousandPoints(b *testing.B) {
	harness.Need(b, "the program", harness.Program)
	var y strings.Builder
	y.WriteString("site: { name: thousand }\ndevices:\n")
	for i := range 334 {
		fmt.Fprintf(&y, "  climate-%03d: { driver: sim, model: climate, seed: %d, every: 1s }\n", i, i)
	}
	for _, s := range []struct{ name, yaml string }{{"1002-points", y.String()}, {"none", "site: { name: none }\n"}} {
		r := harness.Start(b, s.yaml, harness.Program)
		time.Sleep(5 * time.Second) // let the start settle
		const length = 20 * time.Second
		before := harness.CPUTime(b, r.Cmd.Process.Pid)
		time.Sleep(length)
		b.ReportMetric(float64((harness.CPUTime(b, r.Cmd.Process.Pid)-before).Milliseconds())/length.Seconds(), s.name+"-cpu-ms/s")
		b.ReportMetric(harness.Status(b, r.Cmd.Process.Pid, "VmRSS:")/1024, s.name+"-resident-MB")
	}
	b.ReportMetric(0, "ns/op")
}
