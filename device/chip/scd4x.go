package chip

import (
	"slices"
	"time"

	"agentsite/device/board"
	"agentsite/device/driver"
)

var (
	scd4xWake   = []byte{0x36, 0xF6}
	scd4xStop   = []byte{0x3F, 0x86}
	scd4xSerial = []byte{0x36, 0x82}
	scd4xStart  = []byte{0x21, 0xB1}
	scd4xReady  = []byte{0xE4, 0xB8}
	scd4xRead   = []byte{0xEC, 0x05}
)

const (
	scd4xAwake   = 30 * time.Millisecond
	scd4xStopped = 500 * time.Millisecond // until it listens again
	scd4xSoon    = time.Millisecond
	scd4xEvery   = 5 * time.Second // it measures
	scd4xDegrees = 1.5             // its accuracy (table 3)
)

// scd4x is a chip that measures continuously, with its last result.
type scd4x struct {
	*i2cChip
	since time.Time // when it was started, or measured last
	last  []float64 // none before the first measurement
}

// newSCD4x returns the Config of scd4x. The ranges are those of Sensirion's SCD4x datasheet
// (version 1.7, tables 1 to 3). The chip reports up to 40000 ppm, and is calibrated for 400 to 2000
// or 5000. It returns 0 after a failed measurement.
//
// The chip measures every 5 s, and returns each measurement once. A sample in between repeats the
// last one, with its time. Until the first measurement, and after three periods without one, the
// points are faults.
//
// periph's adapter is not used: a sample waits for up to 11 s, without regard to the caller's
// deadline, and it does not identify the chip.
func newSCD4x(at board.I2C) driver.Config {
	desc := describeClimate("SCD4x", -10, 60)
	desc.Points = slices.Insert(desc.Points, 0, measures("concentration_co2", "[ppm]", "carbon dioxide in the air", 1, 40000))
	return &sensorConfig{at, desc, func(dev *i2cChip) sensor {
		d := &scd4x{i2cChip: dev}
		return sensor{configure: d.start, read: d.read, halt: func() { dev.write(scd4xStop...) }}
	}}
}

// start starts the measuring, once the serial number has shown that it is this chip: no
// other kind has its CRC by accident.
func (d *scd4x) start() {
	// a sleeping chip does not acknowledge the wake-up, and a measuring chip accepts hardly any
	// command but stop
	d.try(scd4xWake, nil)
	d.sleep(scd4xAwake)
	d.command(scd4xStopped, scd4xStop...)
	d.words(scd4xSerial, scd4xSoon, 3)
	d.since, d.last = time.Now(), nil
	d.write(scd4xStart...)
}

func (d *scd4x) read(out *driver.Sample) {
	ready := d.words(scd4xReady, scd4xSoon, 1)
	if ready[0]&0x07FF != 0 {
		got := d.words(scd4xRead, scd4xSoon, 3)
		d.since = time.Now()
		d.last = []float64{float64(got[0]), -45 + 175*share(got[1]), 100 * share(got[2])}
	}
	switch waited := time.Since(d.since); {
	case waited > 3*scd4xEvery:
		d.fail(errSettings) // it does not measure any more
	case d.last == nil:
		out.FaultAll("the first measurement takes 5 s; it is on its way")
	default:
		d.tell(out)
	}
}

// tell adds the last measurement, from when it was taken.
func (d *scd4x) tell(out *driver.Sample) {
	if d.last[0] == 0 {
		out.Fault("the carbon dioxide measurement failed")
	} else {
		out.Number(d.last[0])
	}
	out.Near(d.last[1], scd4xDegrees)
	out.Number(d.last[2])
	out.At(d.since)
}
