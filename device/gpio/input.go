package gpio

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Input is the YAML of gpio-in, button, motion, contact and stop-button: a line that is
// read.
type Input struct {
	Pin       board.Pin     `json:"pin" jsonschema:"the line, such as GPIO17, P1_11 (its position on the header) or gpiochip0/17"`
	ActiveLow bool          `json:"active_low,omitempty" jsonschema:"on where a low level counts as on, as with a button to ground"`
	Pull      board.Pull    `json:"pull,omitempty" jsonschema:"the resistor inside the board: up, down or none; left as it is when not written"`
	Debounce  time.Duration `json:"debounce,omitempty" jsonschema:"a level counts once it has lasted that long, at most 10s; the kernel waits, not this program"`

	board        *board.Board
	state, event device.Point // event has no name where there is none
	stops        bool         // the state is an emergency stop
}

func newGPIOIn(b *board.Board) driver.Config {
	return &Input{board: b, state: state("input", "the level at the line")}
}

func newButton(b *board.Board) driver.Config {
	return &Input{
		ActiveLow: true, Pull: board.PullUp, Debounce: 20 * time.Millisecond, board: b,
		state: state("pressed", "somebody holds it"), event: event("button", "true when it is pressed, false when it is released"),
	}
}

func newMotion(b *board.Board) driver.Config {
	return &Input{
		Pull: board.PullDown, Debounce: 30 * time.Millisecond, board: b,
		state: state("moving", "the sensor sees something"), event: event("motion", "true when a movement begins, false when the sensor lets go"),
	}
}

func newContact(b *board.Board) driver.Config {
	return &Input{ActiveLow: true, Pull: board.PullUp, Debounce: 20 * time.Millisecond, board: b, state: state("closed", "the magnet is there")}
}

// newStopButton is wired to open when it is pressed: a broken wire stops too.
func newStopButton(b *board.Board) driver.Config {
	return &Input{Pull: board.PullUp, Debounce: 5 * time.Millisecond, board: b, stops: true, state: state("pressed", "the emergency stop is pressed, or its wire is broken")}
}

func state(name, description string) device.Point {
	return device.Point{Name: name, Kind: device.KindState, Description: description}
}

func event(name, description string) device.Point {
	return device.Point{Name: name, Kind: device.KindEvent, Description: description}
}

// Validate finds mistakes without hardware.
func (c *Input) Validate() error {
	if c.Debounce < 0 || c.Debounce > 10*time.Second {
		return device.Faultf(device.Invalid, "debounce: %v is not 0 to 10s", c.Debounce)
	}
	return nil
}

// Describe needs no hardware.
func (c *Input) Describe() device.Description {
	d := device.Description{Model: "input " + string(c.Pin), Points: []device.Point{c.state}}
	if c.event.Name != "" {
		d.Model = c.event.Name + " on " + string(c.Pin)
		d.Points = append(d.Points, c.event)
	}
	return d
}

// Claims are the line.
func (c *Input) Claims() []driver.Claim { return []driver.Claim{c.Pin.Claim()} }

// Stops is an emergency stop's state.
func (c *Input) Stops() string {
	if c.stops {
		return c.state.Name
	}
	return ""
}

// Open finds the line. It is taken when it is first read or watched.
func (c *Input) Open(context.Context) (device.Device, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.board.CheckFree(c.Pin); err != nil {
		return nil, err
	}
	options := board.InputOptions{ActiveLow: c.ActiveLow, Pull: c.Pull, Edges: true, Debounce: c.Debounce}
	return &input{desc: c.Describe(), state: c.state.Name, event: c.event.Name, stops: c.stops, held: holding(c.board, options, c.Pin)}, nil
}

type input struct {
	desc         device.Description
	state, event string
	stops        bool
	held         *held
}

func (in *input) Describe() device.Description { return in.desc }

// Sample reads the line.
func (in *input) Sample(ctx context.Context) ([]device.Reading, error) {
	values, err := in.held.get(ctx)
	if err != nil {
		return nil, err
	}
	return []device.Reading{{Point: in.state, Value: device.Bool(values&1 != 0), Quality: device.Good, At: time.Now()}}, nil
}

// Watch emits each change, as an event and as the new state. Where changes came
// faster than they could be read, the event is Bad once. Of an emergency stop it first
// emits the state: a press before the watch began would else be told to nobody.
func (in *input) Watch(ctx context.Context, emit func(device.Reading)) error {
	since := time.Now()
	if in.stops {
		all, err := in.Sample(ctx)
		if err != nil {
			return err
		}
		emit(all[0])
	}
	return in.held.watch(ctx, since, func(e board.Edge) {
		r := device.Reading{Value: device.Bool(e.Active), Quality: device.Good, At: e.At}
		for _, point := range []string{in.event, in.state} {
			if point == "" {
				continue
			}
			r.Point = point
			if e.Lost && point == in.event {
				emit(missed(point, e.At))
			}
			emit(r)
		}
	})
}

func missed(point string, at time.Time) device.Reading {
	return device.Reading{Point: point, Quality: device.Bad, At: at, Why: "changes came faster than they could be read, and some are lost"}
}

// Close lets the line go.
func (in *input) Close() error { return in.held.close() }

// held is lines that are taken when they are first needed, and anew after their
// chip has been away.
type held struct {
	board   *board.Board
	pins    []board.Pin
	options board.InputOptions

	busy device.Turn // while the line is looked up
	// of who has it:
	line   *board.Line
	closed bool
}

func holding(b *board.Board, o board.InputOptions, pins ...board.Pin) *held {
	return &held{board: b, pins: pins, options: o, busy: device.NewTurn()}
}

// use returns the line, which lives until close or until it is dropped.
func (h *held) use(ctx context.Context) (*board.Line, error) {
	if err := h.busy.Take(ctx); err != nil {
		return nil, err
	}
	defer h.busy.Give()
	if h.closed {
		return nil, device.Faultf(device.Offline, "%s is not read any more: its device is closed", h.pins[0])
	}
	if h.line == nil {
		line, err := h.board.Input(h.pins[0], h.options, h.pins[1:]...)
		if err != nil {
			return nil, err
		}
		h.line = line
	}
	return h.line, nil
}

// drop lets a line go whose chip is away.
func (h *held) drop(line *board.Line, err error) {
	if !board.Unplugged(err) {
		return
	}
	h.busy.Wait()
	defer h.busy.Give()
	if h.line == line {
		line.Close()
		h.line = nil
	}
}

func (h *held) get(ctx context.Context) (uint64, error) {
	line, err := h.use(ctx)
	if err != nil {
		return 0, err
	}
	values, err := line.Values()
	h.drop(line, err)
	return values, err
}

func (h *held) watch(ctx context.Context, since time.Time, emit func(board.Edge)) error {
	line, err := h.use(ctx)
	if err != nil {
		return err
	}
	err = line.Watch(ctx, since, emit)
	h.drop(line, err)
	return err
}

func (h *held) close() error {
	h.busy.Wait()
	defer h.busy.Give()
	if h.closed || h.line == nil {
		h.closed = true
		return nil
	}
	h.closed = true
	return h.line.Close()
}
