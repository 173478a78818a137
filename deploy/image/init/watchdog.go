//go:build linux

package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// boardTimeout is the longest timeout of a Raspberry Pi's watchdog, in whole seconds.
const boardTimeout = 15

// feedWatchdog starts the board's watchdog. From then on the board restarts when the kernel or
// the init process hangs, with the last confirmed version. The file is never closed.
func feedWatchdog(device string) {
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.WDIOC_SETTIMEOUT, boardTimeout)
	}
	if err != nil {
		logf("the hardware watchdog is not active: %v", err)
		return
	}
	logf("the hardware watchdog is active with a timeout of %d s", boardTimeout)
	go func() {
		for {
			f.Write([]byte{0})
			time.Sleep(boardTimeout * time.Second / 3)
		}
	}()
}
