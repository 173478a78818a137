package boardtest

import (
	"context"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"agentsite/device/board"
)

// Chip is a GPIO controller of a test. It simulates the levels at its pins, those of released
// lines, and errors. Safe for concurrent use.
type Chip struct {
	name, label string

	mu     sync.Mutex
	gone   bool
	forget bool
	pins   []pin
	react  func(offset int, level bool, drive func(offset int, level bool))
}

type pin struct {
	board.LineInfo
	by       *lines // the request that holds the line
	level    bool   // at the pin
	outside  *bool  // what the wiring makes of it while it is an input
	stuck    bool
	fail     error
	changes  []Change
	reported bool        // the last level that counted
	settle   *time.Timer // runs while a new level has not lasted yet
}

const mostChanges = 10_000

// Change is a new level at a pin.
type Change struct {
	At    time.Time
	Level bool
}

// NewChip makes a chip, such as "gpiochip0" with the label "pinctrl-bcm2835",
// with lines of these names. All are unused low inputs.
func NewChip(name, label string, lines ...string) *Chip {
	c := &Chip{name: name, label: label, pins: make([]pin, len(lines))}
	for i, name := range lines {
		c.pins[i].Name = name
	}
	return c
}

// Header is a chip with the 28 lines of a Raspberry Pi's header.
func Header() *Chip {
	return NewChip("gpiochip0", "pinctrl-bcm2835", make([]string, 28)...)
}

// Level returns the level at the pin.
func (c *Chip) Level(offset int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pins[offset].level
}

// Driven reports whether the pin is requested as an output.
func (c *Chip) Driven(offset int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := c.pins[offset].by
	return by != nil && by.config.Output
}

// Changes are the last levels that the pin has had, up to ten thousand.
func (c *Chip) Changes(offset int) []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.pins[offset].changes)
}

// Drive is the wiring's level at a pin. It shows while the pin is an input.
func (c *Chip) Drive(offset int, level bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drive(offset, level)
}

func (c *Chip) drive(offset int, level bool) {
	c.pins[offset].outside = &level
	c.update(offset)
}

// React makes a part of the wiring: do is called with each new level at a pin, at
// once. It may use drive, which is Drive, and no method of the chip.
func (c *Chip) React(do func(offset int, level bool, drive func(offset int, level bool))) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.react = do
}

// Take marks the pin as used by another consumer; "" releases it.
func (c *Chip) Take(offset int, consumer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins[offset].Used, c.pins[offset].Consumer = consumer != "", consumer
}

// Fail makes whatever is done with the pin fail, until it is called with nil.
func (c *Chip) Fail(offset int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins[offset].fail = err
	if by := c.pins[offset].by; by != nil {
		by.ring()
	}
}

// Stick keeps the pin at a level, whatever drives it.
func (c *Chip) Stick(offset int, level bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(offset, level)
	c.pins[offset].stuck = true
}

// Forget makes released outputs return to inputs. Without it they keep their
// level, as with the kernels of the Raspberry Pi.
func (c *Chip) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget = true
}

// Unplug takes the chip away, and with it all that was requested.
func (c *Chip) Unplug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for i := range c.pins {
		if by := c.pins[i].by; by != nil {
			by.end(syscall.ENODEV)
		}
		c.release(i)
	}
}

// Plug brings the chip back, with nothing requested.
func (c *Chip) Plug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = false
}

// update computes the level at a pin. mu is held here and in all functions below.
func (c *Chip) update(offset int) {
	p := &c.pins[offset]
	level := p.level
	switch {
	case p.by != nil && p.by.config.Output:
		if level = p.by.values>>p.by.index(offset)&1 != 0 != p.by.config.ActiveLow; releases(p.by.config, level) && p.outside != nil {
			level = *p.outside
		}
	case p.outside != nil:
		level = *p.outside
	case p.by != nil && p.by.config.Pull == board.PullUp:
		level = true
	case p.by != nil && p.by.config.Pull == board.PullDown:
		level = false
	}
	c.set(offset, level)
}

// releases reports whether an output that is to have this level does not drive it.
func releases(c board.LineConfig, level bool) bool {
	return c.Drive == board.OpenDrain && level || c.Drive == board.OpenSource && !level
}

func (c *Chip) set(offset int, level bool) {
	p := &c.pins[offset]
	if p.stuck || level == p.level {
		return
	}
	p.level = level
	p.changes = append(p.changes, Change{time.Now(), level})
	if len(p.changes) > mostChanges {
		p.changes = p.changes[1:]
	}
	if c.react != nil {
		defer c.react(offset, level, c.drive)
	}
	if p.settle != nil {
		p.settle.Stop()
	}
	switch {
	case p.by == nil || p.by.config.Output:
	case p.by.config.Debounce == 0:
		c.report(offset)
	default:
		p.settle = time.AfterFunc(p.by.config.Debounce, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.report(offset)
		})
	}
}

