package export

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestDay: a day of ten measurements with a reading each ten seconds is a request a minute, and few bytes a sample.
func TestDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7", "a/8", "a/9", "a/10")
		var bytes atomic.Int64
		r.say(func(q *http.Request, _ []got) (*http.Response, error) {
			bytes.Add(q.ContentLength)
			return nil, nil
		})
		stop := r.run()
		r.sleep(24 * time.Hour)
		stop()
		samples := 0
		for _, n := range r.asked {
			samples += n
		}
		t.Logf("%d requests, %d samples, %d kB of bodies", len(r.asked), samples, bytes.Load()/1000)
		const readings = 10 * 24 * 3600 / 10
		if len(r.asked) > 24*60+10 || samples < readings || samples > readings*11/10 || bytes.Load() > 24*int64(samples) {
			t.Error("a day costs too much, or is incomplete")
		}
	})
}
