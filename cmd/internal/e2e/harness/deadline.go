//go:build e2e

package harness

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Workload returns normal, or soak where SOAK is set. A value that makes a test take more than 20 s
// without SOAK needs a reason beside it.
func Workload[T any](normal, soak T) T {
	if os.Getenv("SOAK") != "" {
		return soak
	}
	return normal
}

// punctual locks the calling goroutine to its thread and gives that the guard's real-time
// priority, where that is permitted.
func punctual() {
	runtime.LockOSThread()
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 5}, 0)
}

// CheckDeadline fails the test where measure returns more than limit, and returns the last
// duration. A bare sleeper of the guard's scheduling class runs beside measure. A duration
// above the limit is repeated, at most three times and with a line in the log, if that sleeper
// was late by more than a quarter of the limit.
func CheckDeadline(t *testing.T, limit time.Duration, measure func() time.Duration) time.Duration {
	t.Helper()
	return checkDeadline(t, limit, punctual, measure)
}

// CheckOrdinaryDeadline is CheckDeadline for a process that has no real-time priority, such as
// a client or an emulator; nor has the sleeper.
func CheckOrdinaryDeadline(t *testing.T, limit time.Duration, measure func() time.Duration) time.Duration {
	t.Helper()
	return checkDeadline(t, limit, runtime.LockOSThread, measure)
}

func checkDeadline(t *testing.T, limit time.Duration, setClass func(), measure func() time.Duration) time.Duration {
	t.Helper()
	for try := 1; ; try++ {
		var latest atomic.Int64
		done := make(chan struct{})
		var sleeping sync.WaitGroup
		sleeping.Go(func() {
			setClass()
			for {
				begun := time.Now()
				time.Sleep(5 * time.Millisecond)
				latest.Store(max(latest.Load(), int64(time.Since(begun)-5*time.Millisecond)))
				select {
				case <-done:
					return
				default:
				}
			}
		})
		took := measure()
		close(done)
		sleeping.Wait()
		late := time.Duration(latest.Load())
		if took <= limit {
			return took
		}
		if late <= limit/4 || try == 4 {
			t.Errorf("it took %v, more than %v; a bare sleeper was late by %v", took, limit, late)
			return took
		}
		t.Logf("repeated: it took %v, and a bare sleeper was late by %v", took, late)
	}
}

// LogDurations logs the median, the 95th percentile and the maximum of all, which it sorts.
func LogDurations(t *testing.T, what string, all []time.Duration) {
	slices.Sort(all)
	n := func(i int) time.Duration { return all[i].Round(10 * time.Microsecond) }
	t.Logf("%s: %d times, median %v, p95 %v, longest %v", what, len(all), n(len(all)/2), n((95*len(all)+99)/100-1), n(len(all)-1))
}
