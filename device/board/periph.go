package board

import (
	"context"
	"errors"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/physic"
)

// PeriphPin is a line as the chips of periph.io/x/devices take it. It is taken for
// its owner by the first In or Out, which Close ends. Safe for concurrent use.
//
// periph's own pin (periph.io/x/host/v3/gpioioctl) is not used. Its Out makes the
// line an output before it gives it a value, so that it is low for a moment; its Read
// makes an output an input with a pull-up.
type PeriphPin struct {
	board *Board
	pin   Pin

	mu    sync.Mutex
	lines lines // nil before In and Out, and after Close
	setup setup
	edge  gpio.Edge
	err   error
}

var _ gpio.PinIO = (*PeriphPin)(nil)

// PeriphPin finds nothing yet.
func (b *Board) PeriphPin(pin Pin) *PeriphPin { return &PeriphPin{board: b, pin: pin} }

// change sets the line up, in one step from input to output and back.
func (p *PeriphPin) change(s setup) error {
	p.setup = s
	if p.lines != nil {
		return p.keep(p.lines.configure(s))
	}
	l, err := p.board.take([]Pin{p.pin}, s)
	p.lines = l
	return p.keep(err)
}

func (p *PeriphPin) keep(err error) error {
	if err == nil {
		return nil
	}
	if gone(err) && p.lines != nil {
		p.lines.close()
		p.lines = nil // the next In or Out takes it anew
	}
	err = fault(p.pin, err)
	if p.err == nil {
		p.err = err
	}
	return err
}

// Err returns the first error since the last Err: Read and most chips have no way
// to report one.
func (p *PeriphPin) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.err
	p.err = nil
	return err
}

// In makes the line an input.
func (p *PeriphPin) In(pull gpio.Pull, edge gpio.Edge) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edge = edge
	s := setup{edges: edge != gpio.NoEdge}
	switch pull {
	case gpio.PullUp:
		s.pull = PullUp
	case gpio.PullDown:
		s.pull = PullDown
	case gpio.Float:
		s.pull = PullNone
	}
	return p.change(s)
}

// Out makes the line an output, at that level from its first moment.
func (p *PeriphPin) Out(l gpio.Level) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines != nil && p.setup.output {
		return p.keep(p.lines.set(bit(bool(l))))
	}
	return p.change(setup{output: true, values: bit(bool(l))})
}

// Read is the level at the line, of an output as well; Low where that is not known.
func (p *PeriphPin) Read() gpio.Level {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines == nil {
		return gpio.Low
	}
	values, err := p.lines.get()
	if p.keep(err) != nil {
		return gpio.Low
	}
	return gpio.Level(values&1 != 0)
}

// WaitForEdge waits for one of the edges that In asked for; for ever where timeout
// is negative. Close ends it.
func (p *PeriphPin) WaitForEdge(timeout time.Duration) bool {
	p.mu.Lock()
	l, wanted := p.lines, p.edge
	p.mu.Unlock()
	if l == nil || wanted == gpio.NoEdge {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if timeout >= 0 {
		defer time.AfterFunc(timeout, cancel).Stop()
	}
	seen := false
	err := l.watch(ctx, func(e edge) {
		if wanted == gpio.BothEdges || e.Active == (wanted == gpio.RisingEdge) {
			seen = true
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		p.mu.Lock()
		p.keep(err)
		p.mu.Unlock()
	}
	return seen
}

// Close lets the line go, at whatever level it has.
func (p *PeriphPin) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines == nil {
		return nil
	}
	err := p.lines.close()
	p.lines = nil
	return err
}

// PWM is refused: pulses are made by the drivers dimmer and servo.
func (p *PeriphPin) PWM(gpio.Duty, physic.Frequency) error {
	return errors.New("a line has no PWM; use a PWM channel of the board")
}

// What is not known, and what nobody needs.
func (p *PeriphPin) Pull() gpio.Pull        { return gpio.PullNoChange }
func (p *PeriphPin) DefaultPull() gpio.Pull { return gpio.PullNoChange }
func (p *PeriphPin) Name() string           { return string(p.pin) }
func (p *PeriphPin) String() string         { return string(p.pin) }
func (p *PeriphPin) Number() int            { return -1 }
func (p *PeriphPin) Function() string       { return "" }
func (p *PeriphPin) Halt() error            { return nil }
