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

// ccs811Config is the YAML of ccs811. The chip stretches the clock, which the I2C
// of a Raspberry Pi up to 4 gets wrong unless the bus is slow
// (dtparam=i2c_arm_baudrate=10000) or made by software (dtoverlay=i2c-gpio).
//
// periph's adapter is not used: it asks for no id, cuts what newer firmware says
// down to the range of the old one, and leaves the chip's own errors to its caller.
type ccs811Config struct{ board.I2C }

// The ranges are those of the ScioSense CCS811 datasheet (SC-001232-DS, "eCO2" and
// "TVOC"); older firmware ends at 8192 and 1187. Both are estimates: the chip feels
// organic compounds.
func (c *ccs811Config) Describe() device.Description {
	return device.Description{Model: "CCS811", Points: []device.Point{
		measures("concentration_co2", "[ppm]", "carbon dioxide in the air, estimated", 400, 29206),
		measures("concentration_voc", "[ppb]", "volatile organic compounds in the air", 0, 32768),
	}}
}

const (
	ccs811Status = 0x00
	ccs811Mode   = 0x01
	ccs811Result = 0x02
	ccs811ID     = 0x20
	ccs811Start  = 0xF4 // of the measuring program

	ccs811Measures = 0x10 // each second

	// bits of the status
	ccs811Error   = 0x01
	ccs811Ready   = 0x08
	ccs811Valid   = 0x10
	ccs811Running = 0x80

	ccs811Silent = 5 * time.Second // longer than any pause of a chip that measures
)

// ccs811Errors are what the chip says of itself, by the bits of its register
// ERROR_ID.
var ccs811Errors = []string{"a write to no register", "a read of no register", "a mode that it does not have", "its resistance is beyond its range", "its heater's current is wrong", "its heater has no voltage"}

// ccs811 is a chip that measures by itself.
type ccs811 struct {
	*i2cChip
	at      time.Time // when it was started, or measured last
	started bool      // and has not measured yet
}

// Open finds the chip by its id and starts its measuring. The first measurement is
// there after about a second; until then the points are faults.
func (c *ccs811Config) Open(ctx context.Context) (device.Device, error) {
	var d ccs811
	return openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) error {
			d = ccs811{i2cChip: dev, started: true}
			if err := dev.checkID(ccs811ID, 0x81); err != nil {
				return err
			}
			return d.start()
		},
		read: func(_ *i2cChip, out *driver.Sample) error { return d.read(out) },
	})
}

// start leaves a chip that is running already its baseline.
func (dev *ccs811) start() error {
	status, err := dev.readByte(ccs811Status)
	if err != nil {
		return err
	}
	if status&ccs811Running == 0 {
		if status&ccs811Valid == 0 {
			return errors.New("it has no program to measure with")
		}
		if err := dev.command(time.Millisecond, ccs811Start); err != nil {
			return err
		}
	}
	dev.at = time.Now()
	return dev.write(ccs811Mode, ccs811Measures)
}

func (dev *ccs811) read(out *driver.Sample) error {
	var b [6]byte // two words, the status, the error
	if err := dev.readFrom(ccs811Result, b[:]); err != nil {
		return err
	}
	status := b[4]
	switch {
	case status&ccs811Running == 0:
		return errSettings
	case status&ccs811Error != 0:
		return ccs811Says(b[5])
	case status&ccs811Ready != 0:
		dev.at, dev.started = time.Now(), false
	case time.Since(dev.at) > ccs811Silent:
		return errors.New("it does not measure any more; check its supply")
	case dev.started:
		out.FaultAll("the first measurement takes a second; it is on its way")
		return nil
	}
	out.Number(float64(binary.BigEndian.Uint16(b[0:])))
	out.Number(float64(binary.BigEndian.Uint16(b[2:])))
	out.At(dev.at)
	return nil
}

func ccs811Says(id byte) error {
	for i, what := range ccs811Errors {
		if id>>i&1 != 0 {
			return errors.New("it reports " + what)
		}
	}
	return errors.New("it reports an error that it has no word for")
}
