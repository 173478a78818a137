package chip

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// hx711Config is the YAML of hx711, an amplifier for load cells on two lines (Avia
// Semiconductor, HX711 datasheet).
//
// periph's adapter is not used: it does not wait for a result that is ready, and
// does not see when its clock was held up. A clock that is high for more than 60 µs
// switches the chip off, and the bits after that are those of nothing.
type hx711Config struct {
	Data  board.Pin `json:"data" jsonschema:"the line of the chip's output DT (DOUT), such as GPIO5 or P1_29"`
	Clock board.Pin `json:"clock" jsonschema:"the line of the chip's input SCK (PD_SCK)"`
	Gain  int       `json:"gain,omitempty" jsonschema:"128 or 64 at the input A, 32 at the input B"`
	Zero  float64   `json:"zero,omitempty" jsonschema:"what the point count reads with nothing on the scale; needs per_kg"`
	PerKg float64   `json:"per_kg,omitempty" jsonschema:"how much more it reads for each kilogram, negative where it reads less; without it there is the point count instead of weight"`

	board *board.Board
}

const (
	hx711Bits   = 24
	hx711Most   = 1<<23 - 1 // and one less below zero: the chip's results of an overload
	hx711High   = 60 * time.Microsecond
	hx711Off    = 100 * time.Microsecond // so long a high clock surely switches it off
	hx711Every  = 100 * time.Millisecond // between results, at the slower of its rates
	hx711Settle = 400 * time.Millisecond // after it was switched on or its gain changed
	hx711Look   = 5 * time.Millisecond   // between looks at whether it is ready
	hx711Tries  = 3
)

// hx711Gains are the gains in the order of the pulses that choose them for the next
// result: 25, 26 and 27 ("Serial Interface", table 3).
var hx711Gains = []int{128, 32, 64}

var (
	errHX711Silent = errors.New("it has no result, its data line stays high; check its supply and both lines")
	errHX711Slow   = errors.New("the board was too busy to read it in time, three times; a clock line of the board itself is the fastest")
	errHX711Lines  = errors.New("its data line stays low after a result; check both lines")
)

// Validate finds mistakes without hardware.
func (c *hx711Config) Validate() error {
	switch per := math.Abs(c.PerKg); {
	case c.Data == c.Clock:
		return device.Faultf(device.Invalid, "clock: %s is the line of data; the chip has two", c.Clock)
	case !slices.Contains(hx711Gains, c.Gain):
		return device.Faultf(device.Invalid, "gain: it is 128, 64 or 32, not %d", c.Gain)
	case !(math.Abs(c.Zero) <= hx711Most):
		return device.Faultf(device.Invalid, "zero: %v is out of the chip's range of %d to %d", device.Number(c.Zero), -hx711Most, hx711Most)
	case c.PerKg == 0 && c.Zero != 0:
		return device.Faultf(device.Invalid, "zero: it needs per_kg; put a known weight on the scale, and divide the increase of count by the kilograms")
	case c.PerKg != 0 && !(per >= 0.01 && per <= hx711Most):
		return device.Faultf(device.Invalid, "per_kg: %v is not 0.01 to %d", device.Number(c.PerKg), hx711Most)
	}
	return nil
}

// Describe needs no hardware.
func (c *hx711Config) Describe() device.Description {
	least, most := c.value(-hx711Most), c.value(hx711Most)
	p := measures("count", "{count}", "what the load cell gives, without a scale", least, most)
	if c.PerKg != 0 {
		p = measures("weight", "kg", "what lies on the load cell", min(least, most), max(least, most))
	}
	return device.Description{Model: "HX711", Points: []device.Point{p}}
}

// value returns the measurement of a result.
func (c *hx711Config) value(n int32) float64 {
	if c.PerKg == 0 {
		return float64(n)
	}
	return device.Tidy((float64(n) - c.Zero) / c.PerKg)
}

// Resources returns both lines.
func (c *hx711Config) Resources() []driver.Resource {
	return []driver.Resource{c.Data.Resource(), c.Clock.Resource()}
}

