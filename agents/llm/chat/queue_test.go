package chat

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// TestQueues: one request at a time, people first, then the agent that waited longest since it was
// served; whoever goes away leaves its place, and a full queue refuses.
func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queues
		var served []string
		leave, err := q.Enter(t.Context(), "http://a/v1", "first", Chat)
		if err != nil {
			t.Fatal(err)
		}
		other, err := q.Enter(t.Context(), "http://b/v1", "first", Chat)
		if err != nil {
			t.Fatal(err)
		}
		other()
		wait := func(ctx context.Context, agent string, p Priority) {
			go func() {
				leave, err := q.Enter(ctx, "http://a/v2", agent, p)
				if err == nil {
					served = append(served, agent)
					leave()
					leave()
				}
			}()
			synctest.Wait()
		}
		gone, goes := context.WithCancel(t.Context())
		wait(t.Context(), "schedule", Schedule)
		wait(t.Context(), "rule", Rule)
		wait(gone, "gone", Chat)
		wait(t.Context(), "x", Chat)
		wait(t.Context(), "x", Chat)
		wait(t.Context(), "y", Chat)
		goes()
		synctest.Wait()
		for i := range maxWaiting - 5 {
			wait(t.Context(), fmt.Sprint("z", i), Schedule)
		}
		if _, err := q.Enter(t.Context(), "http://a/v1", "late", Chat); err == nil {
			t.Error("a full queue takes more")
		}
		leave()
		synctest.Wait()
		if want := []string{"x", "y", "x", "rule", "schedule"}; !slices.Equal(served[:5], want) || len(served) != maxWaiting {
			t.Errorf("%q", served)
		}
		if len(q.of) != 0 {
			t.Errorf("%d queues are left", len(q.of))
		}
	})
}
