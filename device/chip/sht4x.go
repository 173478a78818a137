package chip

import (
	"time"

	"agentsite/device/board"
	"agentsite/device/driver"
)

var (
	sht4xSerial  = []byte{0x89}
	sht4xMeasure = []byte{0xFD} // high precision, no heater
)

const (
	sht4xLongest = 9 * time.Millisecond // 8.3 ms in the datasheet
	sht4xDegrees = 0.9                  // its accuracy at the ends of the range (figure 3)
)

// newSHT4x returns the Config of sht4x. The range is that of Sensirion's SHT4x datasheet
// (version 6.5, table 1 and 2). The chip is known by its serial number, whose CRC no other
// kind of chip has by accident. periph has no adapter.
func newSHT4x(at board.I2C) driver.Config {
	return &sensorConfig{at, describeClimate("SHT4x", -40, 125), func(dev *i2cChip) sensor {
		return sensor{
			configure: func() { dev.words(sht4xSerial, time.Millisecond, 2) },
			read: func(out *driver.Sample) {
				got := dev.words(sht4xMeasure, sht4xLongest, 2)
				out.Near(-45+175*share(got[0]), sht4xDegrees)
				// "values that are non-physical may be reported … cropping": section 4.6
				out.Number(min(max(-6+125*share(got[1]), 0), 100))
			},
		}
	}}
}
