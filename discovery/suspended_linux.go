package discovery

import (
	"time"

	"golang.org/x/sys/unix"
)

// Slept is for how long the machine has been suspended since it was started, in which time
// timers stand still and time.Since counts nothing.
func Suspended() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano()).Truncate(time.Second)
}
