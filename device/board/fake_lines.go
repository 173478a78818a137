package board

import (
	"context"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// FakeLines is a board of a test that has these GPIO chips and nothing else.
func FakeLines(chips ...*FakeChip) *Board {
	b := New()
	b.root = "/nowhere"
	return b.WithLines(chips...)
}

// WithLines gives the board these GPIO chips in place of the kernel's.
func (b *Board) WithLines(chips ...*FakeChip) *Board {
	b.chips = fakeChips(chips)
	return b
}

// FakeChip is a GPIO controller of a test. It knows the levels at its pins, what
// becomes of released ones, and all that can go wrong. Safe for concurrent use.
type FakeChip struct {
	name, label string

	mu     sync.Mutex
	gone   bool
	forget bool
	pins   []fakePin
	react  func(offset int, level bool, drive func(offset int, level bool))
}

type fakePin struct {
	lineInfo
	by       *fakeLines // who has requested it
	level    bool       // at the pin
	outside  *bool      // what the wiring makes of it while it is an input
	stuck    bool
	fail     error
	changes  []FakeChange
	reported bool        // the last level that counted
	settle   *time.Timer // runs while a new level has not lasted yet
}

const mostChanges = 10_000

// FakeChange is a new level at a pin.
type FakeChange struct {
	At    time.Time
	Level bool
}

// NewFakeChip makes a chip, such as "gpiochip0" with the label "pinctrl-bcm2835",
// with lines of these names. All are low inputs that nobody uses.
func NewFakeChip(name, label string, lines ...string) *FakeChip {
	c := &FakeChip{name: name, label: label, pins: make([]fakePin, len(lines))}
	for i, name := range lines {
		c.pins[i].name = name
	}
	return c
}

// FakeHeader is a chip with the 28 lines of a Raspberry Pi's header.
func FakeHeader() *FakeChip {
	return NewFakeChip("gpiochip0", "pinctrl-bcm2835", make([]string, 28)...)
}

// Level is what is at the pin.
func (c *FakeChip) Level(offset int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pins[offset].level
}

// Driven reports whether somebody has requested the pin as an output.
func (c *FakeChip) Driven(offset int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := c.pins[offset].by
	return by != nil && by.setup.output
}

// Changes are the last levels that the pin has had, up to ten thousand.
func (c *FakeChip) Changes(offset int) []FakeChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.pins[offset].changes)
}

// Drive is the wiring's level at a pin. It shows while the pin is an input.
func (c *FakeChip) Drive(offset int, level bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drive(offset, level)
}

func (c *FakeChip) drive(offset int, level bool) {
	c.pins[offset].outside = &level
	c.update(offset)
}

// React makes a part of the wiring: do is called with each new level at a pin, at
// once. It may use drive, which is Drive, and no method of the chip.
func (c *FakeChip) React(do func(offset int, level bool, drive func(offset int, level bool))) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.react = do
}

// Take lets somebody else use the pin; nobody, where consumer is "".
func (c *FakeChip) Take(offset int, consumer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins[offset].used, c.pins[offset].consumer = consumer != "", consumer
}

// Fail makes whatever is done with the pin fail, until it is called with nil.
func (c *FakeChip) Fail(offset int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins[offset].fail = err
	if by := c.pins[offset].by; by != nil {
		by.ring()
	}
}

// Stick keeps the pin at a level, whoever drives it.
func (c *FakeChip) Stick(offset int, level bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(offset, level)
	c.pins[offset].stuck = true
}

// Forget makes released outputs return to inputs. Without it they keep their
// level, as with the kernels of the Raspberry Pi.
func (c *FakeChip) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget = true
}

// Unplug takes the chip away, and with it all that was requested.
func (c *FakeChip) Unplug() {
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
func (c *FakeChip) Plug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = false
}

// update makes the level at a pin what it has to be. mu is held, as in all below.
func (c *FakeChip) update(offset int) {
	p := &c.pins[offset]
	level := p.level
	switch {
	case p.by != nil && p.by.setup.output:
		if level = p.by.values>>p.by.index(offset)&1 != 0 != p.by.setup.activeLow; p.by.setup.letsGo(level) && p.outside != nil {
			level = *p.outside
		}
	case p.outside != nil:
		level = *p.outside
	case p.by != nil && p.by.setup.pull == PullUp:
		level = true
	case p.by != nil && p.by.setup.pull == PullDown:
		level = false
	}
	c.set(offset, level)
}

// letsGo reports whether an output that is to have this level does not drive it.
func (s setup) letsGo(level bool) bool {
	return s.drive == OpenDrain && level || s.drive == OpenSource && !level
}

