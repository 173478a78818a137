package alarm_test

import (
	"context"
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
