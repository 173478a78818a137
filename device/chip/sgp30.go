package chip

import (
	"time"

	"agentsite/device/board"
	"agentsite/device/driver"
)

var (
	sgp30Features = []byte{0x20, 0x2F}
	sgp30Start    = []byte{0x20, 0x03}
	sgp30Measure  = []byte{0x20, 0x08}
	sgp30Baseline = []byte{0x20, 0x15}
)

const (
	sgp30Soon   = 10 * time.Millisecond
	sgp30Takes  = 12 * time.Millisecond
	sgp30Warm   = 15 * time.Second // until then it returns 400 and 0 (page 8)
	sgp30Asks   = time.Hour        // until the baseline is valid, by Sensirion's own driver
	sgp30Learns = 90 * time.Minute // and surely after so long
	sgp30Every  = time.Second      // "to ensure proper operation of the dynamic baseline compensation"
	sgp30Enough = sgp30Every * 9 / 10
)

// sgp30 is a chip that must be read each second, with its last result.
type sgp30 struct {
	*i2cChip
	started, at time.Time
	last        [2]float64
	learnt      bool // it had a baseline
	doubt       bool // of the last
}

// newSGP30 returns the Config of sgp30. The ranges are those of Sensirion's SGP30 datasheet
// (version 1.0, table 2). Both are estimates: the chip senses hydrogen and ethanol. While it warms
// up, for the first 15 s and after an error, its points are faults.
//
// periph's adapter is not used. It sleeps for 20 s when it is made, ignores the CRC, and writes the
// errors of a goroutine of its own to the log.
func newSGP30(at board.I2C) driver.Config {
	return &sensorConfig{at, describeAirQuality("SGP30", 60000, 60000), func(dev *i2cChip) sensor {
		d := &sgp30{i2cChip: dev}
		return sensor{configure: d.start, read: d.read, every: sgp30Every}
	}}
}

// start starts the measurement of a chip that identifies itself as an SGP30.
func (d *sgp30) start() {
	if features := d.words(sgp30Features, sgp30Soon, 1); features[0]>>12 != 0 {
		d.fail(d.otherChip(features[0], 0x0022))
	}
	*d = sgp30{i2cChip: d.i2cChip, started: time.Now()}
	d.command(sgp30Soon, sgp30Start...)
}

// read asks at most once a second, as the datasheet demands, however often it is sampled.
func (d *sgp30) read(out *driver.Sample) {
	if time.Since(d.at) >= sgp30Enough {
		got := d.words(sgp30Measure, sgp30Takes, 2)
		d.at, d.last = time.Now(), [2]float64{float64(got[0]), float64(got[1])}
		d.doubt = d.idle()
	}
	switch {
	case d.at.Sub(d.started) < sgp30Warm:
		out.FaultAll("the chip warms up, for 15 s")
	case d.doubt:
		out.FaultAll("it reads what it reads while it does not measure; in its first hour that cannot be told from the cleanest air")
	default:
		out.Number(d.last[0])
		out.Number(d.last[1])
		out.At(d.at)
	}
}

// idle reports whether the chip may have lost its supply since it was started, and not measure.
// Then it reads 400 and 0, as in the cleanest air. Once it has had a baseline, a missing baseline
// proves that: this is an error, and the chip is started again.
func (d *sgp30) idle() (doubt bool) {
	age := d.at.Sub(d.started)
	clean := d.last == [2]float64{400, 0} && age >= sgp30Warm
	if !clean && (d.learnt || age < sgp30Asks) {
		return false
	}
	got := d.words(sgp30Baseline, sgp30Soon, 2)
	switch {
	case got[0] != 0 || got[1] != 0:
		d.learnt = true
		return false
	case d.learnt || age > sgp30Learns:
		d.fail(errSettings)
	}
	return clean
}