// Open measures once, to test that there is a chip. It takes half a second,
// with a gain of 64 or 32 a whole one.
func (c *hx711Config) Open(ctx context.Context) (device.Device, error) {
	w := newWires(c.board, c.Data, c.Clock)
	d := &hx711{config: c, wires: w}
	d.managedChip = managedChip{desc: c.Describe(), on: w, setUp: d.off, release: w.release}
	if _, err := d.Sample(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// hx711 is the chip. It rests switched off, until its first sample.
type hx711 struct {
	managedChip
	config      *hx711Config
	wires       *wires
	clock, data *board.Line
	asleep      bool
}

// Sample waits for the next result, at most for four.
func (d *hx711) Sample(ctx context.Context) ([]device.Reading, error) {
	return d.sample(ctx, func(out *driver.Sample) error {
		n, err := d.read(ctx)
		switch {
		case err != nil:
			return err
		case n > hx711Most-1 || n < -hx711Most:
			out.Fault("the load cell's signal exceeds the chip's range; reduce the weight, configure a smaller gain, or check its four wires")
		default:
			out.Number(d.config.value(n))
		}
		return nil
	})
}

// Close switches the chip off. One that is gone measures nothing either, so that is no
// error.
func (d *hx711) Close() error {
	d.managedChip.Close()
	return nil
}

// off takes the lines with the clock high, which switches the chip off and makes it
// forget its gain.
func (d *hx711) off() (err error) {
	d.wires.release()
	if d.clock, err = d.wires.output(d.config.Clock, board.OutputOptions{Initial: true, Safe: true}); err != nil {
		return err
	}
	d.asleep = true
	d.data, err = d.wires.input(d.config.Data, board.InputOptions{Pull: board.PullUp})
	return err
}

// wake switches the chip on, with our gain.
func (d *hx711) wake(ctx context.Context) error {
	if err := device.Sleep(ctx, hx711Off); err != nil {
		return err
	}
	if err := d.clock.Set(false); err != nil {
		return err
	}
	d.asleep = false
	err := device.Sleep(ctx, hx711Settle)
	if err == nil && d.config.Gain != hx711Gains[0] { // that of a chip that has just been switched on
		if _, err = d.result(ctx); err == nil {
			err = device.Sleep(ctx, hx711Settle)
		}
	}
	return err
}

// read returns the next result. One during which the clock was held up is thrown
// away with all that the chip had before: it may have been off.
func (d *hx711) read(ctx context.Context) (n int32, err error) {
	for range hx711Tries {
		if d.asleep {
			err = d.wake(ctx)
		}
		if err == nil {
			n, err = d.result(ctx)
		}
		if !errors.Is(err, errHX711Slow) {
			return n, err
		}
		if err := d.clock.Set(true); err != nil {
			return 0, err
		}
		d.asleep, err = true, nil
	}
	return 0, errHX711Slow
}

// result waits until the chip has pulled the data line low, and shifts the 24 bits
// of its number out.
func (d *hx711) result(ctx context.Context) (int32, error) {
	for begun := time.Now(); ; {
		busy, err := d.data.Get()
		switch {
		case err != nil:
			return 0, err
		case !busy:
			return d.shift()
		case time.Since(begun) >= 4*hx711Every:
			return 0, errHX711Silent
		}
		if err := device.Sleep(ctx, hx711Look); err != nil {
			return 0, err
		}
	}
}

func (d *hx711) shift() (int32, error) {
	var raw uint32
	slow := false
	for i := range hx711Bits + 1 + slices.Index(hx711Gains, d.config.Gain) {
		rose := time.Now()
		if err := d.clock.Set(true); err != nil {
			return 0, err
		}
		if err := d.clock.Set(false); err != nil {
			return 0, err
		}
		slow = slow || time.Since(rose) > hx711High
		bit, err := d.data.Get() // it stands until the clock rises again
		switch {
		case err != nil:
			return 0, err
		case i >= hx711Bits:
		case bit:
			raw = raw<<1 | 1
		default:
			raw <<= 1
		}
	}
	switch high, err := d.data.Get(); {
	case err != nil:
		return 0, err
	case slow:
		return 0, errHX711Slow
	case !high: // a new result takes at least 12 ms
		return 0, errHX711Lines
	}
	return int32(raw<<8) >> 8, nil
}
