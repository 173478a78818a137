package gpio

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"
)

// inputLines are lines that are requested when they are first needed, and again after
// their chip was unplugged.
type inputLines struct {
	board   *board.Board
	pins    []board.Pin
	options board.InputOptions

	mu     device.Mutex // guards the fields below
	line   *board.Line
	closed bool
}

func newInputLines(b *board.Board, o board.InputOptions, pins ...board.Pin) *inputLines {
	return &inputLines{board: b, pins: pins, options: o, mu: device.NewMutex()}
}

// use returns the requested lines, which are valid until close or drop.
func (l *inputLines) use(ctx context.Context) (*board.Line, error) {
	if err := l.mu.LockContext(ctx); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if l.closed {
		return nil, device.Faultf(device.Offline, "%s cannot be read: its device is closed", l.pins[0])
	}
	if l.line == nil {
		line, err := l.board.Input(l.pins[0], l.options, l.pins[1:]...)
		if err != nil {
			return nil, err
		}
		l.line = line
	}
	return l.line, nil
}

// drop releases the lines after an error of an unplugged chip.
func (l *inputLines) drop(line *board.Line, err error) {
	if !board.Unplugged(err) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line == line {
		line.Close()
		l.line = nil
	}
}

func (l *inputLines) get(ctx context.Context) (uint64, error) {
	line, err := l.use(ctx)
	if err != nil {
		return 0, err
	}
	values, err := line.Values()
	l.drop(line, err)
	return values, err
}

func (l *inputLines) watch(ctx context.Context, since time.Time, emit func(board.Edge)) error {
	line, err := l.use(ctx)
	if err != nil {
		return err
	}
	err = line.Watch(ctx, since, emit)
	l.drop(line, err)
	return err
}

func (l *inputLines) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.line == nil {
		l.closed = true
		return nil
	}
	l.closed = true
	return l.line.Close()
}
