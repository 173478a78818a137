package alarm_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"agentsite/device/alarm"

	"go.uber.org/goleak"
)

// TestTimers: a timer is never early, not even after a Reset, is due once, and not after a Stop that
// reported that it waited. All hold for Go's timers, too.
func TestTimers(t *testing.T) {
	for name, makeAll := range map[string]func(context.Context) alarm.AfterFunc{
		"kernel": alarm.New,
		"Go":     func(context.Context) alarm.AfterFunc { return alarm.Go },
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			after := makeAll(ctx)
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() { use(t, after, rand.New(rand.NewPCG(1, uint64(i)))) })
			}
			all.Wait()
		})
	}
}

// use has a timer be due again and again, with the choices of r.
func use(t *testing.T, after alarm.AfterFunc, r *rand.Rand) {
	d := time.Duration(r.IntN(3000)-1000) * time.Microsecond
	begun, due := time.Now(), make(chan struct{}, 1)
	timer := after(d, func() { due <- struct{}{} })
	for range 50 {
		switch r.IntN(4) {
		case 0: // replaced while it waits
			if !timer.Stop() {
				<-due
			}
			d = time.Duration(r.IntN(3000)) * time.Microsecond
			begun = time.Now()
			if timer.Reset(d) {
				t.Error("a stopped timer waited")
			}
		case 1: // later or sooner
			d = time.Duration(r.IntN(5000)) * time.Microsecond
			now := time.Now()
			if timer.Reset(d) {
				begun = now
				break
			}
			<-due // by the time before
			begun = now
		}
		<-due
		if waited := time.Since(begun); waited < d {
			t.Errorf("%v in place of %v", waited, d)
		}
		if timer.Stop() {
			t.Error("a timer waited after it was due")
		}
		d, begun = time.Duration(r.IntN(2000))*time.Microsecond, time.Now()
		timer.Reset(d)
	}
	if !timer.Stop() {
		<-due
	}
}

// TestFar: a timer for a time that nobody lives to see is not due at once, and keeps back no other.
func TestFar(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	after := alarm.New(ctx)
	var far []alarm.Timer
	for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - time.Hour, 100 * 365 * 24 * time.Hour} {
		far = append(far, after(d, func() { t.Errorf("%v are over", d) }))
	}
	due := make(chan struct{})
	after(5*time.Millisecond, func() { close(due) })
	<-due
	for _, timer := range far {
		if !timer.Stop() {
			t.Error("a timer does not wait any more")
		}
	}
}

// TestReset: a function may reset and stop its own timer, and others.
func TestReset(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	after := alarm.New(ctx)
	other := after(time.Hour, func() {})
	done, left := make(chan struct{}), 20
	var mu sync.Mutex // as runner's, held where a timer is reset
	var own alarm.Timer
	mu.Lock()
	own = after(0, func() {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			close(done)
			return
		}
		if own.Stop() || own.Reset(time.Duration(left%3)*time.Millisecond) || !other.Reset(time.Hour) {
			t.Error("a timer that is due waits, or another does not")
		}
	})
	mu.Unlock()
	<-done
}
