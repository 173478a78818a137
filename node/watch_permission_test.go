package node

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

func TestWatchRevoked(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		l := &leaves{may: map[string][]string{"token:shy": {"read_points", "read_points lever/a", "read_points lever/b"}}}
		r.access = l
		all, named := r.watch(t, shy, agents.WatchRequest{}), r.watch(t, shy, agents.WatchRequest{Points: []string{"lever/b"}})
		all.next(t, "a - stale, b - stale, approvals")
		named.next(t, "b - stale, approvals")
		refused := r.watch(t, shy, agents.WatchRequest{Points: []string{arm}})
		if err := refused.end(); device.AsFault(err).Kind != device.Denied {
			t.Error("it watches what it may not see:", err)
		}
		l.may["token:shy"] = []string{"read_points", "read_points lever/a"}
		l.stands++
		r.Recheck()
		all.next(t, "offer, a - stale, approvals") // what is left
		if err := named.end(); !errors.Is(err, errRevoked) {
			t.Error(err)
		}
		r.put("b", device.Number(1), 0)
		all.next(t)
		l.may = nil
		r.put("a", device.Number(1), 0) // nobody says that the permission has ended
		all.next(t)
		if err := all.end(); !errors.Is(err, errRevoked) {
			t.Error(err)
		}
	})
}

// rated lets a few reads through.
type rated struct {
	*leaves
	left atomic.Int32
}

func (r *rated) Take(p agents.Principal, ask agents.Ask, confirmed bool) (agents.Limits, error) {
	if ask.Op == agents.OpRead && r.left.Add(-1) < 0 {
		r.left.Store(0)
		return agents.Limits{}, device.Faultf(device.Busy, "your rate is used up")
	}
	return r.leaves.Take(p, ask, confirmed)
}

// TestWatchRate: watching is no way around a rate or an owner's confirmation.
func TestWatchRate(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		l := &rated{leaves: &leaves{may: map[string][]string{"token:shy": {"read_points", "read_points lever/a", "read_points lever/b"}}}}
		r.access = l
		r.put("a", device.Number(1), 0)
		w := r.watch(t, shy, agents.WatchRequest{})
		w.next(t, "a - stale, b - stale, approvals") // all, without values
		time.Sleep(time.Hour)
		w.next(t)
		r.put("a", device.Number(2), 0)
		l.left.Store(2)
		time.Sleep(chargeRetryMax)
		w.next(t, "a 2 3s ago, b - stale")
		r.put("b", device.Number(3), 0)
		w.next(t, "b 3")
		r.put("b", device.Number(4), 0)
		w.next(t)
		l.left.Store(1)
		time.Sleep(2 * chargeRetry)
		w.next(t, "b 4 1s ago")
		if left := l.left.Load(); left != 0 {
			t.Errorf("%d reads were not charged", left)
		}
		notified := make(chan agents.Change, 9)
		go r.Notify(t.Context(), shy, agents.Change{Tools: true}, nil, func(c agents.Change) error { notified <- c; return nil })
		synctest.Wait()
		l.left.Store(9)
		for range 3 { // the permissions of others
			r.Recheck()
			w.next(t)
		}
		if left := l.left.Load(); left != 9 || len(notified) != 1 {
			t.Errorf("others' permissions cost %d reads and %d notifications", 9-left, len(notified)-1)
		}
		l.stands++
		r.Recheck()
		w.next(t, "offer, a 2 62s ago, b 4 2s ago, approvals")
		if <-notified; <-notified != (agents.Change{Tools: true}) {
			t.Error("the offer has changed, and it was not notified")
		}
		l.limits.Confirm = true
		r.put("b", device.Number(5), 0)
		if err := w.end(); err != errConfirm {
			t.Error(err)
		}
		w.next(t)
		l.may["token:shy"] = []string{"read_points", "site_status"}
		l.stands++
		status := r.watch(t, shy, agents.WatchRequest{})
		status.next(t, "approvals")
		r.outputs.set(func() { r.outputs.stopped = true })
		status.next(t)
		l.limits.Confirm = false
		l.stands++
		r.Recheck()
		status.next(t, "offer, approvals, stopped true")
		status.end()
	})
}

// TestWatchRateUndone checks that a watch does not try again to tell a change that a rate held
// back and that was undone.
func TestWatchRateUndone(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		l := &rated{leaves: &leaves{may: map[string][]string{"token:shy": {"read_points", "read_points lever/arm"}}}}
		r.access = l
		l.left.Store(1)
		w := r.watch(t, shy, agents.WatchRequest{})
		w.next(t, "arm - stale [ 0 0 ], approvals")
		r.outputs.set(func() { r.outputs.now.Lacks = "lever/a < 3: it is 4" })
		w.next(t)
		r.outputs.set(func() { r.outputs.now.Lacks = "" })
		w.next(t)
		l.left.Store(1)
		time.Sleep(time.Hour)
		w.next(t)
		if l.left.Load() != 1 {
			t.Error("it was charged for nothing")
		}
		w.end()
	})
}

// TestWatchHides: a watch tells a principal with a partial view of an output no more than a read:
// no name of another holder, and no point that it may not see.
func TestWatchHides(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		r.access = &leaves{may: map[string][]string{"token:shy": {"read_points", "read_points " + arm}, "ann": {"set_level " + arm}}}
		r.confirming()
		r.outputs.set(func() {
			r.outputs.now.Holder, r.outputs.now.Left, r.outputs.now.Lacks = "ann", 60*time.Second, "needs lever/a on"
		})
		w := r.watch(t, shy, agents.WatchRequest{})
		defer w.end()
		w.next(t, "arm - stale [somebody else 60 0 "+hidden+"], approvals")
		// Another's approval, a point and a stop that it may not see:
		r.desk.ask(ann, 1)
		if all, err := r.Requests(own); err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		r.put("a", device.Number(1), 0)
		r.outputs.set(func() { r.outputs.stopped = true })
		w.next(t)
	})
}
