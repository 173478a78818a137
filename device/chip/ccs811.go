package chip

import (
	"encoding/binary"
	"errors"
	"time"

	"agentsite/device/board"
	"agentsite/device/driver"
)

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

// ccs811Errors are the chip's errors, by the bits of its register
// ERROR_ID.
var ccs811Errors = []string{"a write to no register", "a read of no register", "a mode that it does not have", "its resistance is beyond its range", "its heater's current is wrong", "its heater has no voltage"}

// ccs811 is a chip that measures by itself.
type ccs811 struct {
	*i2cChip
	at      time.Time // when it was started, or measured last
	started bool      // and has not measured yet
}

// newCCS811 returns the Config of ccs811. The ranges are those of the ScioSense CCS811
// datasheet (SC-001232-DS, "eCO2" and "TVOC"); older firmware ends at 8192 and 1187. Both are
// estimates: the chip senses organic compounds. The first measurement takes about a second; until
// then the points are faults.
//
// The chip stretches the clock, which the I2C of a Raspberry Pi up to 4 gets wrong. Use a slow bus
// (dtparam=i2c_arm_baudrate=10000) or one in software (dtoverlay=i2c-gpio).
//
// periph's adapter is not used. It reads no ID, truncates the responses of newer firmware down to
// the range of the old one, and leaves the chip's own errors to its caller.
func newCCS811(at board.I2C) driver.Config {
	return &sensorConfig{at, describeAirQuality("CCS811", 29206, 32768), func(dev *i2cChip) sensor {
		d := &ccs811{i2cChip: dev}
		return sensor{configure: d.start, read: d.read}
	}}
}

// start leaves a chip that is running already its baseline.
func (d *ccs811) start() {
	d.checkID(ccs811ID, 0x81)
	status := d.readByte(ccs811Status)
	if status&ccs811Running == 0 {
		if status&ccs811Valid == 0 {
			d.fail(errors.New("it has no firmware for measurements"))
		}
		d.command(time.Millisecond, ccs811Start)
	}
	d.at, d.started = time.Now(), true
	d.write(ccs811Mode, ccs811Measures)
}

func (d *ccs811) read(out *driver.Sample) {
	var b [6]byte // two words, the status, the error
	d.readFrom(ccs811Result, b[:])
	status := b[4]
	switch {
	case status&ccs811Running == 0:
		d.fail(errSettings)
		return
	case status&ccs811Error != 0:
		d.fail(ccs811Says(b[5]))
		return
	case status&ccs811Ready != 0:
		d.at, d.started = time.Now(), false
	case time.Since(d.at) > ccs811Silent:
		d.fail(errors.New("it has stopped measuring; check its supply"))
		return
	case d.started:
		out.FaultAll("the first measurement takes a second; it is on its way")
		return
	}
	out.Number(float64(binary.BigEndian.Uint16(b[0:])))
	out.Number(float64(binary.BigEndian.Uint16(b[2:])))
	out.At(d.at)
}

func ccs811Says(id byte) error {
	for i, what := range ccs811Errors {
		if id>>i&1 != 0 {
			return errors.New("it reports " + what)
		}
	}
	return errors.New("it reports an unknown error")
}
