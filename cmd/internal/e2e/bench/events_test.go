//go:build e2e

package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/events"
	"agentsite/device"
)

// BenchmarkEvents measures the costs of 16 subscriptions to events beside a site of thirty devices at rest: the medians
// of three sites each whose client polls for them one after another, as often as it is told to, and whose client has
// streams, less those of three sites without. All run at once.
func BenchmarkEvents(b *testing.B) {
	const runs, subscriptions, rest = 3, 16, 150 * time.Second // the runtime collects garbage every two minutes
	ctx, stop := context.WithCancel(b.Context())
	var clients sync.WaitGroup
	defer func() { stop(); clients.Wait() }()
	var asked, notified atomic.Int64
	conditions := func() (all []map[string]any) {
		for n := range subscriptions {
			all = append(all, map[string]any{"name": "condition.met", "cursor": nil, "arguments": map[string]any{
				"when": fmt.Sprintf("climate-%02d/temperature < -40 Cel", n+1),
			}})
		}
		return all
	}
	ask := func(s *harness.Site) {
		all := conditions()
		for ctx.Err() == nil {
			next := time.Hour
			for _, params := range all {
				r, err := events.Ask(ctx, s, s.Token, "events/poll", params)
				if ctx.Err() != nil {
					return
				}
				if err != nil || r.Cursor == nil || len(r.Events) > 0 {
					b.Errorf("%v %+v", err, r)
					return
				}
				asked.Add(1)
				params["cursor"] = *r.Cursor
				next = min(next, time.Duration(r.NextPollMs)*time.Millisecond)
			}
			device.Sleep(ctx, next)
		}
	}
	follow := func(s *harness.Site) {
		for _, params := range conditions() {
			clients.Go(func() {
				err := events.Stream(ctx, s, s.Token, params, func(events.Notification) { notified.Add(1) })
				if ctx.Err() == nil {
					b.Error(err)
				}
			})
		}
	}
	ways := []struct {
		name   string
		client func(*harness.Site)
	}{{"none", func(*harness.Site) {}}, {"poll", ask}, {"stream", follow}}
	sites := make([][]*harness.Site, len(ways))
	for range runs {
		for i, way := range ways {
			s := harness.Start(b, harness.ThirtyDevices("10s"), harness.Need(b, "the program", harness.Program))
			sites[i] = append(sites[i], s)
			clients.Go(func() { way.client(s) })
		}
	}
	measure := func(of func(pid int) float64) (medians []float64) {
		for i := range sites {
			var all []float64
			for _, s := range sites[i] {
				all = append(all, of(s.Cmd.Process.Pid))
			}
			medians = append(medians, median(all))
		}
		return medians
	}
	report := func(unit, limit string, medians []float64) {
		for i, way := range ways[1:] {
			b.ReportMetric(medians[i+1]-medians[0], way.name+"-more-"+unit+limit)
		}
	}
	time.Sleep(10 * time.Second) // let the start settle; what follows is at rest
	before := make(map[int]float64)
	measure(func(pid int) float64 { before[pid] = harness.VoluntarySwitches(b, pid); return 0 })
	asks, notes := asked.Load(), notified.Load()
	time.Sleep(rest)
	report("voluntary-switches/s", "(≤0.5)", measure(func(pid int) float64 {
		return (harness.VoluntarySwitches(b, pid) - before[pid]) / rest.Seconds()
	}))
	b.ReportMetric(float64(asked.Load()-asks)/runs/rest.Seconds(), "poll-requests/s")
	b.ReportMetric(float64(notified.Load()-notes)/runs/rest.Seconds(), "stream-notifications/s")
	report("anonymous-MB", "", measure(func(pid int) float64 {
		return harness.StatusFile(b, fmt.Sprintf("/proc/%d/status", pid), "RssAnon:") / 1024
	}))
	b.ReportMetric(0, "ns/op")
}
