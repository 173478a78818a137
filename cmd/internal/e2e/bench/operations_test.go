//go:build e2e

package bench

import (
	"os"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/transport/rpc"
)

// BenchmarkOperations is the processor time of a site and its guard for a read and for a move over
// HTTP, in both encodings. Where BEFORE names an older program, the two take turns, and the ratio
// of their medians is printed.
func BenchmarkOperations(b *testing.B) {
	b.Setenv("GOMAXPROCS", "1") // or idle threads look for work
	programs := []string{harness.Need(b, "the program", harness.Program)}
	if before := os.Getenv("BEFORE"); before != "" {
		programs = append(programs, before)
	}
	config := strings.ReplaceAll(harness.ThirtyDevices("10s"), "model: relay,", "model: relay, min_off: 0s,")
	var sites []*harness.Site
	for _, program := range programs {
		sites = append(sites, harness.Start(b, config, program))
	}
	for tool, args := range map[string]string{
		"read_points":   `{"points":["climate-01/temperature"]}`,
		"switch_output": `{"output":"relay-01/relay","on":true,"for_seconds":30}`,
	} {
		for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
			b.Run(tool+"/"+codec.ContentType(), func(b *testing.B) {
				cpu := make([][]float64, len(sites))
				for range 5 {
					for i, s := range sites {
						guard := harness.CPUTime(b, s.Guard(b))
						site, wall := load(b, s, 1, time.Second, toolCall(b, s, codec, tool, args))
						calls := float64(time.Second.Microseconds()) / wall
						cpu[i] = append(cpu[i], site+float64((harness.CPUTime(b, s.Guard(b))-guard).Microseconds())/calls)
					}
				}
				b.ReportMetric(median(cpu[0]), "cpu-µs/call")
				if len(sites) > 1 {
					b.ReportMetric(median(cpu[0])/median(cpu[1]), "x-before(≤1)")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
