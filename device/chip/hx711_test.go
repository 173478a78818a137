package chip

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board/boardtest"
)

const (
	cellData  = 5
	cellClock = 6
)

// loadCell is a chip at GPIO5 and GPIO6 that has a result 100 ms after the last.
type loadCell struct {
	lines  *boardtest.Chip
	result uint32

	mu     sync.Mutex
	gains  []int // the pulses of each result that was read to its end
	held   int   // so many more clocks are held up
	silent bool  // there is never a result
	pulses int
	raised time.Time
	ready  *time.Timer
}

func newLoadCell(result uint32) *loadCell {
	c := &loadCell{lines: boardtest.Header(), result: result}
	c.lines.Drive(cellData, true)
	c.lines.React(c.clock)
	return c
}

func (c *loadCell) clock(offset int, level bool, drive func(int, bool)) {
	if offset != cellClock {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if level && c.held > 0 {
		c.held--
		time.Sleep(70 * time.Microsecond) // no result becomes ready meanwhile
	}
	switch {
	case level:
		c.raised = now
		c.pulses++
		drive(cellData, c.pulses > hx711Bits || c.result>>(hx711Bits-c.pulses)&1 != 0)
		if c.pulses > hx711Bits {
			c.next(hx711Every)
		}
	case time.Since(c.raised) > 60*time.Microsecond: // it was off
		c.pulses = 0
		drive(cellData, true)
		c.next(hx711Settle)
	}
}

// next makes a result available after a time.
func (c *loadCell) next(after time.Duration) {
	if c.ready != nil {
		c.ready.Stop()
	}
	c.ready = time.AfterFunc(after, func() {
		c.mu.Lock()
		if c.pulses > 0 {
			c.gains = append(c.gains, c.pulses)
		}
		c.pulses = 0
		silent := c.silent
		c.mu.Unlock() // the lines have a lock of their own, which clock is called with
		if !silent {
			c.lines.Drive(cellData, false)
		}
	})
}

func (c *loadCell) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// read are the pulses of the results that were read, once the last one is over.
func (c *loadCell) read() (gains []int) {
	time.Sleep(time.Second)
	c.change(func() { gains = slices.Clone(c.gains) })
	return gains
}

func (c *loadCell) config(t testing.TB, fill func(*hx711Config)) *hx711Config {
	return onLines(t, "hx711", c.lines, func(h *hx711Config) {
		h.Data, h.Clock = "GPIO5", "GPIO6"
		fill(h)
	})
}

func plain(*hx711Config) {}

func TestHX711(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for result, want := range map[uint32]float64{0: 0, 1: 1, 0x7FFFFE: 1<<23 - 2, 0x800001: 1 - 1<<23, 0xFFFFFF: -1, 0x5A5A5A: 0x5A5A5A} {
			cell := newLoadCell(result)
			dev := opened(t, cell.config(t, plain))
			wants(t, dev, map[string]float64{"count": want})
			if got := cell.read(); !slices.Equal(got, []int{25, 25}) {
				t.Errorf("pulses: %v", got)
			}
			if err := dev.Close(); err != nil || !cell.lines.Level(cellClock) || cell.lines.Driven(cellClock) {
				t.Errorf("closed: %v; it is not switched off, or its lines are still held", err)
			}
		}
	})
}

func TestHX711Weight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, per := range []float64{2000, -2000} {
			dev := opened(t, newLoadCell(4500).config(t, func(c *hx711Config) { c.Zero, c.PerKg = 1500, per }))
			wants(t, dev, map[string]float64{"weight": 3000 / per})
			if p := dev.Describe().Points[0]; p.Unit != "kg" || p.Range.Min >= p.Range.Max {
				t.Error(p)
			}
		}
	})
}

func TestHX711Gains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for gain, pulses := range map[int]int{128: 25, 32: 26, 64: 27} {
			cell := newLoadCell(5)
			begun := time.Now()
			opened(t, cell.config(t, func(c *hx711Config) { c.Gain = gain }))
			if took := time.Since(begun); took > 1300*time.Millisecond {
				t.Errorf("it takes %v", took)
			}
			want := []int{pulses, pulses} // the first one only chooses the gain
			if gain == 128 {
				want = want[:1]
			}
			if got := cell.read(); !slices.Equal(got, want) {
				t.Errorf("gain %d: pulses %v, want %v", gain, got, want)
			}
		}
	})
}

