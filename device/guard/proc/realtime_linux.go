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

// StartRealtime runs start, which starts a process, with a real-time priority for the new
// process, if the kernel permits it; see Realtime.
//
// The parent sets the priority, so that all threads of the process have it from the first
// instruction. A Go program that raises its threads one by one can hang. On a busy machine the
// raised threads spin while they wait for a thread that is not raised and never runs.
//
// For the same reason the policy is SCHED_RR, in which threads of the same priority take
// turns of 100 ms, and not SCHED_FIFO. Go's sweeper spins while another thread sweeps. When
// two guards used all processors under SCHED_FIFO, each with a spinning thread, the other
// threads never ran again (seen with Go 1.26).
func StartRealtime(start func() error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine: it is not reused
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: priority}
		unix.SchedSetAttr(0, &attr, 0) // after a failure the new process reports it
		started <- start()
	}()
	return <-started
}

// Realtime locks the memory that this process uses from now on. The error says which
// permission it or StartRealtime lacks, and the remedy.
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

// dropStartPages unmaps the program's read-only pages. A start touches two thirds of them, but
// the guard needs few, and locked pages are lost to other programs. A page that is used again
// is mapped and locked again.
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
