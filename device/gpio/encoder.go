package gpio

import (
	"context"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Encoder is the YAML of the driver "encoder": a rotary encoder with two switches,
// such as a KY-040. Its push button is a button of its own.
type Encoder struct {
	A        board.Pin     `json:"pin_a" jsonschema:"the line of output A (CLK)"`
	B        board.Pin     `json:"pin_b" jsonschema:"the line of output B (DT), on the same chip"`
	Pull     board.Pull    `json:"pull,omitempty" jsonschema:"the resistors inside the board: up, down or none"`
	Debounce time.Duration `json:"debounce,omitempty" jsonschema:"a level counts once it has lasted that long, at most 100ms"`
	PerStep  int           `json:"per_step,omitempty" jsonschema:"changes of the two lines for each step that one can feel: 1, 2 or 4"`

	board *board.Board
}

// Validate finds mistakes without hardware.
func (c *Encoder) Validate() error {
	switch {
	case c.A == c.B:
		return device.Faultf(device.Invalid, "pin_b: %s is pin_a; an encoder has two outputs", c.B)
	case c.Debounce < 0 || c.Debounce > 100*time.Millisecond:
		return device.Faultf(device.Invalid, "debounce: %v is not 0 to 100ms", c.Debounce)
	case c.PerStep != 1 && c.PerStep != 2 && c.PerStep != 4:
		return device.Faultf(device.Invalid, "per_step: %d is not 1, 2 or 4", c.PerStep)
	}
	return nil
}

// Describe needs no hardware.
func (c *Encoder) Describe() device.Description {
	return device.Description{Model: "encoder on " + string(c.A) + " and " + string(c.B), Points: []device.Point{
		{Name: "position", Kind: device.KindMeasurement, Description: "steps clockwise since the start"},
		event("turned", "1 for a step clockwise, -1 for one back"),
	}}
}

// Resources returns both lines.
func (c *Encoder) Resources() []driver.Resource {
	return []driver.Resource{c.A.Resource(), c.B.Resource()}
}

// Open finds the lines. The first watch requests them.
func (c *Encoder) Open(context.Context) (device.Device, error) {
	if err := c.board.CheckFree(c.A, c.B); err != nil {
		return nil, err
	}
	options := board.InputOptions{Pull: c.Pull, Edges: true, Debounce: c.Debounce}
	return &encoder{desc: c.Describe(), perStep: c.PerStep, held: newInputLines(c.board, options, c.A, c.B)}, nil
}

type encoder struct {
	desc    device.Description
	perStep int
	held    *inputLines

	mu    sync.Mutex
	count int // changes of the lines since the start, with a sign
}

func (e *encoder) Describe() device.Description { return e.desc }

// Sample returns the position, as far as it was watched.
func (e *encoder) Sample(ctx context.Context) ([]device.Reading, error) {
	if _, err := e.held.get(ctx); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return []device.Reading{e.position(time.Now())}, nil
}

// position returns the reading of the position; the caller holds mu.
func (e *encoder) position(at time.Time) device.Reading {
	return device.Reading{Point: "position", Value: device.Number(float64(e.step())), Quality: device.Good, At: at}
}

func (e *encoder) step() int {
	if e.count < 0 {
		return -((-e.count + e.perStep/2) / e.perStep)
	}
	return (e.count + e.perStep/2) / e.perStep
}

// turns is the direction from one pair of levels (B, A) to the next. Two changes at once
// have none: it may have been either way.
var turns = [4][4]int{
	0b00: {0b01: 1, 0b10: -1},
	0b01: {0b11: 1, 0b00: -1},
	0b11: {0b10: 1, 0b01: -1},
	0b10: {0b00: 1, 0b11: -1},
}

// Watch counts the turns and emits each step and the new position. Where turns came
// faster than they could be read, the event is Bad once and the position has lost
// them.
func (e *encoder) Watch(ctx context.Context, emit func(device.Reading)) error {
	levels, err := e.held.get(ctx)
	if err != nil {
		return err
	}
	return e.held.watch(ctx, time.Now(), func(change board.Edge) {
		if change.Lost {
			emit(lostEdges("turned", change.At))
		}
		next := levels &^ (1 << change.Line)
		if change.Active {
			next |= 1 << change.Line
		}
		e.mu.Lock()
		before := e.step()
		e.count += turns[levels][next]
		steps, position := e.step()-before, e.position(change.At)
		e.mu.Unlock()
		levels = next
		if steps != 0 {
			emit(device.Reading{Point: "turned", Value: device.Number(float64(steps)), Quality: device.Good, At: change.At})
			emit(position)
		}
	})
}

// Close releases the lines.
func (e *encoder) Close() error { return e.held.close() }
