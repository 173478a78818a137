package board

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// clocked is lines that note when they were set.
type clocked struct {
	Lines
	at []time.Time
}

func (c *clocked) Set(uint64) error { c.at = append(c.at, time.Now()); return nil }

// BenchmarkPulse measures how much too long a servo's pulses of 1.5 ms are, and how late they
// begin, while a number of goroutines keep the processor busy.
func BenchmarkPulse(b *testing.B) {
	for _, load := range []int{0, 4} {
		b.Run(fmt.Sprintf("busy=%d", load), func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for range load {
				go func() {
					for n := 0; ctx.Err() == nil; {
						for range 100_000 {
							n++
						}
						runtime.KeepAlive(n)
					}
				}()
			}
			const on = 1500 * time.Microsecond
			c := &clocked{}
			t, err := New().Pulse(newLine("GPIO17", c), on, pulsePeriod)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				time.Sleep(pulsePeriod)
			}
			t.Stop()
			var long, late []float64
			for i := 1; i < len(c.at); i += 2 {
				long = append(long, float64((c.at[i].Sub(c.at[i-1]) - on).Microseconds()))
				if i > 1 {
					late = append(late, float64((c.at[i-1].Sub(c.at[i-3]) - pulsePeriod).Microseconds()))
				}
			}
			for name, all := range map[string][]float64{"long": long, "late": late} {
				if len(all) > 0 {
					slices.Sort(all)
					b.ReportMetric(all[len(all)/2], "median-us-"+name)
					b.ReportMetric(all[len(all)-1], "worst-us-"+name)
				}
			}
		})
	}
}
