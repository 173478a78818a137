package board

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// PrepareThread gives the thread a real-time priority, where the process may (CAP_SYS_NICE
// or RLIMIT_RTPRIO), and the finest timers. It is that of the guard's other threads, with
// which it takes turns: proc.StartRealtime says why.
func (kernelChips) PrepareThread() func(time.Duration) {
	const priority = 10
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: priority}, 0)
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return sleepExactly
}

// sleepExactly sleeps in the kernel without telling Go's scheduler, which would let another
// goroutine run first: on a busy single core for some 100 ms. No other goroutine can use this
// processor meanwhile, so that d has to be short.
func sleepExactly(d time.Duration) {
	until := unix.NsecToTimespec(int64(monotonic() + d))
	for {
		_, _, errno := unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&until)), 0, 0, 0)
		if errno != unix.EINTR {
			return
		}
	}
}
