package kernel

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unsafe"

	"agentsite/device"

	"golang.org/x/sys/unix"
)

// timeval is the size of the time at the start of an input event. It is two longs of the program,
// also for a 32-bit program on a 64-bit kernel.
const timeval = int(unsafe.Sizeof(syscall.Timeval{}))

// follow calls each for every event of the file, until ctx ends. An unplugged device or a
// missing permission is an Offline fault.
func (f feed) follow(ctx context.Context, each func([]byte)) error {
	file, err := os.OpenFile(f.root.Path(f.path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return device.Faultf(device.Offline, "no permission to read %s; add the site's user to the group %s: %w", f.path, f.group, err)
	case err != nil:
		return device.Faultf(device.Offline, "%s cannot be opened: %w", f.path, err)
	}
	defer file.Close()
	if f.begin != nil {
		if err := f.begin(file); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() {
		if file.SetReadDeadline(time.Unix(1, 0)) != nil {
			file.Close() // the file does not support deadlines
		}
	})
	defer stop()
	err = readEvents(file, f.size, each)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return device.Faultf(device.Offline, "%s is disconnected; plug it in again: %w", f.model, err)
}

// readEvents calls each for every event of that size, until reading fails.
func readEvents(f *os.File, size int, each func([]byte)) error {
	b := make([]byte, 32*size)
	have := 0
	for {
		n, err := f.Read(b[have:])
		if err != nil {
			return err
		}
		have += n
		done := 0
		for ; have-done >= size; done += size {
			each(b[done : done+size])
		}
		have = copy(b, b[done:have])
	}
}

// setScancodeMode makes the kernel return decoded setScancodeMode through this open file
// (Documentation/userspace-api/media/rc/lirc-set-rec-mode.rst).
func setScancodeMode(f *os.File) error {
	const (
		setRecMode   = 0x40046912 // LIRC_SET_REC_MODE
		modeScancode = 8          // LIRC_MODE_SCANCODE
	)
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	lost := raw.Control(func(fd uintptr) { err = unix.IoctlSetPointerInt(int(fd), setRecMode, modeScancode) })
	if err = errors.Join(lost, err); err != nil {
		return device.Faultf(device.Offline, "%s does not decode remote controls; use a receiver and a kernel of at least version 4.16: %w", f.Name(), err)
	}
	return nil
}
