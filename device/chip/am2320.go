package chip

import (
	"encoding/binary"
	"errors"
	"time"

	"agentsite/device/board"
	"agentsite/device/driver"
)

// read registers, from 0, four of them
var am2320Read = []byte{0x03, 0x00, 0x04}

const (
	am2320Degrees, am2320Percent = 0.5, 3 // its accuracy (tables 1 and 2)

	am2320Wakes = time.Millisecond     // 0.8 to 3 ms
	am2320Takes = 2 * time.Millisecond // more than 1.5 ms
)

// newAM2320 returns the Config of am2320. The range is that of Aosong's AM2320 product manual
// (table 1 and 2). The chip has no id, so an answer with the right CRC has to do. It
// measures after it was asked, at most every 2 s: a sample is the measurement that the
// sample before has caused.
//
// periph's adapter is not used: it sleeps for 20 s over a chip that is gone, and
// reads -0.1 degrees as -3276.7.
func newAM2320(at board.I2C) driver.Config {
	return &sensorConfig{at, describeClimate("AM2320", -40, 80), func(dev *i2cChip) sensor {
		return sensor{
			configure: func() { readAM2320(dev) },
			read: func(out *driver.Sample) {
				humidity, temperature := readAM2320(dev)
				degrees := float64(temperature&0x7FFF) / 10
				if temperature&0x8000 != 0 { // a sign, not a complement
					degrees = -degrees
				}
				out.Near(degrees, am2320Degrees)
				out.Near(float64(humidity)/10, am2320Percent)
			},
		}
	}}
}

// readAM2320 wakes the chip, which does not acknowledge that, and reads its registers.
func readAM2320(dev *i2cChip) (humidity, temperature uint16) {
	dev.try([]byte{0}, nil)
	dev.sleep(am2320Wakes)
	dev.command(am2320Takes, am2320Read...)
	var b [8]byte // the command, the four, and their CRC
	dev.transfer(nil, b[:])
	switch {
	case crcModbus(b[:6]) != binary.LittleEndian.Uint16(b[6:]):
		dev.fail(errCRC)
	case b[0] != am2320Read[0] || b[1] != am2320Read[2]:
		dev.fail(errors.New("unexpected response"))
	}
	return binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint16(b[4:])
}

// crcModbus is x¹⁶+x¹⁵+x²+1, lowest bit first, from 0xFFFF.
func crcModbus(b []byte) uint16 {
	crc := uint16(0xFFFF)
	for _, c := range b {
		crc ^= uint16(c)
		for range 8 {
			low := crc & 1
			if crc >>= 1; low != 0 {
				crc ^= 0xA001
			}
		}
	}
	return crc
}
