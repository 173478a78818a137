package journal

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node"
)

// TestSiteClock: entries and the recent calls have the site's time. Where it is set, or becomes known,
// an event says what it showed, also over a power cut.
func TestSiteClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "journal")
		ahead, known := -400*24*time.Hour, false
		start := func() *Recorder {
			r := NewRecorder()
			r.Now = func() (time.Time, bool) { return time.Now().Add(ahead), known }
			r.Open(folder)
			return r
		}
		call := func(r *Recorder) time.Time {
			t.Helper()
			r.made(t, moveOf("ann", "a/b", 1), Outcome{})
			time.Sleep(time.Minute)
			return time.Now().Add(-time.Minute)
		}
		times := func(r *Recorder, want ...time.Time) {
			t.Helper()
			got := r.Recent("a/b")
			if len(got) != 1 || !got[0].Begun.Equal(want[0].Round(0)) || !got[0].Ended.Equal(want[1].Round(0)) {
				t.Errorf("%+v, want %v", got, want)
			}
		}
		r := start()
		first := call(r)
		ahead, known = 0, true
		last := call(r)
		times(r, first, last)
		ahead = 365 * 24 * time.Hour
		times(r, first.Add(ahead), last.Add(ahead))
		call(r)
		r.crash()
		ahead = 0
		r = start()
		call(r)
		var got []Entry
		for _, e := range entries(t, folder) {
			if e.Tool == clockTool {
				got = append(got, e)
			} else if e.Kind == Event {
				t.Errorf("%+v", e)
			}
		}
		events := []string{`{"known":false}`, `{"was":"1998-11-27T00:01:00Z","known":true}`, `{"was":"2000-01-01T00:02:00Z","known":true}`, `{"was":"2000-12-31T00:02:00Z","known":true}`}
		if len(got) != len(events) || !slices.EqualFunc(got, events, func(e Entry, v string) bool { return string(e.Value) == v }) {
			t.Errorf("%+v", got)
		}
		if calls := r.Recent("a/b"); calls[len(calls)-1].Outcome != node.Done {
			t.Error(calls)
		}
		r.crash()
	})
}
