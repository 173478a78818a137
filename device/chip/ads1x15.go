package chip

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// ads1x15Config is the YAML of ads1115 and ads1015.
//
// periph's adapter is not used. It reads the result after the nominal time of a conversion, which
// may be 10 % too early, and then gets that of the channel before. It does not distinguish a value
// at its limit from one beyond.
type ads1x15Config struct {
	board.I2C
	Channels []string `json:"channels" jsonschema:"what to measure: inputs to ground (0, 1, 2, 3) and differences (0-1, 0-3, 1-3, 2-3); all four inputs when not written"`
	Gain     string   `json:"gain" jsonschema:"2/3, 1, 2, 4, 8 or 16: measures up to 6.144, 4.096, 2.048, 1.024, 0.512 or 0.256 V; 2/3 when not written"`

	model string
}

func newADS1x15(b *board.Board, model string) *ads1x15Config {
	return &ads1x15Config{b.I2C(0x48, 0x49, 0x4A, 0x4B), []string{"0", "1", "2", "3"}, "2/3", model}
}

// The two tables of the settings (Texas Instruments SBAS444, SBAS473: "Config
// Register", MUX and PGA), in the order of their bits.
var (
	ads1x15Channels = []string{"0-1", "0-3", "1-3", "2-3", "0", "1", "2", "3"}
	ads1x15Gains    = []string{"2/3", "1", "2", "4", "8", "16"}
	ads1x15Volts    = []float64{6.144, 4.096, 2.048, 1.024, 0.512, 0.256}
)

// Validate finds mistakes without hardware.
func (c *ads1x15Config) Validate() error {
	if !slices.Contains(ads1x15Gains, c.Gain) {
		return device.Faultf(device.Invalid, "gain: %.20q is not supported by this chip; use %s", c.Gain, strings.Join(ads1x15Gains, ", "))
	}
	if len(c.Channels) == 0 {
		return device.Faultf(device.Invalid, "channels: the list is empty; remove the key to measure all four inputs")
	}
	for i, channel := range c.Channels {
		if !slices.Contains(ads1x15Channels, channel) {
			return device.Faultf(device.Invalid, "channels: %.20q is not supported by this chip; use %s", channel, strings.Join(ads1x15Channels, ", "))
		}
		if slices.Contains(c.Channels[:i], channel) {
			return device.Faultf(device.Invalid, "channels: %s is written twice", channel)
		}
	}
	return c.I2C.Validate()
}

// The inputs stand 0.3 V below ground and above the supply of at most 5.5 V
// (SBAS444, "Recommended Operating Conditions" and "Absolute Maximum Ratings").
func (c *ads1x15Config) Describe() device.Description {
	d := device.Description{Model: c.model}
	most := min(c.volts(), 5.8)
	for _, channel := range c.Channels {
		p := measures("voltage"+channel, "V", "voltage at input "+channel, max(-0.3, -most), most)
		if strings.Contains(channel, "-") {
			p.Description, p.Range.Min = "voltage between the inputs "+channel, -most
		}
		d.Points = append(d.Points, p)
	}
	return d
}

func (c *ads1x15Config) volts() float64 {
	return ads1x15Volts[max(0, slices.Index(ads1x15Gains, c.Gain))] // Describe may come before Validate
}

const (
	ads1x15Result   = 0x00
	ads1x15Settings = 0x01

	ads1x15Idle = 0x8000 // read: no conversion is going on; written: begin one
	// ads1x15Single is one conversion at a time, 128 (ADS1015: 1600) in a second, and no
	// comparator. The polarity of its output, which then means nothing, is not that after
	// power-on, so that it shows whether the settings are ours still.
	ads1x15Single = 0x018B
)

// Open finds the chip. It has no id, so that it keeps its settings has to do.
func (c *ads1x15Config) Open(ctx context.Context) (device.Device, error) {
	return openSensor(ctx, c.I2C, c.Describe(), func(dev *i2cChip) sensor {
		return sensor{
			configure: func() {
				dev.writeWord(ads1x15Settings, ads1x15Single)
				dev.checkWord(ads1x15Settings, ^uint16(ads1x15Idle), ads1x15Single)
			},
			read: func(out *driver.Sample) {
				for _, channel := range c.Channels {
					c.tell(dev, c.convert(dev, channel), out)
				}
			},
		}
	})
}

// convert measures one channel and takes its result only after the chip has said
// that it is done, with the settings that it was given.
func (c *ads1x15Config) convert(dev *i2cChip, channel string) (raw uint16) {
	set := uint16(ads1x15Single | slices.Index(ads1x15Channels, channel)<<12 | slices.Index(ads1x15Gains, c.Gain)<<9)
	dev.writeWord(ads1x15Settings, ads1x15Idle|set)
	nominal := time.Second / 128
	if c.model == "ADS1015" {
		nominal = time.Second / 1600
	}
	for range 3 { // the first is enough, unless the chip is slower than it may be
		dev.sleep(nominal * 11 / 10)
		is := dev.readWord(ads1x15Settings)
		if is&^ads1x15Idle != set {
			dev.fail(errSettings)
		}
		if is&ads1x15Idle != 0 {
			raw = dev.readWordTwice(ads1x15Result)
			dev.checkSettings(ads1x15Settings, ^uint16(ads1x15Idle), set) // it was not lost before the result was read
			return raw
		}
	}
	dev.fail(errors.New("its conversion does not finish"))
	return 0
}

func (c *ads1x15Config) tell(dev *i2cChip, raw uint16, out *driver.Sample) {
	largest := uint16(0x7FFF)
	if c.model == "ADS1015" {
		largest = 0x7FF0
		if raw&0x0F != 0 {
			dev.fail(device.Faultf(device.Invalid, "at %#02x on %s is an ADS1115, not an ADS1015: it has 16 bits; write \"driver: ads1115\"", c.Address, c.Bus))
		}
	}
	if raw == largest || raw == 0x8000 {
		out.Fault("the voltage is beyond " + device.Number(c.volts()).String() + " V; write a smaller gain, or divide it")
		return
	}
	out.Separate(float64(int16(raw))*c.volts()/0x8000, 0)
}
