package gpio

import (
	"context"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Switch is the YAML of gpio-out, relay, mosfet and buzzer: a line that is on or
// off. After each move the line is read back.
type Switch struct {
	Pin       board.Pin   `json:"pin" jsonschema:"the line, such as GPIO17, P1_11 (its position on the header) or gpiochip0/17"`
	ActiveLow bool        `json:"active_low,omitempty" jsonschema:"on where a low level switches on, as with most relay boards"`
	Drive     board.Drive `json:"drive,omitempty" jsonschema:"push-pull, open-drain or open-source; push-pull when not written"`
	Safe      bool        `json:"safe" jsonschema:"off or on, whichever harms nobody; the line is left like this"`

	board *board.Board
	point device.Point
}

// Describe needs no hardware.
func (c *Switch) Describe() device.Description {
	p := c.point
	p.Safe = device.Bool(c.Safe)
	return device.Description{Model: p.Name + " on " + string(c.Pin), Points: []device.Point{p}}
}

// Resources returns the line.
func (c *Switch) Resources() []driver.Resource { return []driver.Resource{c.Pin.Resource()} }

// Open finds the line. The first move requests it, with that value; before, the line stays
// as it was without this program. Close leaves it at its safe value.
func (c *Switch) Open(context.Context) (device.Device, error) {
	if err := c.board.CheckFree(c.Pin); err != nil {
		return nil, err
	}
	line := &outputLine{board: c.board, pin: c.Pin, options: board.OutputOptions{ActiveLow: c.ActiveLow, Safe: c.Safe, Drive: c.Drive}}
	drive := func(_ context.Context, v device.Value) error {
		if err := line.set(v.Bool()); err != nil {
			return err
		}
		return line.check()
	}
	read := func(device.Value) (device.Value, error) {
		on, err := line.get()
		return device.Bool(on), err
	}
	return driver.NewOutput(c.Describe(), drive, read, line.release), nil
}
