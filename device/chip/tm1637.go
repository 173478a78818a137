package chip

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// tm1637Config is the YAML of tm1637, for up to six digits of seven segments.
//
// periph's adapter is not used: it busy-waits, ignores errors of its lines, and does not check the
// chip's acknowledgement.
type tm1637Config struct {
	Clock      board.Pin `json:"clock" jsonschema:"the line of the chip's CLK, such as GPIO5 or P1_29"`
	Data       board.Pin `json:"data" jsonschema:"the line of the chip's DIO; the board needs resistors to 3.3 V on both lines, which most have"`
	Digits     int       `json:"digits" jsonschema:"how many digits it has, 1 to 6"`
	Brightness int       `json:"brightness" jsonschema:"1 (dim) to 8"`

	board *board.Board
}

// Titan Micro Electronics TM1637, V2.4.
const (
	tm1637Write    = 0x40 // what follows goes to the digits, one after the other
	tm1637Position = 0xC0 // of the digit on the left
	tm1637Off      = 0x80
	tm1637On       = 0x88                 // and the brightness, 0 to 7
	tm1637Half     = 4 * time.Microsecond // of a clock; the chip takes 250 kHz
)

var (
	errTM1637Silent = errors.New("it does not acknowledge; check its supply, and that CLK and DIO are not exchanged")
	errTM1637Stuck  = errors.New("its data line stays low; check both lines and their resistors to 3.3 V")
)

// Validate finds mistakes without hardware.
func (c *tm1637Config) Validate() error {
	switch {
	case c.Data == c.Clock:
		return device.Faultf(device.Invalid, "data: %s is the line of clock; the chip has two", c.Data)
	case c.Digits < 1 || c.Digits > 6:
		return device.Faultf(device.Invalid, "digits: a TM1637 drives 1 to 6, not %d", c.Digits)
	case c.Brightness < 1 || c.Brightness > 8:
		return device.Faultf(device.Invalid, "brightness: use 1 to 8, not %d", c.Brightness)
	}
	return nil
}

// Describe needs no hardware.
func (c *tm1637Config) Describe() device.Description {
	return device.Description{Model: "TM1637", Points: textPoint("a display of digits")}
}

// Resources returns both lines.
func (c *tm1637Config) Resources() []driver.Resource {
	return []driver.Resource{c.Clock.Resource(), c.Data.Resource()}
}

// Open clears the display, to test that there is one.
func (c *tm1637Config) Open(ctx context.Context) (device.Device, error) {
	m := &tm1637{config: c, wires: newWires(c.board, c.Clock, c.Data)}
	chip := managedChip{desc: c.Describe(), on: m.wires, setUp: m.dark, release: m.wires.release}
	return openDisplay(ctx, chip, m.lay, func(lines []string) error { return m.write(lines[0], tm1637On|byte(c.Brightness-1)) })
}

// tm1637 is the chip. Its lines are not driven high but released, because it pulls the
// data line down to acknowledge.
type tm1637 struct {
	config      *tm1637Config
	wires       *wires
	clock, data *board.Line
}

// lay puts a colon at the point of the digit before it, as clock boards have it.
func (m *tm1637) lay(text string) ([]string, error) {
	return digits(m.config.Digits)(strings.ReplaceAll(text, ":", "."))
}

// dark takes the lines and switches the display off.
func (m *tm1637) dark() (err error) {
	m.wires.release()
	idle := board.OutputOptions{Initial: true, Safe: true, Drive: board.OpenDrain}
	if m.clock, err = m.wires.output(m.config.Clock, idle); err != nil {
		return err
	}
	if m.data, err = m.wires.output(m.config.Data, idle); err != nil {
		return err
	}
	return m.write("", tm1637Off)
}

// write writes all digits, the last of segments on the right, and then how bright
// they are.
func (m *tm1637) write(segments string, bright byte) error {
	places := make([]byte, m.config.Digits)
	for i := range segments {
		places[len(places)-len(segments)+i] = tm1637Segments(segments[i])
	}
	for _, command := range [][]byte{{tm1637Write}, append([]byte{tm1637Position}, places...), {bright}} {
		if err := m.send(command); err != nil {
			return err
		}
	}
	return nil
}

// tm1637Segments has the upper segment in the lowest bit, and the others in the order
// of sevenSegments.
func tm1637Segments(b byte) byte { return b&sevenPoint | bits.Reverse8(b)>>1 }

// send transfers one command. The data line falls while the clock is high, then come bytes with
// their lowest bit first, and the data line rises while the clock is high.
func (m *tm1637) send(command []byte) error {
	if free, err := m.data.Get(); err != nil || !free {
		return cmp.Or(err, errTM1637Stuck)
	}
	s := steps{}
	s.set(m.data, false)
	for _, b := range command {
		for range 8 {
			s.set(m.clock, false)
			s.set(m.data, b&1 != 0)
			s.set(m.clock, true)
			b >>= 1
		}
		s.set(m.clock, false)
		s.set(m.data, true) // released: the chip holds it low, from here to the next fall
		s.set(m.clock, true)
		if high, err := m.data.Get(); err == nil && high && s.err == nil {
			s.err = errTM1637Silent
		}
		s.set(m.clock, false)
		s.set(m.data, false)
	}
	s.set(m.clock, true)
	s.set(m.data, true)
	return s.err
}

// steps moves lines one after the other, until one fails.
type steps struct{ err error }

func (s *steps) set(line *board.Line, high bool) {
	if s.err == nil {
		s.err = line.Set(high)
		time.Sleep(tm1637Half)
	}
}
