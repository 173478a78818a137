package gpio

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Motor is the YAML of the driver "motor": a motor behind an H-bridge with one input
// for each direction (L298N, L9110, DRV8833, TB6612). The two are never on at the
// same time, and one goes on only once the other has been off for the dead time. It is
// no driver for a bridge of relays, which cannot follow pulses.
type Motor struct {
	Forward   board.Pin     `json:"forward" jsonschema:"the line of the bridge's input that turns the motor forward"`
	Backward  board.Pin     `json:"backward" jsonschema:"the line of the other input, on the same or another chip"`
	ActiveLow bool          `json:"active_low,omitempty" jsonschema:"on where low levels switch the bridge on"`
	Frequency float64       `json:"frequency,omitempty" jsonschema:"pulses per second at part speed, 1 to 1000"`
	Safe      float64       `json:"safe" jsonschema:"0, which is off"`
	DeadTime  time.Duration `json:"dead_time,omitempty" jsonschema:"the pause between the directions, 1ms to 1s"`

	board *board.Board
}

// Validate finds mistakes without hardware.
func (c *Motor) Validate() error {
	switch {
	case c.Forward == c.Backward:
		return device.Faultf(device.Invalid, "backward: %s is the line of forward; the bridge has an input for each direction", c.Backward)
	case !(c.Frequency >= 1 && c.Frequency <= 1000):
		return device.Faultf(device.Invalid, "frequency: %v is not 1 to 1000 pulses per second", device.Number(c.Frequency))
	case c.Safe != 0:
		return device.Faultf(device.Invalid, "safe: %v would run the motor at rest; write 0", device.Number(c.Safe))
	case c.DeadTime < time.Millisecond || c.DeadTime > time.Second:
		return device.Faultf(device.Invalid, "dead_time: %v is not 1ms to 1s", c.DeadTime)
	}
	return nil
}

// Describe needs no hardware.
func (c *Motor) Describe() device.Description {
	return device.Description{Model: "motor on " + string(c.Forward) + " and " + string(c.Backward), Points: []device.Point{{
		Name: "speed", Kind: device.KindLevel, Unit: "%", Description: "forward above 0, backward below, and 0 is off",
		Range: device.Range{Min: -100, Max: 100}, Safe: device.Number(0),
	}}}
}

// Resources returns both lines.
func (c *Motor) Resources() []driver.Resource {
	return []driver.Resource{c.Forward.Resource(), c.Backward.Resource()}
}

// Open finds the lines. The first move requests them, both off. Close switches both off.
func (c *Motor) Open(context.Context) (device.Device, error) {
	if err := c.board.CheckFree(c.Forward, c.Backward); err != nil {
		return nil, err
	}
	period := time.Duration(float64(time.Second) / c.Frequency)
	way := func(pin board.Pin) *pulsedLine {
		return &pulsedLine{outputLine: outputLine{board: c.board, pin: pin, options: board.OutputOptions{ActiveLow: c.ActiveLow}}, period: period}
	}
	m := &motor{ways: [2]*pulsedLine{way(c.Forward), way(c.Backward)}, dead: c.DeadTime}
	return driver.NewOutput(c.Describe(), m.drive, m.read, m.release), nil
}

const (
	forward = iota
	backward
)

type motor struct {
	ways [2]*pulsedLine
	dead time.Duration
	last int       // the direction that was on last
	off  time.Time // when it went off; zero while it is on, or none ever was
}

// drive switches both off, and then one of them on. After a failure it tries to switch
// both off.
func (m *motor) drive(ctx context.Context, v device.Value) error {
	if err := m.halt(); err != nil || v.Number() == 0 {
		return err
	}
	way := forward
	if v.Number() < 0 {
		way = backward
	}
	if way != m.last {
		if err := device.Sleep(ctx, time.Until(m.off.Add(m.dead))); err != nil {
			return err
		}
	}
	if err := m.ways[1-way].check(); err != nil {
		return err
	}
	m.last, m.off = way, time.Time{}
	part := max(v.Number(), -v.Number())
	if err := m.ways[way].set(share(m.ways[way].period, part)); err != nil {
		m.halt()
		return err
	}
	return nil
}

// halt switches both off.
func (m *motor) halt() error {
	var failed error
	for _, w := range m.ways {
		if err := w.set(0); err != nil {
			failed = err
		}
	}
	if failed == nil && m.off.IsZero() {
		m.off = time.Now()
	}
	return failed
}

func (m *motor) read(now device.Value) (device.Value, error) {
	if _, err := m.ways[forward].read(now); err != nil {
		return now, err
	}
	return m.ways[backward].read(now)
}

func (m *motor) release() error {
	err := m.ways[forward].release()
	if other := m.ways[backward].release(); err == nil {
		err = other
	}
	return err
}
