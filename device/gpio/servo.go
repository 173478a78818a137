package gpio

import (
	"context"
	"math"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Servo is the YAML of the driver "servo": a hobby servo, whose pulses this program
// makes. It trembles as the pulses do: 11 µs are one degree (see board.PulseTrain). A servo that must
// not tremble while the board is busy belongs on a PWM channel of the board: driver
// pwm with min_pulse and max_pulse.
type Servo struct {
	Pin      board.Pin     `json:"pin" jsonschema:"the line, such as GPIO18, P1_12 (its position on the header) or gpiochip0/18"`
	Angles   device.Range  `json:"angles,omitempty" jsonschema:"the degrees at the shortest and at the longest pulse"`
	MinPulse time.Duration `json:"min_pulse,omitempty" jsonschema:"the pulse at the first of angles"`
	MaxPulse time.Duration `json:"max_pulse,omitempty" jsonschema:"the pulse at the last of angles, at most 3ms"`
	Safe     float64       `json:"safe" jsonschema:"the angle that harms nobody, such as 0"`

	board  *board.Board
	travel time.Duration // to get from any angle to any other
}

const (
	servoPeriod = 20 * time.Millisecond
	shortest    = 100 * time.Microsecond // no servo takes shorter ones
)

// Validate finds mistakes without hardware.
func (c *Servo) Validate() error {
	switch {
	case c.MinPulse < shortest || c.MaxPulse <= c.MinPulse || c.MaxPulse > board.MaxExactPulse:
		return device.Faultf(device.Invalid, "min_pulse and max_pulse: %v to %v is not within %v to %v; most servos take 500us to 2500us", c.MinPulse, c.MaxPulse, shortest, board.MaxExactPulse)
	case !(c.Angles.Min < c.Angles.Max) || math.Abs(c.Angles.Min) > 3600 || math.Abs(c.Angles.Max) > 3600:
		return device.Faultf(device.Invalid, "angles: a servo turns within -3600..3600 degrees, not %v; write it like 0..180", c.Angles)
	}
	return c.Describe().Validate()
}

// Describe needs no hardware.
func (c *Servo) Describe() device.Description {
	return device.Description{Model: "servo on " + string(c.Pin), Points: []device.Point{{
		Name: "angle", Kind: device.KindLevel, Unit: "deg", Description: "where the servo turns to",
		Range: c.Angles, Safe: device.Number(c.Safe),
	}}}
}

// Resources returns the line.
func (c *Servo) Resources() []driver.Resource { return []driver.Resource{c.Pin.Resource()} }

// Open finds the line. The first move requests it. Close turns the servo to its safe angle, for
// half a second if it was elsewhere, and ends the pulses. Most servos then stay where they are,
// without force. If the program is killed, the pulses end at once.
func (c *Servo) Open(context.Context) (device.Device, error) {
	if err := c.board.CheckFree(c.Pin); err != nil {
		return nil, err
	}
	line := &pulsedLine{outputLine: outputLine{board: c.board, pin: c.Pin}, period: servoPeriod}
	var on time.Duration
	var since time.Time
	drive := func(_ context.Context, v device.Value) error {
		if c.pulse(v.Number()) == on && line.train != nil && line.err() == nil {
			return nil // not one pulse is missed
		}
		on, since = c.pulse(v.Number()), time.Now()
		return line.set(on)
	}
	release := func() error {
		if line.train != nil && line.err() == nil {
			time.Sleep(time.Until(since.Add(c.travel)))
		}
		return line.release()
	}
	return driver.NewOutput(c.Describe(), drive, line.read, release), nil
}

// pulse returns the length of the pulse for an angle.
func (c *Servo) pulse(angle float64) time.Duration {
	part := (angle - c.Angles.Min) / (c.Angles.Max - c.Angles.Min)
	return c.MinPulse + time.Duration(math.Round(part*float64(c.MaxPulse-c.MinPulse)))
}
