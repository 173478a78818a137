package chip

import (
	"encoding/binary"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

const (
	bh1750Longest = 180 * time.Millisecond // of a measurement at 1 lx
	bh1750Measure = 0x20                   // once, at 1 lx; the chip sleeps afterwards
)

// bh1750Start switches the chip on and sets the usual sensitivity, 69, in two parts.
var bh1750Start = []byte{0x01, 0x42, 0x65}

// newBH1750 returns the Config of bh1750. The range is all that 16 bits hold at 1.2 counts per
// lux (ROHM BH1750FVI, 2011.11 Rev. D, "Measurement Accuracy"). The chip has no id, and no register
// but the result: one that answers zeros only cannot be told from darkness.
//
// periph's adapter is not used: where it means to turn the chip on or off it clears
// the result, and it cuts the fraction off.
func newBH1750(at board.I2C) driver.Config {
	desc := device.Description{Model: "BH1750", Points: []device.Point{measures("illuminance", "lx", "brightness", 0, 54612)}}
	return &sensorConfig{at, desc, func(dev *i2cChip) sensor {
		return sensor{
			configure: func() {
				for _, command := range bh1750Start {
					dev.write(command)
				}
			},
			read: func(out *driver.Sample) {
				var raw [2]byte
				// zeros and ones are measured once more: the chip also returns zero after a loss of
				// supply or a disturbance, and has no register that tells
				for range 2 {
					dev.command(bh1750Longest, bh1750Measure)
					if dev.transfer(nil, raw[:]); !uniform(raw[:]) {
						break
					}
				}
				n := binary.BigEndian.Uint16(raw[:])
				if n == 0xFFFF {
					out.Fault("it is brighter than the chip can measure; put it in the shade, or behind a filter")
					return
				}
				out.Number(float64(n) / 1.2)
			},
		}
	}}
}
