//go:build e2e

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// moved holds the costs of moves for the site's process and the guard's.
type moved struct {
	siteCPU, guardCPU time.Duration // of all
	siteMB, guardMB   float64       // anonymous memory, right after the last
}

const moves = 600

func measureMoves(tb testing.TB) moved {
	tb.Helper()
	config := strings.ReplaceAll(harness.ThirtyDevices("10s"), "model: relay,", "model: relay, min_off: 0s,")
	r := harness.Start(tb, config, harness.Need(tb, "the program", harness.Program))
	move := func(i int) {
		body := harness.ToolCall("switch_output", fmt.Sprintf(`{"output":"relay-%02d/relay","on":true,"for_seconds":30}`, i%10+1))
		if _, answer := r.Post(tb, body, "Mcp-Name", "switch_output"); !strings.Contains(answer, harness.MovedField) {
			tb.Fatal(answer)
		}
	}
	for i := range 20 {
		move(i)
	}
	site, guard := r.Cmd.Process.Pid, r.Guard(tb)
	siteCPU, guardCPU := harness.CPUTime(tb, site), harness.CPUTime(tb, guard)
	for i := range moves {
		move(i)
	}
	return moved{
		harness.CPUTime(tb, site) - siteCPU, harness.CPUTime(tb, guard) - guardCPU,
		harness.Status(tb, site, "RssAnon:") / 1024, harness.Status(tb, guard, "RssAnon:") / 1024,
	}
}

func BenchmarkGuardMoves(b *testing.B) {
	m := measureMoves(b)
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / moves }
	b.ReportMetric(each(m.guardCPU), "guard-cpu-ms/move(≤1)")
	b.ReportMetric(each(m.siteCPU+m.guardCPU), "both-cpu-ms/move")
	b.ReportMetric(m.guardMB, "guard-anonymous-MB(≤7.5)")
	b.ReportMetric(m.siteMB+m.guardMB, "both-anonymous-MB")
	b.ReportMetric(0, "ns/op")
}

// TestGuardMoves: the guard has little memory, but does not spend its time on garbage collection. A
// move costs it less CPU than it costs the site.
func TestGuardMoves(t *testing.T) {
	m := measureMoves(t)
	t.Logf("%d moves took the guard %v of CPU and the site %v; the guard has %.1f MB", moves, m.guardCPU, m.siteCPU, m.guardMB)
	if m.guardCPU > 2*m.siteCPU {
		t.Errorf("the guard needs %v for %d moves, and the site %v: does it collect garbage all the time?", m.guardCPU, moves, m.siteCPU)
	}
	if m.guardMB > 7.5 {
		t.Errorf("the guard has %.1f MB of anonymous memory, more than 7.5", m.guardMB)
	}
}
