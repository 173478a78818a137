package chip

import (
	"context"
	"errors"
	"time"

	"periph.io/x/conn/v3/gpio"
)

// hx711 is an amplifier for load cells on two lines (Avia Semiconductor, HX711
// datasheet, "Serial Interface").
//
// periph's adapter is not used: it does not wait for a result that is ready, and
// does not see when its clock was held up. A clock that is high for more than 60 µs
// switches the chip off, and the bits after that are those of nothing.
type hx711 struct {
	clock gpio.PinOut
	data  gpio.PinIn
	gain  hx711Gain
}

// hx711Gain is how many pulses of the clock end a result: they choose the input
// and gain of the next one.
type hx711Gain int

const (
	hx711A128 hx711Gain = 25
	hx711B32  hx711Gain = 26
	hx711A64  hx711Gain = 27

	hx711Bits   = 24
	hx711High   = 60 * time.Microsecond  // the longest that the clock may be high
	hx711Every  = 100 * time.Millisecond // between results, at the slower of its rates
	hx711Settle = 400 * time.Millisecond // after it was switched on or its gain changed
	hx711Look   = 5 * time.Millisecond   // between looks at whether it is ready
	hx711Tries  = 3
)

var (
	errHX711Silent = errors.New("it has no result; check its supply and both lines")
	errHX711Slow   = errors.New("the board was too busy to read it in time; ask again")
	errHX711Lines  = errors.New("its data line does not rise after a result; check both lines")
)

// open makes the lines an input and an output and begins with the gain. It takes
// half a second.
func (d *hx711) open(ctx context.Context) error {
	if err := d.data.In(gpio.PullUp, gpio.NoEdge); err != nil {
		return err
	}
	if err := d.clock.Out(gpio.Low); err != nil {
		return err
	}
	// one result with the old gain, so that the next has ours
	if _, err := d.read(ctx); err != nil {
		return err
	}
	return pause(ctx, hx711Settle)
}

// read waits for the next result, at most for four, and returns its 24 bits as a
// number. A result during which the clock was held up is read anew, after the time
// that the chip needs when it was off.
func (d *hx711) read(ctx context.Context) (int32, error) {
	var err error
	for range hx711Tries {
		if err = d.wait(ctx); err != nil {
			return 0, err
		}
		var n int32
		if n, err = d.shift(); err == nil {
			return n, nil
		}
		if !errors.Is(err, errHX711Slow) {
			return 0, err
		}
		if err := pause(ctx, hx711Settle); err != nil {
			return 0, err
		}
	}
	return 0, err
}

// wait returns when the chip has pulled the data line low.
func (d *hx711) wait(ctx context.Context) error {
	for range 4 * hx711Every / hx711Look {
		if d.data.Read() == gpio.Low {
			return nil
		}
		if err := pause(ctx, hx711Look); err != nil {
			return err
		}
	}
	return errHX711Silent
}

func (d *hx711) shift() (int32, error) {
	var raw uint32
	slow := false
	for i := range int(d.gain) {
		rose := time.Now()
		if err := d.clock.Out(gpio.High); err != nil {
			return 0, err
		}
		if err := d.clock.Out(gpio.Low); err != nil {
			return 0, err
		}
		slow = slow || time.Since(rose) > hx711High // go on: the clock ends low
		if i < hx711Bits {                          // the bit stands until the clock rises again
			raw <<= 1
			if d.data.Read() {
				raw |= 1
			}
		}
	}
	switch {
	case slow:
		return 0, errHX711Slow
	case d.data.Read() == gpio.Low: // a new result takes at least 12 ms
		return 0, errHX711Lines
	}
	return int32(raw<<8) >> 8, nil
}

// pause sleeps, or ends with ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
