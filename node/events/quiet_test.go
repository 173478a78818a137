package events

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/event"
	"agentsite/device"
)

// TestQuiet: a follower misses nothing of a point that is silent for longer than is replayed, and is not told so. It
// gets newer cursors meanwhile.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex
		var all []event.Page
		pages := func() []event.Page { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
		go w.Follow(ctx, ann, ask(ButtonPressed, `{"point":"wall/button"}`), func(p event.Page) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, p)
			return nil
		})
		synctest.Wait()
		for range 3 {
			time.Sleep(maxReplay - time.Hour)
			r := ask(ButtonPressed, `{"point":"wall/button"}`)
			now := pages()
			r.Cursor = now[len(now)-1].Cursor
			time.Sleep(2 * time.Hour)
			if p := w.poll(t, &r); p.Truncated {
				t.Error("a client that goes on from the newest cursor is told that events may be missing")
			}
			w.read("wall/button", device.Text("press"))
			synctest.Wait()
		}
		events := 0
		for _, p := range pages() {
			events += len(p.Events)
		}
		if events != 3 || slices.ContainsFunc(pages(), func(p event.Page) bool { return p.Truncated }) {
			t.Errorf("%d events, %+v", events, pages())
		}
	})
}
