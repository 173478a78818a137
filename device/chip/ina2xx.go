package chip

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// ina2xxConfig is the YAML of ina219 and ina226.
//
// periph's adapter of the INA219 is not used: it measures no more than 16 V of the
// chip's 26, and drops the bus's own errors. Current and power are computed here
// from the two voltages, so that there is no calibration to lose.
type ina2xxConfig struct {
	board.I2C
	Shunt float64 `json:"shunt" jsonschema:"the resistor that the current flows through, in ohms; 0.1 (R100) on most modules"`

	ina2xx
}

// ina2xx has the differences between the three chips.
type ina2xx struct {
	model    string
	ids      map[byte]uint16 // registers and their values, without the revision
	settings uint16          // 16 measurements for each value, again and again
	takes    time.Duration   // so long
	volts    float64         // the highest voltage
	bus      func(raw uint16) (volts float64)
	shunt    float64 // one count of the shunt's register, in volts
	full     int16   // its largest
}

// The registers and limits are those of Texas Instruments' SBOS448 (INA219), SBOS547
// (INA226) and SBOS656 (INA260).
var (
	ina219 = ina2xx{
		model: "INA219", settings: 0x3E67, takes: 20 * time.Millisecond, volts: 26,
		bus: func(raw uint16) float64 { return float64(raw>>3) * 0.004 }, shunt: 10e-6, full: 32000,
	}
	ina226 = ina2xx{
		model: "INA226", ids: map[byte]uint16{ina2xxMaker: 0x5449, ina2xxDie: 0x2260}, settings: 0x4527, takes: 40 * time.Millisecond, volts: 36,
		bus: func(raw uint16) float64 { return float64(int16(raw)) * 0.00125 }, shunt: 2.5e-6, full: 32767,
	}
	// its register of the current counts 1.25 mA, as if one volt were one ampere
	ina260 = ina2xx{
		model: "INA260", ids: map[byte]uint16{ina2xxMaker: 0x5449, ina2xxDie: 0x2270}, settings: 0x6527, takes: 40 * time.Millisecond, volts: 36,
		bus: ina226.bus, shunt: 1.25e-3, full: 12000,
	}
)

// ina2xxAddresses are those that their two pins can choose.
var ina2xxAddresses = board.Addresses(0x40, 0x4F)

const (
	ina2xxSettings = 0x00
	ina2xxShunt    = 0x01
	ina2xxBus      = 0x02
	ina2xxMaker    = 0xFE
	ina2xxDie      = 0xFF
	ina2xxRevision = 0x000F
)

// Validate finds mistakes without hardware.
func (c *ina2xxConfig) Validate() error {
	if !(c.Shunt >= 0.0001 && c.Shunt <= 100) {
		return device.Faultf(device.Invalid, "shunt: %v ohms is out of range; write 0.0001 to 100, such as 0.1 for a resistor with R100 on it", device.Number(c.Shunt))
	}
	return c.I2C.Validate()
}

// Describe gives the ranges that the chip has with this shunt.
func (c *ina2xxConfig) Describe() device.Description { return c.describe(c.Shunt) }

func (i *ina2xx) describe(shunt float64) device.Description {
	amps := device.Tidy(float64(i.full) * i.shunt / shunt)
	return device.Description{Model: i.model, Points: []device.Point{
		measures("voltage", "V", "voltage of the supply to ground", 0, i.volts),
		measures("current", "A", "current", -amps, amps),
		measures("power", "W", "power", device.Tidy(-amps*i.volts), device.Tidy(amps*i.volts)),
	}}
}

// newINA260 returns the Config of ina260, which has its shunt inside.
func newINA260(at board.I2C) driver.Config {
	return &sensorConfig{at, ina260.describe(1), func(dev *i2cChip) sensor { return ina260.sensor(dev, 1) }}
}

// Open finds the chip.
func (c *ina2xxConfig) Open(ctx context.Context) (device.Device, error) {
	return openSensor(ctx, c.I2C, c.Describe(), func(dev *i2cChip) sensor { return c.sensor(dev, c.Shunt) })
}

// sensor finds the chip by its ids. An INA219 has none, so that it keeps its settings
// has to do.
func (i *ina2xx) sensor(dev *i2cChip, shunt float64) sensor {
	return sensor{
		configure: func() {
			for register, want := range i.ids {
				dev.checkWord(register, ^uint16(ina2xxRevision), want)
			}
			dev.writeWord(ina2xxSettings, i.settings)
			dev.checkWord(ina2xxSettings, 0xFFFF, i.settings)
			dev.sleep(i.takes)
		},
		read: func(out *driver.Sample) { i.read(dev, shunt, out) },
	}
}

func (i *ina2xx) read(dev *i2cChip, shunt float64, out *driver.Sample) {
	// disturbed bytes are a plausible current; the same ones twice are the chip's
	across, bus := dev.readWordTwice(ina2xxShunt), dev.readWordTwice(ina2xxBus)
	// a chip that lost its supply has other settings, and a sleeping chip does not measure
	dev.checkSettings(ina2xxSettings, 0xFFFF, i.settings)
	volts, amps := i.bus(bus), float64(int16(across))*i.shunt/shunt
	largest := device.Tidy(float64(i.full) * i.shunt / shunt)
	out.Near(volts, i.volts/100) // the accuracy of the least accurate, INA219: 1 %
	if n := int16(across); n >= i.full || n <= -i.full {
		out.FaultAll("the current is beyond " + device.Number(largest).String() + " A")
		return
	}
	out.Number(amps)
	out.Near(volts*amps, largest*i.volts/100)
}
