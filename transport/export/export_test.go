package export

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/agent"
)

// TestGap: an hour that a store was down is sent when it is up again, all points together, in order and once.
func TestGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "bed/temperature", "air/temperature")
		stop := r.run()
		r.sleep(5 * time.Minute)
		down := time.Now()
		r.say(func(*http.Request, []got) (*http.Response, error) { return status(http.StatusServiceUnavailable), nil })
		r.sleep(time.Hour)
		if says := r.agent.Report(t.Context()); says.State != agent.Waiting || !strings.Contains(says.Says, "503") {
			t.Errorf("%+v", says)
		}
		tries := len(r.asked)
		if tries > 30 {
			t.Errorf("%d tries within an hour", tries)
		}
		r.say(nil)
		r.sleep(retryMax + time.Minute)
		r.check("bed/temperature", r.began.Add(-reach), time.Now().Add(-2*time.Minute), 0)
		r.check("air/temperature", r.began.Add(-reach), time.Now().Add(-2*time.Minute), 0)
		r.check("air/temperature", down, down.Add(time.Hour), 0)
		if says := r.agent.Report(t.Context()); says.State == agent.Waiting {
			t.Errorf("%+v", says)
		}
		rounds := len(r.asked)
		r.sleep(time.Hour)
		if n := len(r.asked) - rounds; n > 61 {
			t.Errorf("%d requests in an hour of rounds", n)
		}
		stop()
	})
}

// TestOld: what is older than the raw readings is sent in minutes.
func TestOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "bed/temperature")
		r.file = fmt.Appendf(nil, `{"version":1,"sent":{"bed/temperature Cel":%d}}`, r.began.Add(-8*24*time.Hour).Unix())
		stop := r.run()
		r.sleep(time.Second)
		all := r.got[temperature("bed/temperature")]
		if n := len(all); n < 7*24*360+24*60-5 || n > 7*24*360+24*60+8*60 {
			t.Errorf("%d samples", n)
		}
		r.check("bed/temperature", r.began.Add(-7*24*time.Hour+pageSteps*time.Minute), r.began.Add(-time.Minute), 0)
		stop()
	})
}

// TestRestart: after a clean end nothing is missing and nothing comes again. After a crash nothing is missing, and what
// was sent since the file was written comes again.
func TestRestart(t *testing.T) {
	for _, crashed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "bed/temperature")
			stop := r.run()
			r.sleep(45 * time.Minute)
			r.crashed = crashed
			stop()
			r.crashed = false
			r.sleep(time.Hour)
			n := 0
			r.say(func(*http.Request, []got) (*http.Response, error) { // in the middle of the catch-up
				if n++; n == 2 {
					return status(http.StatusBadGateway), nil
				}
				return nil, nil
			})
			stop = r.run()
			r.sleep(5 * time.Minute)
			stop()
			again := 0
			if crashed {
				again = int((keepEvery + time.Minute) / every)
			}
			r.check("bed/temperature", r.began.Add(-reach), time.Now().Add(-2*time.Minute), again)
		})
	}
}

// TestRefused: a sample that a store refuses is left out and counted, and all others arrive; so does all that follows a
// request that is refused as a whole, after a bounded number of tries.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "bed/temperature", "air/temperature")
		bad := r.began.Add(-5 * time.Minute).Truncate(every).Add(time.Second).UnixMilli()
		r.say(func(_ *http.Request, all []got) (*http.Response, error) {
			if slices.ContainsFunc(all, func(s got) bool { return s.at == bad && strings.Contains(s.labels, "air") }) {
				return status(http.StatusBadRequest), nil
			}
			return nil, nil
		})
		stop := r.run()
		r.sleep(10 * time.Minute)
		r.check("bed/temperature", r.began.Add(-reach), time.Now().Add(-2*time.Minute), 0)
		if n := r.agent.told.refused; n != 1 {
			t.Errorf("%d are refused", n)
		}
		if says := r.agent.Report(t.Context()).Says; !strings.Contains(says, "refused 1 samples") {
			t.Error(says)
		}
		before, from := len(r.asked), time.Now()
		r.say(func(*http.Request, []got) (*http.Response, error) { return status(http.StatusUnprocessableEntity), nil })
		r.sleep(10 * time.Minute)
		to := time.Now()
		r.say(nil)
		r.sleep(10 * time.Minute)
		r.check("bed/temperature", to, time.Now().Add(-2*time.Minute), 0)
		if n := r.agent.told.refused; n < 100 || n > 140 {
			t.Errorf("%d are refused in %v", n, to.Sub(from))
		}
		if n := len(r.asked) - before; n > 2*12+15*(2*minSplits+1) { // only the first 12 are parted down to one each
			t.Errorf("%d requests", n)
		}
		stop()
	})
}

// TestMany: however many points there are, and however far behind they are, a request and the batch are bounded.
func TestMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 10_000 {
			names = append(names, fmt.Sprintf("d%d/t", i))
		}
		r := newRig(t, names...)
		stop := r.run()
		r.sleep(time.Second)
		r.check("d0/t", r.began.Add(-reach), time.Now().Add(-time.Minute), 0)
		r.check("d9999/t", r.began.Add(-reach), time.Now().Add(-time.Minute), 0)
		if n := slices.Max(r.asked); n > maxSamples+pageSteps {
			t.Errorf("%d samples in a request", n)
		}
		if stop(); len(r.file) > MaxFile {
			t.Errorf("%d bytes are stored", len(r.file))
		}
	})
}

// TestClock: nothing is sent while the clock is not set. When it is set back by much, series go on at its time.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "bed/temperature")
		r.unknown = true
		stop := r.run()
		r.sleep(10 * time.Minute)
		if len(r.asked) != 0 {
			t.Errorf("%d requests", len(r.asked))
		}
		r.mu.Lock()
		r.unknown, r.ahead = false, 365*24*time.Hour // wrong
		r.mu.Unlock()
		r.sleep(10 * time.Minute)
		r.mu.Lock()
		r.ahead = 0
		right := time.Now()
		r.mu.Unlock()
		r.sleep(10 * time.Minute)
		stop()
		have := make(map[int64]bool)
		for _, s := range r.got[temperature("bed/temperature")] {
			have[s.at] = true
		}
		for at := right.Add(time.Minute).Truncate(every); at.Before(time.Now().Add(-2 * time.Minute)); at = at.Add(every) {
			if !have[at.UnixMilli()+1000] {
				t.Fatalf("%v is missing", at)
			}
		}
	})
}
