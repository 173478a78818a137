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
	Pull      board.Pull    `json:"pull,omitempty" jsonschema:"the resistor inside the board: up, down or none"`
	Debounce  time.Duration `json:"debounce,omitempty" jsonschema:"a level counts once it has lasted that long, at most 10s; the kernel waits, not this program"`

	board        *board.Board
	state, event device.Point // event has no name where there is none
	stops        bool         // the state is an emergency stop
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

// Resources returns the line.
func (c *Input) Resources() []driver.Resource { return []driver.Resource{c.Pin.Resource()} }

// Stops returns the state of an emergency stop.
func (c *Input) Stops() string {
	if c.stops {
		return c.state.Name
	}
	return ""
}

// Open finds the line. The first read or watch requests it.
func (c *Input) Open(context.Context) (device.Device, error) {
	if err := c.board.CheckFree(c.Pin); err != nil {
		return nil, err
	}
	options := board.InputOptions{ActiveLow: c.ActiveLow, Pull: c.Pull, Edges: true, Debounce: c.Debounce}
	return &input{desc: c.Describe(), state: c.state.Name, event: c.event.Name, stops: c.stops, held: newInputLines(c.board, options, c.Pin)}, nil
}

type input struct {
	desc         device.Description
	state, event string
	stops        bool
	held         *inputLines
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

// Watch emits each change, as an event and as the new state. Where the kernel dropped
// changes, the event is Bad once. For an emergency stop it first emits the state: a press
// before the watch began would be lost otherwise.
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
				emit(lostEdges(point, e.At))
			}
			emit(r)
		}
	})
}

// lostEdges is the reading of an event after the kernel dropped edges.
func lostEdges(point string, at time.Time) device.Reading {
	return device.Reading{Point: point, Quality: device.Bad, At: at, Why: "changes came faster than they could be read, and some are lost"}
}

// Close releases the line.
func (in *input) Close() error { return in.held.close() }
