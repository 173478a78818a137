package board

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"agentsite/device"
)

// Drive is the output mode of a line; "" is push-pull.
type Drive string

const (
	OpenDrain  Drive = "open-drain"  // drives low, floats for high
	OpenSource Drive = "open-source" // drives high, floats for low
)

// UnmarshalText accepts push-pull, open-drain and open-source.
func (d *Drive) UnmarshalText(text []byte) error {
	return choose(d, text, map[string]Drive{"push-pull": "", "open-drain": OpenDrain, "open-source": OpenSource}, "push-pull, open-drain or open-source")
}

// Pull is the resistor inside the board at an input; "" leaves it as it is.
type Pull string

const (
	PullUp   Pull = "up"
	PullDown Pull = "down"
	PullNone Pull = "none"
)

// UnmarshalText accepts up, down and none.
func (p *Pull) UnmarshalText(text []byte) error {
	return choose(p, text, map[string]Pull{"up": PullUp, "down": PullDown, "none": PullNone}, "up, down or none")
}

func choose[T ~string](to *T, text []byte, words map[string]T, list string) error {
	word, ok := words[string(text)]
	if !ok {
		return fmt.Errorf("takes %s, not %.40q", list, text)
	}
	*to = word
	return nil
}

// OutputOptions configure an output. Values are logical: with ActiveLow, true
// is a low level.
type OutputOptions struct {
	ActiveLow bool
	Initial   bool // from the first moment on
	Safe      bool // the value that Close leaves
	Drive     Drive
}

// InputOptions configure an input.
type InputOptions struct {
	ActiveLow bool
	Pull      Pull
	Edges     bool          // report changes to Watch
	Debounce  time.Duration // a level counts once it has lasted that long; needs Linux 5.10
}

// Edge is a change of an input.
type Edge struct {
	Line   int           // in the order of the request
	Active bool          // the new value, after ActiveLow
	At     time.Time     // when the kernel saw it
	Clock  time.Duration // the same by the kernel's monotonic clock, to measure intervals
	Lost   bool          // the kernel dropped edges before this one, because they were not read in time
}

// Line is one line of the board, requested for its owner alone. Its methods are safe for concurrent
// use. They block no longer than the kernel's driver: not at all on a line of the processor, for a
// transfer on a line of an adapter. Errors are faults: Offline when the line's chip is unplugged.
type Line struct {
	pin      Pin // the first, for messages
	output   bool
	safe     bool
	noEdges  bool // its chip reports no edges
	watching device.Mutex

	mu    sync.RWMutex // holds off Close
	lines Lines        // one, or the two of an encoder; nil once closed
}

func newLine(pin Pin, l Lines) *Line {
	return &Line{pin: pin, watching: device.NewMutex(), lines: l}
}

// Output requests a line and drives it to o.Initial in the same step: it never has any
// other value in between.
func (b *Board) Output(pin Pin, o OutputOptions) (*Line, error) {
	line, err := b.request([]Pin{pin}, LineConfig{Output: true, Values: bit(o.Initial), ActiveLow: o.ActiveLow, Drive: o.Drive})
	if err != nil {
		return nil, err
	}
	line.output, line.safe = true, o.Safe
	return line, nil
}

// Input requests a line for reading, and others of the same chip with it, so that
// their edges keep their order. A chip that reports no edges, as some adapters on USB
// do, is used without them: only Watch fails then.
func (b *Board) Input(pin Pin, i InputOptions, others ...Pin) (*Line, error) {
	line, err := b.request(append([]Pin{pin}, others...), LineConfig{ActiveLow: i.ActiveLow, Pull: i.Pull, Edges: i.Edges, Debounce: i.Debounce})
	if Unplugged(err) && (i.Edges || i.Debounce > 0) { // the kernel's error for a chip without interrupts
		if plain, again := b.Input(pin, InputOptions{ActiveLow: i.ActiveLow, Pull: i.Pull}, others...); again == nil {
			plain.noEdges = true
			return plain, nil
		}
	}
	return line, err
}

func bit(on bool) uint64 {
	if on {
		return 1
	}
	return 0
}

// Get reads the level of the line, also of an output. On the processor's own lines that is the
// level at the pin, on some adapters the value written.
func (l *Line) Get() (bool, error) {
	values, err := l.Values()
	return values&1 != 0, err
}

// Values reads all lines of an Input, one bit each in the order of the request.
func (l *Line) Values() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.lines == nil {
		return 0, l.closed()
	}
	values, err := l.lines.Get()
	return values, fault(l.pin, err)
}

// Set drives an output.
func (l *Line) Set(on bool) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.lines == nil {
		return l.closed()
	}
	return fault(l.pin, l.lines.Set(bit(on)))
}

// ReportsEdges reports whether Watch can work.
func (l *Line) ReportsEdges() bool { return !l.noEdges }

// Watch emits the changes, from since on, of an input that was requested with Edges. It blocks
// until ctx ends, an error occurs or Close is called, and returns the error. A second Watch waits
// for the first.
func (l *Line) Watch(ctx context.Context, since time.Time, emit func(Edge)) error {
	if err := l.watching.LockContext(ctx); err != nil {
		return err
	}
	defer l.watching.Unlock()
	l.mu.RLock()
	lines := l.lines
	l.mu.RUnlock()
	switch {
	case lines == nil:
		return l.closed()
	case l.noEdges:
		return device.Faultf(device.Offline, "the chip with %s reports no changes; it is only read from time to time", l.pin)
	}
	err := lines.Watch(ctx, func(e Edge) {
		if !e.At.Before(since) {
			emit(e)
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fault(l.pin, err)
}

// Close drives an output to its safe value and releases the line. The kernels of
// the Raspberry Pi keep the level of a released output, unless strict_gpiod is set
// (persist_gpio_outputs in pinctrl-bcm2835.c and pinctrl-rp1.c). Others return the line to an
// input, whose level depends on the wiring. A second Close does nothing.
func (l *Line) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == nil {
		return nil
	}
	var err error
	if l.output {
		err = l.lines.Set(bit(l.safe))
	}
	err = errors.Join(err, l.lines.Close())
	l.lines = nil
	return fault(l.pin, err)
}

func (l *Line) closed() error {
	return fault(l.pin, os.ErrClosed)
}

// fault returns the fault that an error of the kernel is for a line.
func fault(pin Pin, err error) error {
	var f *device.Fault
	switch {
	case err == nil, errors.As(err, &f):
		return err
	case errors.Is(err, os.ErrClosed):
		return device.Faultf(device.Offline, "%s is closed", pin)
	case errors.Is(err, syscall.EBUSY):
		return device.Faultf(device.Busy, "%s is in use by another program or by the kernel; end that, or choose another line: %w", pin, err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return device.Faultf(device.Denied, "%s cannot be used without permission; add the user to the group gpio and start again: %w", pin, err)
	case Unplugged(err):
		return device.Faultf(device.Offline, "the chip with %s is disconnected; plug it in again: %w", pin, err)
	case errors.Is(err, syscall.EINVAL):
		return device.Faultf(device.Invalid, "%s does not support these settings; its chip may have no pull, debounce or drive, or the kernel is older than 5.10: %w", pin, err)
	}
	return device.Faultf(device.Offline, "%s does not respond; check its chip and wiring: %w", pin, err)
}

// Unplugged reports whether err is that of a line whose chip was unplugged.
func Unplugged(err error) bool {
	return errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ENOENT)
}
