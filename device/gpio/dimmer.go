package gpio

import (
	"context"
	"math"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Dimmer is the YAML of the driver "dimmer": pulses made by this program, for a lamp,
// a heater or a small motor behind a transistor. A light that must not flicker
// while the board is busy belongs on a PWM channel of the board (driver pwm).
type Dimmer struct {
	Pin       board.Pin `json:"pin" jsonschema:"the line, such as GPIO17, P1_11 (its position on the header) or gpiochip0/17"`
	ActiveLow bool      `json:"active_low,omitempty" jsonschema:"on where a low level switches on"`
	Frequency float64   `json:"frequency,omitempty" jsonschema:"pulses per second, 1 to 1000; each costs the processor two wake-ups"`
	Safe      float64   `json:"safe" jsonschema:"0 or 100, whichever harms nobody: there are no pulses once the program has ended"`

	board *board.Board
}

// Validate finds mistakes without hardware.
func (c *Dimmer) Validate() error {
	switch {
	case !(c.Frequency >= 1 && c.Frequency <= 1000): // a NaN too
		return device.Faultf(device.Invalid, "frequency: %v is not 1 to 1000 pulses per second; for more use a PWM channel of the board, driver: pwm", device.Number(c.Frequency))
	case c.Safe != 0 && c.Safe != 100:
		return device.Faultf(device.Invalid, "safe: %v would need pulses, which end with the program; write 0 or 100", device.Number(c.Safe))
	}
	return nil
}

// Describe needs no hardware.
func (c *Dimmer) Describe() device.Description {
	return device.Description{Model: "dimmer on " + string(c.Pin), Points: []device.Point{{
		Name: "level", Kind: device.KindLevel, Unit: "%", Description: "share of the time that it is on",
		Range: device.Range{Max: 100}, Safe: device.Number(c.Safe),
	}}}
}

// Resources returns the line.
func (c *Dimmer) Resources() []driver.Resource { return []driver.Resource{c.Pin.Resource()} }

// Open finds the line. The first move requests it. Close leaves it at its safe value.
func (c *Dimmer) Open(context.Context) (device.Device, error) {
	if err := c.board.CheckFree(c.Pin); err != nil {
		return nil, err
	}
	options := board.OutputOptions{ActiveLow: c.ActiveLow, Safe: c.Safe != 0}
	line := &pulsedLine{outputLine: outputLine{board: c.board, pin: c.Pin, options: options}, period: c.period()}
	drive := func(_ context.Context, v device.Value) error { return line.set(share(c.period(), v.Number())) }
	return driver.NewOutput(c.Describe(), drive, line.read, line.release), nil
}

func (c *Dimmer) period() time.Duration { return time.Duration(float64(time.Second) / c.Frequency) }

// share returns that many percent of a period.
func share(period time.Duration, percent float64) time.Duration {
	return time.Duration(math.Round(float64(period) * percent / 100))
}
