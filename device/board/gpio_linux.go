package board

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/warthog618/go-gpiocdev/uapi"
	"golang.org/x/sys/unix"
)

func kernelGPIO(root string) GPIO { return kernelChips{filepath.Join(root, "dev")} }

// kernelChips are the GPIO character devices, version 2 of their interface (Linux
// 5.10; Documentation/userspace-api/gpio/chardev.rst). Of go-gpiocdev only the
// ioctls are used: its own reader of edges spins when a chip is unplugged.
type kernelChips struct{ dev string }

// A chip that may not be opened is an error, because the line that is looked for
// may be on it. One that goes away while it is read is not there.
func (k kernelChips) Chips() ([]Chip, error) {
	paths, err := filepath.Glob(filepath.Join(k.dev, "gpiochip*"))
	if err != nil {
		return nil, err
	}
	var all []Chip
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeCharDevice == 0 {
			continue // some kernels have links for old numbers of chips
		}
		c, err := readChip(path)
		switch {
		case err == nil:
			all = append(all, c)
		case !Unplugged(err):
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Chip) int {
		if len(a.Name) != len(b.Name) {
			return len(a.Name) - len(b.Name)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all, nil
}

func readChip(path string) (Chip, error) {
	f, err := os.Open(path)
	if err != nil {
		return Chip{}, err
	}
	defer f.Close()
	fd := f.Fd()
	info, err := uapi.GetChipInfo(fd)
	if err != nil {
		return Chip{}, err
	}
	c := Chip{Name: filepath.Base(path), Label: uapi.BytesToString(info.Label[:])}
	for offset := range int(info.Lines) {
		l, err := uapi.GetLineInfoV2(fd, offset)
		if err != nil {
			return Chip{}, err
		}
		c.Lines = append(c.Lines, LineInfo{
			Name:     uapi.BytesToString(l.Name[:]),
			Used:     l.Flags.IsUsed(),
			Consumer: uapi.BytesToString(l.Consumer[:]),
		})
	}
	runtime.KeepAlive(f)
	return c, nil
}

// config is c as the kernel takes it, for that many lines.
func (c LineConfig) config(lines int) uapi.LineConfig {
	all := uapi.NewLineBitMask(lines)
	config := uapi.LineConfig{Flags: uapi.LineFlagV2Input}
	if c.Output {
		config.Flags = uapi.LineFlagV2Output
		config.AddAttribute(uapi.LineConfigAttribute{Attr: uapi.OutputValues(c.Values).Encode(), Mask: all})
	}
	if c.ActiveLow {
		config.Flags |= uapi.LineFlagV2ActiveLow
	}
	config.Flags |= map[Drive]uapi.LineFlagV2{OpenDrain: uapi.LineFlagV2OpenDrain, OpenSource: uapi.LineFlagV2OpenSource}[c.Drive]
	config.Flags |= map[Pull]uapi.LineFlagV2{PullUp: uapi.LineFlagV2BiasPullUp, PullDown: uapi.LineFlagV2BiasPullDown, PullNone: uapi.LineFlagV2BiasDisabled}[c.Pull]
	if c.Edges {
		config.Flags |= uapi.LineFlagV2EdgeBoth
	}
	if c.Debounce > 0 {
		config.AddAttribute(uapi.LineConfigAttribute{Attr: uapi.DebouncePeriod(c.Debounce).Encode(), Mask: all})
	}
	return config
}

func (k kernelChips) Request(chip string, offsets []int, c LineConfig) (Lines, error) {
	f, err := os.Open(filepath.Join(k.dev, chip))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := uapi.LineRequest{Lines: uint32(len(offsets)), Config: c.config(len(offsets)), EventBufferSize: 64}
	copy(r.Consumer[:len(r.Consumer)-1], c.Consumer)
	for i, offset := range offsets {
		r.Offsets[i] = uint32(offset)
	}
	if err := uapi.GetLine(f.Fd(), &r); err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(int(r.Fd), true); err != nil {
		unix.Close(int(r.Fd))
		return nil, err
	}
	file := os.NewFile(uintptr(r.Fd), chip)
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &kernelLines{file, raw, slices.Clone(offsets)}, nil
}

// kernelLines are one request. Go's poller waits for its edges, so that a chip that
// is unplugged ends a watch.
type kernelLines struct {
	file    *os.File
	raw     syscall.RawConn
	offsets []int
}

// ioctl keeps the descriptor ours while it is used, without making it block.
func (l *kernelLines) ioctl(do func(fd uintptr) error) error {
	var err error
	if lost := l.raw.Control(func(fd uintptr) { err = do(fd) }); lost != nil {
		return lost
	}
	return err
}

func (l *kernelLines) mask() uapi.LineBitmap { return uapi.NewLineBitMask(len(l.offsets)) }

func (l *kernelLines) Get() (uint64, error) {
	v := uapi.LineValues{Mask: l.mask()}
	err := l.ioctl(func(fd uintptr) error { return uapi.GetLineValuesV2(fd, &v) })
	return uint64(v.Bits), err
}

func (l *kernelLines) Set(values uint64) error {
	v := uapi.LineValues{Mask: l.mask(), Bits: uapi.LineBitmap(values)}
	return l.ioctl(func(fd uintptr) error { return uapi.SetLineValuesV2(fd, v) })
}

func (l *kernelLines) Close() error { return l.file.Close() }

func (l *kernelLines) Watch(ctx context.Context, emit func(Edge)) error {
	if err := l.file.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		l.file.SetReadDeadline(time.Unix(1, 0))
		close(stopped)
	})
	defer func() {
		if !stop() {
			<-stopped // not into the next watch
		}
	}()
	const size = int(unsafe.Sizeof(uapi.LineEvent{}))
	var events [16]uapi.LineEvent
	b := unsafe.Slice((*byte)(unsafe.Pointer(&events)), size*len(events))
	seq := uint32(0)
	for {
		n, err := l.file.Read(b) // whole events
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		now, clock := time.Now(), monotonic()
		for _, e := range events[:n/size] {
			emit(Edge{
				Line:   slices.Index(l.offsets, int(e.Offset)),
				Active: e.ID == uapi.LineEventRisingEdge,
				At:     now.Add(-(clock - time.Duration(e.Timestamp))),
				Clock:  time.Duration(e.Timestamp),
				Lost:   seq != 0 && e.Seqno != seq+1,
			})
			seq = e.Seqno
		}
	}
}

// monotonic is the clock of the kernel's edges.
func monotonic() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
