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

// notedPast is a history that notes which time it is asked for.
type notedPast struct {
	from, to time.Time
	change   time.Time
}

func (a *notedPast) Summaries(_ string, from, to time.Time, _ int) ([]device.Summary, time.Duration, error) {
	a.from, a.to = from, to
	return nil, time.Minute, nil
}

func (a *notedPast) Changes(_ string, from, to time.Time, yield func(device.Change) bool) {
	if !a.change.Before(from) && a.change.Before(to) {
		yield(device.Change{At: a.change, Value: device.Number(3), Holder: "ann"})
	}
}

func (a *notedPast) ValueAt(string, time.Time) (device.Change, bool) { return device.Change{}, false }

// TestSiteClock: readings, the history and the reasons are on one axis of time, the site's, wherever
// its machine's clock is.
func TestSiteClock(t *testing.T) {
	for _, ahead := range []time.Duration{0, 3 * 24 * time.Hour, -400 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := newWatchRig()
			now := func() time.Time { return time.Now().Add(ahead).Round(0) }
			past := &notedPast{change: now().Add(-time.Minute)}
			r.site.History, r.site.Outputs = past, trying{r.outputs}
			r.site.Now = func() (time.Time, bool) { return now(), false }
			r.setSite()
			if _, err := r.History(t.Context(), own, agents.HistoryRequest{Point: "lever/a"}); err != nil {
				t.Fatal(err)
			}
			if !past.to.Equal(now()) || !past.from.Equal(now().Add(-defaultHours*time.Hour)) {
				t.Errorf("%v ahead: the history is asked from %v to %v", ahead, past.from, past.to)
			}
			r.put("a", device.Number(1), time.Second)
			time.Sleep(time.Second)
			read, err := r.Read(t.Context(), own, agents.ReadRequest{Points: []string{"lever/a"}})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := read.Readings[0].Time, stamp(now().Add(-time.Second)); got != want {
				t.Errorf("%v ahead: it was read at %s, want %s", ahead, got, want)
			}
			why, err := r.Why(t.Context(), own, agents.WhyRequest{Point: arm})
			if err != nil || len(why.Changes) != 1 || why.Changes[0].Time != stamp(past.change) {
				t.Errorf("%v ahead: %+v %v", ahead, why.Changes, err)
			}
		})
	}
}