// A clock that was held up is not a number: the chip was off, and is read anew, with
// its gain.
func TestHX711HeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := newLoadCell(0x123456)
		dev := opened(t, cell.config(t, func(c *hx711Config) { c.Gain = 64 }))
		cell.change(func() { cell.held = 1 })
		wants(t, dev, map[string]float64{"count": 0x123456})
		if got := cell.read(); !slices.Equal(got, []int{27, 27, 27, 27}) {
			t.Errorf("pulses: %v", got)
		}
		cell.change(func() { cell.held = 1000 })
		_, err := dev.(device.Sensor).Sample(t.Context())
		faulted(t, err, device.Offline, "too busy")
		cell.change(func() { cell.held = 0 })
		wants(t, dev, map[string]float64{"count": 0x123456})
	})
}

func TestHX711Faults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, result := range []uint32{0x7FFFFF, 0x800000} {
			lacks(t, opened(t, newLoadCell(result).config(t, plain)), map[string]string{"count": "the chip's range"})
		}
		cell := newLoadCell(7)
		dev := opened(t, cell.config(t, plain))
		sample := dev.(device.Sensor).Sample
		recovers := func(from string) {
			t.Helper()
			if r, err := sample(t.Context()); err != nil || r[0].Value != device.Number(7) {
				t.Errorf("after %s: %v, %v", from, r, err)
			}
		}
		begun := time.Now()
		cell.change(func() { cell.silent = true })
		cell.lines.Drive(cellData, true)
		_, err := sample(t.Context())
		faulted(t, err, device.Offline, "no result")
		if time.Since(begun) > time.Second || cell.lines.Driven(cellClock) {
			t.Errorf("%v, and its lines are held: %v", time.Since(begun), cell.lines.Driven(cellClock))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = sample(ctx)
		faulted(t, err, device.Offline, "in time")
		cell.change(func() { cell.silent = false })
		recovers("silence")

		cell.lines.React(nil)
		cell.lines.Drive(cellData, false)
		_, err = sample(t.Context())
		faulted(t, err, device.Offline, "stays low")
		cell.lines.React(cell.clock)
		recovers("a short")

		cell.lines.Unplug()
		fails(t, dev, device.Offline)
		cell.lines.Plug()
		recovers("an adapter that was away")

		for _, line := range []int{cellData, cellClock} {
			cell.lines.Fail(line, syscall.EIO)
			fails(t, dev, device.Offline)
			cell.lines.Fail(line, nil)
			recovers("a line that fails")
		}
		dev.Close()
		fails(t, dev, device.Offline)

		cell.lines.Take(cellData, "w1")
		_, err = cell.config(t, plain).Open(t.Context())
		faulted(t, err, device.Busy, `GPIO5 is in use by "w1"`)
		if cell.lines.Driven(cellClock) {
			t.Error("the other line is still held")
		}
	})
	mistakes(t, "hx711", map[string]func(*hx711Config){
		"has two":                 func(c *hx711Config) { c.Data, c.Clock = "GPIO5", "GPIO5" },
		"128, 64 or 32":           func(c *hx711Config) { c.Data, c.Gain = "GPIO5", 16 },
		"needs per_kg":            func(c *hx711Config) { c.Data, c.Zero = "GPIO5", 100 },
		"out of the chip's range": func(c *hx711Config) { c.Data, c.Zero = "GPIO5", 1e7 },
		"0.01 to 8388607":         func(c *hx711Config) { c.Data, c.PerKg = "GPIO5", 0.001 },
	})
}

func TestHX711Conformance(t *testing.T) {
	suite(t, func(t *testing.T) device.Device { return opened(t, newLoadCell(42).config(t, plain)) })
}

func FuzzHX711(f *testing.F) {
	f.Add(uint32(0x7FFFFF), 420.5, 1000.0)
	f.Add(uint32(0x800000), -8e6, 0.01)
	f.Fuzz(func(t *testing.T, result uint32, zero, perKg float64) {
		synctest.Test(t, func(t *testing.T) {
			c := newLoadCell(result&0xFFFFFF).config(t, func(c *hx711Config) { c.Zero, c.PerKg = zero, perKg })
			if c.Validate() != nil {
				return
			}
			dev, err := c.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			believable(t, dev)
		})
	})
}
