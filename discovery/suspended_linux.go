package discovery

import (
	"time"

	"golang.org/x/sys/unix"
)

// Suspended returns how long the machine has been suspended since it booted, or 0 if the system
// does not tell. During suspension, timers and time.Since stand still.
func Suspended() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano()).Truncate(time.Second)
}