// report makes an edge of a level that has lasted.
func (c *Chip) report(offset int) {
	p := &c.pins[offset]
	if p.by == nil || p.reported == p.level {
		return
	}
	p.reported = p.level
	if p.by.config.Edges {
		now := time.Now()
		p.by.add(board.Edge{Line: p.by.index(offset), Active: p.level != p.by.config.ActiveLow, At: now, Clock: time.Duration(now.UnixNano())})
	}
}

func (c *Chip) release(offset int) {
	p := &c.pins[offset]
	p.by, p.Used, p.Consumer = nil, false, ""
	if c.forget {
		if p.outside == nil {
			p.outside = new(bool)
		}
		c.update(offset)
	}
}

// chips is a board.GPIO.
type chips []*Chip

func (all chips) Chips() ([]board.Chip, error) {
	var found []board.Chip
	for _, c := range all {
		c.mu.Lock()
		if !c.gone {
			one := board.Chip{Name: c.name, Label: c.label}
			for _, p := range c.pins {
				one.Lines = append(one.Lines, p.LineInfo)
			}
			found = append(found, one)
		}
		c.mu.Unlock()
	}
	return found, nil
}

func (chips) PrepareThread() func(time.Duration) { return time.Sleep }

func (all chips) Request(name string, offsets []int, config board.LineConfig) (board.Lines, error) {
	i := slices.IndexFunc(all, func(c *Chip) bool { return c.name == name })
	c := all[i]
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &lines{chip: c, offsets: slices.Clone(offsets), wake: make(chan struct{}, 1)}
	for _, o := range offsets {
		switch p := c.pins[o]; {
		case c.gone:
			return nil, syscall.ENODEV
		case p.fail != nil:
			return nil, p.fail
		case p.Used:
			return nil, syscall.EBUSY
		}
	}
	for _, o := range offsets {
		c.pins[o].by, c.pins[o].Used, c.pins[o].Consumer = l, true, config.Consumer
	}
	l.setUp(config)
	return l, nil
}

// lines are one request. Its chip's mu holds for all of it.
type lines struct {
	chip    *Chip
	offsets []int
	config  board.LineConfig
	values  uint64
	ended   error
	edges   []board.Edge
	lost    bool
	wake    chan struct{} // there are edges, or the end
}

func (l *lines) index(offset int) int { return slices.Index(l.offsets, offset) }

func (l *lines) setUp(config board.LineConfig) {
	l.config, l.values = config, config.Values
	for _, o := range l.offsets {
		l.chip.update(o)
		l.chip.pins[o].reported = l.chip.pins[o].level
	}
}

// check is why nothing can be done with the lines.
func (l *lines) check() error {
	for _, o := range l.offsets {
		if err := l.chip.pins[o].fail; err != nil {
			return err
		}
	}
	return l.ended
}

func (l *lines) Get() (uint64, error) {
	l.chip.mu.Lock()
	defer l.chip.mu.Unlock()
	var values uint64
	for i, o := range l.offsets {
		p := l.chip.pins[o]
		level := p.level
		if l.config.Debounce > 0 {
			level = p.reported
		}
		if level != l.config.ActiveLow {
			values |= 1 << i
		}
	}
	return values, l.check()
}

func (l *lines) Set(values uint64) error {
	l.chip.mu.Lock()
	defer l.chip.mu.Unlock()
	if err := l.check(); err != nil {
		return err
	}
	if !l.config.Output {
		return syscall.EPERM
	}
	l.values = values
	for _, o := range l.offsets {
		l.chip.update(o)
	}
	return nil
}

// add keeps an edge until it is fetched. The kernel's queue is bounded too.
func (l *lines) add(e board.Edge) {
	if len(l.edges) == 64 {
		l.edges, l.lost = l.edges[1:], true
	}
	l.edges = append(l.edges, e)
	l.ring()
}

func (l *lines) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *lines) end(why error) {
	l.ended = why
	l.ring()
}

func (l *lines) Watch(ctx context.Context, emit func(board.Edge)) error {
	for {
		l.chip.mu.Lock()
		edges, ended := l.edges, l.check()
		if len(edges) > 0 {
			edges[0].Lost = l.lost
		}
		l.edges, l.lost = nil, false
		l.chip.mu.Unlock()
		for _, e := range edges {
			emit(e)
		}
		if ended != nil {
			return ended
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *lines) Close() error {
	l.chip.mu.Lock()
	defer l.chip.mu.Unlock()
	if l.ended == nil {
		for _, o := range l.offsets {
			l.chip.release(o)
		}
		l.end(os.ErrClosed)
	}
	return nil
}
