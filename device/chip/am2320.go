package chip

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// am2320Config is the YAML of am2320.
//
// periph's adapter is not used: it sleeps for 20 s over a chip that is gone, and
// reads -0.1 degrees as -3276.7.
type am2320Config struct{ board.I2C }

// The range is that of Aosong's AM2320 product manual (table 1 and 2).
func (c *am2320Config) Describe() device.Description {
	return device.Description{Model: "AM2320", Points: []device.Point{
		measures("temperature", "Cel", "air temperature", -40, 80),
		measures("humidity", "%", "relative humidity", 0, 100),
	}}
}

// read registers, from 0, four of them
var am2320Read = []byte{0x03, 0x00, 0x04}

const (
	am2320Degrees, am2320Percent = 0.5, 3 // its accuracy (tables 1 and 2)

	am2320Wakes = time.Millisecond     // 0.8 to 3 ms
	am2320Takes = 2 * time.Millisecond // more than 1.5 ms
)

// Open finds the chip by an answer with the right CRC; it has no id. The chip
// measures after it was asked, at most every 2 s: a sample is the measurement that
// the sample before has caused.
func (c *am2320Config) Open(ctx context.Context) (device.Device, error) {
	return openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) error {
			_, err := readAM2320(dev)
			return err
		},
		read: func(dev *i2cChip, out *driver.Sample) error {
			b, err := readAM2320(dev)
			if err != nil {
				return err
			}
			humidity, temperature := binary.BigEndian.Uint16(b[0:]), binary.BigEndian.Uint16(b[2:])
			degrees := float64(temperature&0x7FFF) / 10
			if temperature&0x8000 != 0 { // a sign, not a complement
				degrees = -degrees
			}
			out.Near(degrees, am2320Degrees)
			out.Near(float64(humidity)/10, am2320Percent)
			return nil
		},
	})
}

// readAM2320 wakes the chip, which does not acknowledge that, and reads its four
// registers.
func readAM2320(dev *i2cChip) ([]byte, error) {
	_ = dev.write(0)
	if err := dev.conn.Sleep(am2320Wakes); err != nil {
		return nil, err
	}
	if err := dev.command(am2320Takes, am2320Read...); err != nil {
		return nil, err
	}
	var b [8]byte // the command, the four, and their CRC
	if err := dev.tx(nil, b[:]); err != nil {
		return nil, err
	}
	switch {
	case crcModbus(b[:6]) != binary.LittleEndian.Uint16(b[6:]):
		return nil, errCRC
	case b[0] != am2320Read[0] || b[1] != am2320Read[2]:
		return nil, errors.New("it answers something else than it was asked")
	}
	return b[2:6], nil
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
