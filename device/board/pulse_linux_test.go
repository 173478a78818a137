package board

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPulsesTakeTurns: a thread that makes pulses has the policy of the guard's others. With
// SCHED_FIFO, a thread that spins for another of the same priority would never let that run.
func TestPulsesTakeTurns(t *testing.T) {
	policy := make(chan uint32)
	go func() {
		runtime.LockOSThread() // and it ends with this
		kernelChips{}.PrepareThread()
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Error(err)
			attr = &unix.SchedAttr{}
		}
		policy <- attr.Policy
	}()
	switch p := <-policy; p {
	case unix.SCHED_RR:
	case unix.SCHED_NORMAL:
		if os.Getenv("CI") != "" {
			t.Fatal("CI runs as root, which may set a real-time priority")
		}
		t.Skip("SKIPPED: this user may not set a real-time priority")
	default:
		t.Errorf("the policy is %d", p)
	}
}
