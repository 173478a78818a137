package site

import (
	"time"

	"golang.org/x/sys/unix"
)

// systemClock is the system's clock, and whether something synchronises it, as the
// kernel has it from whoever does.
func systemClock() (t time.Time, synchronised bool) {
	var x unix.Timex
	state, err := unix.Adjtimex(&x)
	return time.Now(), err == nil && state != unix.TIME_ERROR && x.Status&unix.STA_UNSYNC == 0
}
