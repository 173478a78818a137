package chip

import (
	"context"
	"encoding/binary"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
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

const (
	bh1750Longest = 180 * time.Millisecond // of a measurement at 1 lx
	bh1750Measure = 0x20                   // once, at 1 lx; the chip sleeps afterwards
)

// bh1750Start switches the chip on and sets the usual sensitivity, 69, in two parts.
var bh1750Start = []byte{0x01, 0x42, 0x65}

// Open finds the chip. It has no id.
func (c *bh1750Config) Open(ctx context.Context) (device.Device, error) {
	return openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) error {
			for _, command := range bh1750Start {
				if err := dev.write(command); err != nil {
					return err
				}
			}
			return nil
		},
		read: func(dev *i2cChip, out *driver.Sample) error {
			var raw [2]byte
			// zeros and ones are measured once more: it says zero, too, when it was
			// without supply meanwhile or the wires were disturbed, and cannot be asked
			for range 2 {
				if err := dev.command(bh1750Longest, bh1750Measure); err != nil {
					return err
				}
				if err := dev.tx(nil, raw[:]); err != nil {
					return err
				}
				if !uniform(raw[:]) {
					break
				}
			}
			n := binary.BigEndian.Uint16(raw[:])
			if n == 0xFFFF {
				out.Fault("it is brighter than the chip can measure; put it in the shade, or behind a filter")
				return nil
			}
			out.Number(float64(n) / 1.2)
			return nil
		},
	})
}
