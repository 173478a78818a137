package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// slowPast is a history that takes a second, and counts who reads it.
type slowPast struct{ now, most atomic.Int32 }

func (s *slowPast) read() {
	if n := s.now.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	time.Sleep(time.Second)
	s.now.Add(-1)
}

func (s *slowPast) Summaries(string, time.Time, time.Time, int) ([]device.Summary, time.Duration, error) {
	s.read()
	return nil, time.Minute, nil
}

func (s *slowPast) Changes(string, time.Time, time.Time, func(device.Change) bool) { s.read() }

func (s *slowPast) ValueAt(string, time.Time) (device.Change, bool) { return device.Change{}, false }

// trying are outputs that many may ask what they would refuse.
type trying struct{ *outputs }

func (trying) Try(context.Context, string, string, device.Value, time.Duration) error { return nil }

// TestFewReadThePast: only two callers read at a time, by history and by why. A canceled caller
// does not wait any longer.
func TestFewReadThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchRig()
		past := &slowPast{}
		r.site.History, r.site.Outputs = past, trying{r.outputs}
		r.setSite()
		var all sync.WaitGroup
		ask := func(ctx context.Context, want error) {
			all.Go(func() {
				if _, err := r.History(ctx, own, agents.HistoryRequest{Point: "lever/a"}); !errors.Is(err, want) {
					t.Error(err)
				}
			})
			all.Go(func() {
				if _, err := r.Why(ctx, own, agents.WhyRequest{Point: arm}); !errors.Is(err, want) {
					t.Error(err)
				}
			})
		}
		for range 5 {
			ask(t.Context(), nil)
		}
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		ask(gone, context.Canceled)
		synctest.Wait()
		cancel()
		all.Wait()
		if most := past.most.Load(); most != 2 {
			t.Errorf("%d read the past at a time", most)
		}
	})
}
