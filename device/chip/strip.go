package chip

import (
	"context"
	"math"
	"slices"
	"strings"

	"agentsite/device"
	"agentsite/device/board"

	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
)

// stripConfig is the YAML of apa102 and neopixel: a strip of lamps that all have one
// colour.
//
// periph's adapters are not used. They draw pictures, change the colours by a curve and a colour
// temperature, and omit lamps that turned dark during a failed transfer.
type stripConfig struct {
	board.SPI
	Lamps int    `json:"lamps" jsonschema:"how many lamps the strip has"`
	Order string `json:"order" jsonschema:"the order in which the strip takes the colours, such as grb"`
	Safe  colour `json:"safe" jsonschema:"the light that harms nobody, such as { red: 0, green: 0, blue: 0 } for none"`

	strip strip
}

// colour is the brightness of each colour.
type colour struct {
	Red   float64 `json:"red" jsonschema:"0 to 100 percent"`
	Green float64 `json:"green" jsonschema:"0 to 100 percent"`
	Blue  float64 `json:"blue" jsonschema:"0 to 100 percent"`
}

// strip describes a kind of strip. A transfer has at most 4096 bytes, unless the owner configured
// the kernel otherwise, and has to carry the whole strip.
type strip struct {
	model string
	order string // usual
	most  int    // lamps
	clock physic.Frequency
	frame func(lamps int, first, second, third byte) []byte
}

var (
	// Shiny Opto APA102 and iPixel SK9822.
	apa102 = strip{"APA102", "bgr", 900, 4 * physic.MegaHertz, apa102Frame}
	// WorldSemi WS2812B and SK6812 with three colours.
	neopixel = strip{"WS2812B", "grb", 440, 2500 * physic.KiloHertz, neopixelFrame}
)

func newStrip(b *board.Board, s strip) *stripConfig {
	return &stripConfig{SPI: b.SPI(), Order: s.order, strip: s}
}

// Validate finds mistakes without hardware.
func (c *stripConfig) Validate() error {
	letters := []byte(c.Order)
	slices.Sort(letters)
	switch {
	case c.Lamps < 1 || c.Lamps > c.strip.most:
		return device.Faultf(device.Invalid, "lamps: 1 to %d, not %d; more do not fit into one transfer", c.strip.most, c.Lamps)
	case string(letters) != "bgr":
		return device.Faultf(device.Invalid, "order: it has r, g and b once each, such as %s, not %.10q", c.strip.order, c.Order)
	}
	if err := c.SPI.Validate(); err != nil {
		return err
	}
	return c.Describe().Validate()
}

// Describe needs no hardware.
func (c *stripConfig) Describe() device.Description {
	d := device.Description{Model: c.strip.model}
	safe := []float64{c.Safe.Red, c.Safe.Green, c.Safe.Blue}
	for i, name := range []string{"red", "green", "blue"} {
		d.Points = append(d.Points, device.Point{Name: name, Kind: device.KindLevel, Unit: "%", Description: "how bright the strip is in " + name, Range: device.Range{Max: 100}, Safe: device.Number(safe[i])})
	}
	return d
}

// Open does no I/O but to see that there is a port: a strip cannot be asked.
func (c *stripConfig) Open(ctx context.Context) (device.Device, error) {
	conn := c.Conn(c.strip.clock, spi.Mode0)
	l := &lamps{conn: conn, config: c}
	o := &outputs{set: l.set, managedChip: managedChip{desc: c.Describe(), on: conn, setUp: l.writeSafe}}
	if err := o.find(ctx, conn.Ready); err != nil {
		return nil, err
	}
	return o, nil
}

// lamps are those of an opened strip.
type lamps struct {
	conn   *board.SPIConn
	config *stripConfig
	light  [3]float64 // red, green, blue
}

func (l *lamps) writeSafe() error {
	return l.write([3]float64{l.config.Safe.Red, l.config.Safe.Green, l.config.Safe.Blue})
}

func (l *lamps) set(i int, v device.Value) error {
	next := l.light
	next[i] = v.Number()
	return l.write(next)
}

func (l *lamps) write(light [3]float64) error {
	var in [3]byte
	for i, letter := range l.config.Order {
		in[i] = byte(math.Round(light[strings.IndexRune("rgb", letter)] * 255 / 100))
	}
	if err := l.conn.Tx(l.config.strip.frame(l.config.Lamps, in[0], in[1], in[2]), nil); err != nil {
		return err
	}
	l.light = light
	return nil
}

// apa102Frame returns a frame that begins and ends with 32 zero bits, which an SK9822 needs. One
// more bit for every two lamps clocks the last ones in.
func apa102Frame(n int, first, second, third byte) []byte {
	b := make([]byte, 4, 4+4*n+4+n/16+1)
	for range n {
		b = append(b, 0xFF, first, second, third)
	}
	return b[:cap(b)]
}

// neopixelFrame makes three bits of each, of 0.4 us: 110 is a 1 and 100 a 0. It ends
// with the 280 us low that take the colours over, and begins low, because the line
// may have been left high.
func neopixelFrame(n int, first, second, third byte) []byte {
	b := make([]byte, 1, 1+9*n+100)
	for range n {
		for _, c := range [3]byte{first, second, third} {
			var bits uint32
			for i := range 8 {
				bits = bits<<3 | 0b100 | uint32(c>>(7-i)&1)<<1
			}
			b = append(b, byte(bits>>16), byte(bits>>8), byte(bits))
		}
	}
	return b[:cap(b)]
}
