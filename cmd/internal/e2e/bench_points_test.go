//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkThousandPoints is a site of 1,002 simulated points that are read once a
// second: processor time per second, and beside it that of an empty site.
func BenchmarkThousandPoints(b *testing.B) {
	need(b, "the program", program)
	var y strings.Builder
	y.WriteString("site: { name: thousand }\ndevices:\n")
	for i := range 334 {
		fmt.Fprintf(&y, "  climate-%03d: { driver: sim, model: climate, seed: %d, every: 1s }\n", i, i)
	}
	for _, s := range []struct{ name, yaml string }{{"1002-points", y.String()}, {"none", "site: { name: none }\n"}} {
		r := start(b, s.yaml, program)
		time.Sleep(5 * time.Second) // let the start settle
		const length = 20 * time.Second
		before := cpuTime(b, r.Cmd.Process.Pid)
		time.Sleep(length)
		b.ReportMetric(float64((cpuTime(b, r.Cmd.Process.Pid)-before).Milliseconds())/length.Seconds(), s.name+"-cpu-ms/s")
		b.ReportMetric(status(b, r.Cmd.Process.Pid, "VmRSS:")/1024, s.name+"-resident-MB")
	}
	b.ReportMetric(0, "ns/op")
}
