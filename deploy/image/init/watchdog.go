//go:build linux

package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// dogPatience is the most that a Raspberry Pi's watchdog can wait, in whole seconds.
const dogPatience = 15

// feedWatchdog starts the board's watchdog. From then on a kernel, or a first process, that
// hangs has the board start again, with the version that was proven last. The file is never
// closed.
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
