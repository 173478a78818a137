//go:build linux

package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// dogPatience is the most that a Raspberry Pi's watchdog can wait, in whole seconds.
const dogPatience = 15

// feedWatchdog starts the board's watchdog. From then on the board restarts when the kernel or
// the init process hangs, with the last confirmed version. The file is never closed.
func feedWatchdog(device string) {
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.WDIOC_SETTIMEOUT, dogPatience)
	}
	if err != nil {
		say("no watchdog looks after this board: %v", err)
		return
	}
	say("the watchdog restarts the board when it hangs for %d s", dogPatience)
	go func() {
		for {
			f.Write([]byte{0})
			time.Sleep(dogPatience * time.Second / 3)
		}
	}()
}
