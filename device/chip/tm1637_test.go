package chip

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"agentsite/device"
	"agentsite/device/board/boardtest"
)

// digitBoard is a TM1637 at GPIO5 (clock) and GPIO6 (data) that keeps the commands
// which it has got whole.
type digitBoard struct {
	lines *boardtest.Chip
	deaf  bool

	mu           sync.Mutex
	clock, data  bool
	begun        bool
	bits         int
	value        byte
	now          []byte
	commands     [][]byte
	acknowledges bool
}

func newDigitBoard() *digitBoard {
	d := &digitBoard{lines: boardtest.Header(), clock: true, data: true}
	d.lines.Drive(5, true) // the resistors
	d.lines.Drive(6, true)
	d.lines.React(d.react)
	return d
}

func (d *digitBoard) react(offset int, level bool, drive func(int, bool)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.acknowledges && offset == 6: // by itself
	case offset == 6 && d.clock && !level:
		d.begun, d.bits, d.now = true, 0, nil
	case offset == 6 && d.clock && d.begun:
		d.begun = false
		d.commands = append(d.commands, d.now)
	case offset == 5 && level && d.begun && d.bits < 8:
		d.value >>= 1
		if d.data {
			d.value |= 0x80
		}
		d.bits++
	case offset == 5 && !level && d.begun && d.bits == 8 && !d.acknowledges:
		d.acknowledges = !d.deaf
		d.now = append(d.now, d.value)
		d.bits = 9
		d.mu.Unlock()
		drive(6, d.deaf)
		d.mu.Lock()
	case offset == 5 && !level && d.begun && d.bits == 9:
		d.bits = 0
		d.mu.Unlock()
		drive(6, true)
		d.mu.Lock()
		d.acknowledges = false
	}
	if offset == 5 {
		d.clock = level
	} else {
		d.data = level
	}
}

// last are the last three commands, which are all that it shows.
func (d *digitBoard) last() [][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.commands[max(0, len(d.commands)-3):]
}

func (d *digitBoard) config(t testing.TB, fill func(*tm1637Config)) *tm1637Config {
	return onLines(t, "tm1637", d.lines, func(c *tm1637Config) {
		c.Clock, c.Data = "GPIO5", "GPIO6"
		fill(c)
	})
}

func TestTM1637(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDigitBoard()
		dev := opened(t, d.config(t, func(*tm1637Config) {}))
		shows := func(text string, want ...byte) {
			t.Helper()
			show(t, dev, text)
			if got := d.last(); !slices.EqualFunc(got, [][]byte{{0x40}, append([]byte{0xC0}, want[:4]...), want[4:]}, bytes.Equal) {
				t.Errorf("%q: the chip got %x", text, got)
			}
		}
		if got := d.last(); !slices.EqualFunc(got, [][]byte{{0x40}, {0xC0, 0, 0, 0, 0}, {0x80}}, bytes.Equal) {
			t.Errorf("opened: %x", got)
		}
		// 0 to 9 of the datasheet's table: 3F 06 5B 4F 66 6D 7D 07 7F 6F
		shows("0123", 0x3F, 0x06, 0x5B, 0x4F, 0x8B)
		shows("4567", 0x66, 0x6D, 0x7D, 0x07, 0x8B)
		shows("89", 0, 0, 0x7F, 0x6F, 0x8B)
		shows("12:30", 0x06, 0x5B|0x80, 0x4F, 0x3F, 0x8B)
		shows("-2.5", 0, 0x40, 0x5B|0x80, 0x6D, 0x8B)
		shows("", 0, 0, 0, 0, 0x80)
		faulted(t, dev.(device.Display).Show(t.Context(), "text", "12345"), device.Invalid, "the display has 4")
		show(t, dev, "8888")
		if err := dev.Close(); err != nil || d.last()[2][0] != 0x80 || d.lines.Driven(5) || !d.lines.Level(5) || !d.lines.Level(6) {
			t.Errorf("closed: %v, %x; it is lit, or its lines are held or low", err, d.last())
		}
	})
}

func TestTM1637Faults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDigitBoard()
		d.deaf = true
		_, err := d.config(t, func(*tm1637Config) {}).Open(t.Context())
		faulted(t, err, device.Offline, "acknowledge")
		if d.lines.Driven(5) || d.lines.Driven(6) {
			t.Error("its lines are still held")
		}
		d.deaf = false
		dev := opened(t, d.config(t, func(*tm1637Config) {}))
		d.lines.React(nil)
		d.lines.Drive(6, false)
		faulted(t, dev.(device.Display).Show(t.Context(), "text", "1"), device.Offline, "stays low")
		d.lines.Drive(6, true)
		d.lines.React(d.react)
		show(t, dev, "1")
		d.lines.Unplug()
		faulted(t, dev.(device.Display).Show(t.Context(), "text", "1"), device.Offline, "plug it in again")
		d.lines.Plug()
		show(t, dev, "2")
		if got := d.last()[1]; got[4] != 0x5B {
			t.Errorf("%x", got)
		}
	})
	mistakes(t, "tm1637", map[string]func(*tm1637Config){
		"has two": func(c *tm1637Config) { c.Data, c.Clock = "GPIO5", "GPIO5" },
		"1 to 6":  func(c *tm1637Config) { c.Data, c.Digits = "GPIO5", 8 },
		"1 to 8":  func(c *tm1637Config) { c.Data, c.Brightness = "GPIO5", 0 },
	})
}

func TestTM1637Conformance(t *testing.T) {
	suite(t, func(t *testing.T) device.Device {
		return opened(t, newDigitBoard().config(t, func(c *tm1637Config) { c.Digits = 6 }))
	})
}
