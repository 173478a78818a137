package chip

import (
	"context"
	"encoding/binary"
	"time"

	"agentsite/device"
	"agentsite/device/board"

	"periph.io/x/conn/v3/i2c"
)

// bh1750Config is the YAML of bh1750.
//
// periph's adapter is not used: where it means to turn the chip on or off it clears
// the result, and it cuts the fraction off.
type bh1750Config struct{ board.I2C }

// The range is all that 16 bits hold at 1.2 counts per lux (ROHM BH1750FVI,
// 2011.11 Rev. D, "Measurement Accuracy").
func (c *bh1750Config) Describe() device.Description {
	return device.Description{Model: "BH1750", Points: []device.Point{measures("illuminance", "lx", "brightness", 0, 54612)}}
}

const bh1750Longest = 180 * time.Millisecond // of a measurement at 1 lx

var (
	bh1750On      = []byte{0x01}
	bh1750Time    = [][]byte{{0x42}, {0x65}} // the usual sensitivity, 69, in two parts
	bh1750Measure = []byte{0x20}             // once, at 1 lx; the chip sleeps afterwards
)

// Open finds the chip. It has no id.
func (c *bh1750Config) Open(ctx context.Context) (device.Device, error) {
	s := sensor[*i2c.Dev]{
		desc: c.Describe(),
		setUp: func(bus i2c.Bus) (*i2c.Dev, error) {
			dev := &i2c.Dev{Bus: bus, Addr: c.Address}
			for _, command := range append([][]byte{bh1750On}, bh1750Time...) {
				if err := dev.Tx(command, nil); err != nil {
					return nil, err
				}
			}
			return dev, nil
		},
		read: func(dev *i2c.Dev, out *sample) error {
			var raw [2]byte
			// zeros and ones are measured once more: it says zero, too, when it was
			// without supply meanwhile or the wires were disturbed, and cannot be asked
			for range 2 {
				if err := dev.Tx(bh1750Measure, nil); err != nil {
					return err
				}
				time.Sleep(bh1750Longest)
				if err := dev.Tx(nil, raw[:]); err != nil {
					return err
				}
				if !uniform(raw[:]) {
					break
				}
			}
			n := binary.BigEndian.Uint16(raw[:])
			if n == 0xFFFF {
				out.lacks("it is brighter than the chip can measure; put it in the shade, or behind a filter")
				return nil
			}
			out.number(float64(n) / 1.2)
			return nil
		},
	}
	return s.open(ctx, c.I2C)
}
