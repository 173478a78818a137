package chip

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/gpio"
)

// loadCell is a chip with a result for each 100 ms, seen from its two lines.
type loadCell struct {
	result  uint32
	held    time.Duration // how long each clock is held up at first
	gains   []int         // the pulses of each result that was read to its end
	silent  bool
	stuck   bool // the data line is always low
	pulses  int
	raised  time.Time
	readyAt time.Time
}

func (c *loadCell) lines() *hx711 {
	return &hx711{clock: clockLine{cell: c}, data: dataLine{cell: c}, gain: hx711A128}
}

type clockLine struct {
	gpio.PinOut // nobody asks for the rest
	cell        *loadCell
}

func (l clockLine) Out(level gpio.Level) error {
	c := l.cell
	if level {
		c.raised, c.pulses = time.Now(), c.pulses+1
		time.Sleep(c.held)
		return nil
	}
	if !c.raised.IsZero() && time.Since(c.raised) > 60*time.Microsecond {
		c.readyAt, c.pulses = time.Now().Add(hx711Settle), 0 // it was off
		c.held = 0
	}
	return nil
}

type dataLine struct {
	gpio.PinIn
	cell *loadCell
}

func (l dataLine) In(gpio.Pull, gpio.Edge) error { return nil }

func (l dataLine) Read() gpio.Level {
	c := l.cell
	switch {
	case c.stuck:
		return gpio.Low
	case c.silent || time.Now().Before(c.readyAt):
		return gpio.High
	case c.pulses == 0:
		return gpio.Low // ready
	case c.pulses <= hx711Bits && time.Since(c.raised) < time.Millisecond:
		return c.result>>(hx711Bits-c.pulses)&1 != 0
	}
	c.gains = append(c.gains, c.pulses)
	c.pulses, c.readyAt = 0, time.Now().Add(hx711Every)
	return gpio.High
}

func TestHX711(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for result, want := range map[uint32]int32{0: 0, 1: 1, 0x7FFFFF: 1<<23 - 1, 0x800000: -1 << 23, 0xFFFFFF: -1, 0x5A5A5A: 0x5A5A5A} {
			cell := &loadCell{result: result}
			d := cell.lines()
			if err := d.open(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := d.read(t.Context()); err != nil || got != want {
				t.Errorf("%#x is %d (%v), want %d", result, got, err, want)
			}
			if !slices.Equal(cell.gains, []int{25, 25}) {
				t.Errorf("pulses: %v", cell.gains)
			}
		}
	})
}

func TestHX711Gains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, gain := range []hx711Gain{hx711A128, hx711B32, hx711A64} {
			cell := &loadCell{result: 5}
			d := cell.lines()
			d.gain = gain
			if n, err := d.read(t.Context()); n != 5 || err != nil || !slices.Equal(cell.gains, []int{int(gain)}) {
				t.Errorf("got %d, %v after %v pulses, want %d", n, err, cell.gains, gain)
			}
		}
	})
}

// A clock that was held up is no number: the chip was off, and is read again.
func TestHX711HeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := &loadCell{result: 0x123456, held: 70 * time.Microsecond}
		if got, err := cell.lines().read(t.Context()); err != nil || got != 0x123456 {
			t.Errorf("got %#x, %v", got, err)
		}
	})
}

func TestHX711Faults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		silent := &loadCell{silent: true}
		if _, err := silent.lines().read(t.Context()); !errors.Is(err, errHX711Silent) || time.Since(begun) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		stuck := &loadCell{stuck: true}
		if n, err := stuck.lines().read(t.Context()); !errors.Is(err, errHX711Lines) {
			t.Errorf("got %v, %v", n, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := silent.lines().read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
