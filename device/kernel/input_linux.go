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
)

// timeval is the size of the time before each event: two longs, in 32-bit programs
// on a 64-bit kernel as well.
const timeval = int(unsafe.Sizeof(syscall.Timeval{}))

// Watch opens the device and emits its events. A device that is unplugged is an
// Offline fault; the next Watch finds it when it is back. The kernel gives each
// Watch all the events.
func (in *input) Watch(ctx context.Context, emit func(device.Reading)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name, err := in.config.find(new(reader))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(in.config.root.at("dev/input", name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return device.Faultf(device.Offline, "/dev/input/%s may not be read; add the node's user to the group input: %w", name, err)
	case err != nil:
		return device.Faultf(device.Offline, "/dev/input/%s cannot be opened: %w", name, err)
	}
	defer f.Close()
	stop := context.AfterFunc(ctx, func() {
		if f.SetReadDeadline(time.Unix(1, 0)) != nil {
			f.Close() // a file that knows no deadlines
		}
	})
	defer stop()
	err = in.listen(f, emit)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return device.Faultf(device.Offline, "%s is gone; plug it in again: %w", in.desc.Model, err)
}

// listen reads events until an error. The kernel gives whole events, up to as many
// as there is room for.
func (in *input) listen(f *os.File, emit func(device.Reading)) error {
	const size = timeval + 8
	var b [32 * size]byte
	have := 0
	for {
		n, err := f.Read(b[have:])
		if err != nil {
			return err
		}
		have += n
		done := 0
		for ; have-done >= size; done += size {
			in.emit(decode(b[done:], timeval), emit)
		}
		have = copy(b[:], b[done:have])
	}
}
