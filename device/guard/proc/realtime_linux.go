package proc

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// priority is among the real-time ones. The kernel's own threads have 50 and more.
const priority = 10

// StartRealtime runs start, which starts a process, so that the kernel runs the new
// process before all that is not urgent, where it allows that; see Realtime.
//
// Given from outside, and so from the first instruction, the priority is that of all
// the process's threads. A Go program that raises them itself, one by one, can hang: on
// a busy machine those that have it spin for one that does not, and never gets to run.
//
// For the same reason it is SCHED_RR, which is SCHED_FIFO but for threads of the same
// priority: those take turns of 100 ms. Go's sweeper spins while another thread sweeps,
// and where two guards had all the processors under SCHED_FIFO, each with a spinning
// thread, the other thread never ran again (seen with Go 1.26).
func StartRealtime(start func() error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with this: it is not for other work
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: priority}
		unix.SchedSetAttr(0, &attr, 0) // if not, the new process says so
		started <- start()
	}()
	return <-started
}

// Realtime keeps in memory what this process uses from now on. The error says what that, or StartRealtime,
// is not allowed, and what mends it.
func Realtime() error {
	attr, err := unix.SchedGetAttr(0, 0)
	if err == nil && attr.Policy != unix.SCHED_RR {
		err = unix.EPERM
	}
	if err != nil {
		return fmt.Errorf("no real-time priority (%w): a busy board may end a lease late; run as root, or with LimitRTPRIO=%d under systemd", err, priority)
	}
	if err := dropStartPages(); err != nil {
		slog.Debug("pages that only the start needed are locked too", "err", err)
	}
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		return fmt.Errorf("its memory cannot be locked (%w): a board that swaps may end a lease late; run as root, or with LimitMEMLOCK=infinity under systemd", err)
	}
	return nil
}

// dropStartPages unmaps the program's read-only pages. A start touches two thirds of them,
// and the guard needs few: locked, the others would be lost to the board. A page that is
// used again comes back and stays.
func dropStartPages() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		words := strings.Fields(line) // 00400000-01a2b000 r-xp 00000000 fe:00 1234 /usr/bin/agentsite
		if !strings.HasSuffix(line, " "+self+"\n") || strings.Contains(words[1], "w") {
			continue
		}
		var from, to uintptr
		if _, err := fmt.Sscanf(words[0], "%x-%x", &from, &to); err != nil {
			return err
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); errno != 0 {
			return errno
		}
	}
	return nil
}