func (c *FakeChip) set(offset int, level bool) {
	p := &c.pins[offset]
	if p.stuck || level == p.level {
		return
	}
	p.level = level
	p.changes = append(p.changes, FakeChange{time.Now(), level})
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
	case p.by == nil || p.by.setup.output:
	case p.by.setup.debounce == 0:
		c.report(offset)
	default:
		p.settle = time.AfterFunc(p.by.setup.debounce, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.report(offset)
		})
	}
}

// report makes an edge of a level that has lasted.
func (c *FakeChip) report(offset int) {
	p := &c.pins[offset]
	if p.by == nil || p.reported == p.level {
		return
	}
	p.reported = p.level
	if p.by.setup.edges {
		now := time.Now()
		p.by.add(Edge{Line: p.by.index(offset), Active: p.level != p.by.setup.activeLow, At: now, Clock: time.Duration(now.UnixNano())})
	}
}

func (c *FakeChip) release(offset int) {
	p := &c.pins[offset]
	p.by, p.used, p.consumer = nil, false, ""
	if c.forget {
		if p.outside == nil {
			p.outside = new(bool)
		}
		c.update(offset)
	}
}

type fakeChips []*FakeChip

func (all fakeChips) list() ([]chip, error) {
	var found []chip
	for _, c := range all {
		c.mu.Lock()
		if !c.gone {
			one := chip{name: c.name, label: c.label}
			for _, p := range c.pins {
				one.lines = append(one.lines, p.lineInfo)
			}
			found = append(found, one)
		}
		c.mu.Unlock()
	}
	return found, nil
}

func (fakeChips) pulses() func(time.Duration) { return time.Sleep }

func (all fakeChips) request(name string, offsets []int, s setup) (lines, error) {
	i := slices.IndexFunc(all, func(c *FakeChip) bool { return c.name == name })
	c := all[i]
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &fakeLines{chip: c, offsets: slices.Clone(offsets), wake: make(chan struct{}, 1)}
	for _, o := range offsets {
		switch p := c.pins[o]; {
		case c.gone:
			return nil, syscall.ENODEV
		case p.fail != nil:
			return nil, p.fail
		case p.used:
			return nil, syscall.EBUSY
		}
	}
	for _, o := range offsets {
		c.pins[o].by, c.pins[o].used, c.pins[o].consumer = l, true, consumer
	}
	l.setUp(s)
	return l, nil
}

// fakeLines are one request. Its chip's mu holds for all of it.
type fakeLines struct {
	chip    *FakeChip
	offsets []int
	setup   setup
	values  uint64
	ended   error
	edges   []Edge
	lost    bool
	wake    chan struct{} // there are edges, or the end
}

func (l *fakeLines) index(offset int) int { return slices.Index(l.offsets, offset) }

func (l *fakeLines) setUp(s setup) {
	l.setup, l.values = s, s.values
	for _, o := range l.offsets {
		l.chip.update(o)
		l.chip.pins[o].reported = l.chip.pins[o].level
	}
}

// check is why nothing can be done with the lines.
func (l *fakeLines) check() error {
	for _, o := range l.offsets {
		if err := l.chip.pins[o].fail; err != nil {
			return err
		}
	}
	return l.ended
}

func (l *fakeLines) get() (uint64, error) {
	l.chip.mu.Lock()
	defer l.chip.mu.Unlock()
	var values uint64
	for i, o := range l.offsets {
		p := l.chip.pins[o]
		level := p.level
		if l.setup.debounce > 0 {
			level = p.reported
		}
		values |= bit(level != l.setup.activeLow) << i
	}
	return values, l.check()
}

func (l *fakeLines) set(values uint64) error {
	l.chip.mu.Lock()
	defer l.chip.mu.Unlock()
	if err := l.check(); err != nil {
		return err
	}
	if !l.setup.output {
		return syscall.EPERM
	}
	l.values = values
	for _, o := range l.offsets {
		l.chip.update(o)
	}
	return nil
}

// add keeps an edge until it is fetched. The kernel's queue is bounded too.
func (l *fakeLines) add(e Edge) {
	if len(l.edges) == 64 {
		l.edges, l.lost = l.edges[1:], true
	}
	l.edges = append(l.edges, e)
	l.ring()
}

func (l *fakeLines) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *fakeLines) end(why error) {
	l.ended = why
	l.ring()
}

func (l *fakeLines) watch(ctx context.Context, emit func(Edge)) error {
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

func (l *fakeLines) close() error {
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
