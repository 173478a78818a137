package chip

import (
	"agentsite/device/board"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/physic"
	"periph.io/x/devices/v3/aht20"
)

const aht20Degrees = 1.5 // its accuracy at the ends of the range (figure 2)

// newAHT20 returns the Config of aht20. The range is that of ASAIR's AHT20 product manual
// (2020, version 1.0, tables 1 and 2). The chip has no id; periph calibrates it where it is
// not.
func newAHT20(at board.I2C) driver.Config {
	return &sensorConfig{at, describeClimate("AHT20", -40, 85), func(dev *i2cChip) sensor {
		var periph *aht20.Dev
		return sensor{
			configure: func() { periph, dev.err = aht20.NewI2C(dev.conn, &aht20.DefaultOpts) },
			read: func(out *driver.Sample) {
				var env physic.Env
				if dev.err = periph.Sense(&env); dev.err == nil {
					out.Near(env.Temperature.Celsius(), aht20Degrees)
					out.Number(float64(env.Humidity) / float64(physic.PercentRH))
				}
			},
		}
	}}
}
