package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// priority is among the real-time ones. The kernel's own threads have 50 and more.
const priority = 10

// Realtime has the kernel run this process before all that is not urgent, and keep
// it in memory. The error says what it does not allow, and what mends that.
func Realtime() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority}
	// A thread that is made meanwhile has its maker's policy: go on until there is no
	// other one.
	var done []int
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		before := len(done)
		for _, t := range tasks {
			id, err := strconv.Atoi(t.Name())
			if err != nil || slices.Contains(done, id) {
				continue
			}
			if err := unix.SchedSetAttr(id, &attr, 0); err != nil && err != unix.ESRCH {
				return fmt.Errorf("no real-time priority (%w): a busy board may end a lease late; run as root, or with LimitRTPRIO=%d under systemd", err, priority)
			}
			done = append(done, id)
		}
		if len(done) == before {
			break
		}
	}
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		return fmt.Errorf("its memory cannot be locked (%w): a board that swaps may end a lease late; run as root, or with LimitMEMLOCK=infinity under systemd", err)
	}
	return nil
}
