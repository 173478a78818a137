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

// timeval is the size of the time before each input event: two longs, in 32-bit
// programs on a 64-bit kernel as well.
const timeval = int(unsafe.Sizeof(syscall.Timeval{}))

// follow calls each for every event that the kernel writes into f, until ctx ends. A device
// that is gone, or may not be opened, is an Offline fault.
func (f feed) follow(ctx context.Context, each func([]byte)) error {
	file, err := os.OpenFile(f.root.Path(f.path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return device.Faultf(device.Offline, "%s may not be read; add the node's user to the group %s: %w", f.path, f.group, err)
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
			file.Close() // a file that knows no deadlines
		}
	})
	defer stop()
	err = pieces(file, f.size, each)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return device.Faultf(device.Offline, "%s is gone; plug it in again: %w", f.model, err)
}

// pieces reads until an error. The kernel gives whole events, up to as many as there
// is room for.
func pieces(f *os.File, size int, each func([]byte)) error {
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

// scancodes makes the kernel decode what a receiver of infrared light sees, for this file
// alone (Documentation/userspace-api/media/rc/lirc-set-rec-mode.rst).
func scancodes(f *os.File) error {
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
		return device.Faultf(device.Offline, "%s does not decode remote controls; is it a transmitter, or a kernel before 4.16? %w", f.Name(), err)
	}
	return nil
}
