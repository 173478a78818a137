package host

import (
	"context"
	"os"
	"time"

	"agentsite/device"

	"golang.org/x/sys/unix"
)

// waiter returns a function that waits until the kernel tells a change of one of these files of sysfs (sysfs_notify),
// as rpi_volt does of its alarm, until a time is over or ctx ends. end releases what it uses.
func waiter(ctx context.Context, files []*os.File) (wait func(time.Duration), end func()) {
	read, write, err := os.Pipe()
	if err != nil {
		return func(d time.Duration) { device.Sleep(ctx, d) }, func() {}
	}
	stop := context.AfterFunc(ctx, func() { write.Close() })
	fds := []unix.PollFd{{Fd: int32(read.Fd())}} // POLLHUP comes unasked
	for _, f := range files {
		fds = append(fds, unix.PollFd{Fd: int32(f.Fd()), Events: unix.POLLPRI})
	}
	wait = func(d time.Duration) {
		if _, err := unix.Poll(fds, int(d/time.Millisecond)); err != nil && err != unix.EINTR {
			device.Sleep(ctx, d)
		}
		device.Sleep(ctx, supplyPause)
	}
	return wait, func() { stop(); write.Close(); read.Close() }
}
