package chip

import (
	"context"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/physic"
	"periph.io/x/devices/v3/aht20"
)

// aht20Config is the YAML of aht20.
type aht20Config struct{ board.I2C }

// The range is that of ASAIR's AHT20 product manual (2020, version 1.0, tables 1
// and 2).
func (c *aht20Config) Describe() device.Description {
	return device.Description{Model: "AHT20", Points: []device.Point{
		measures("temperature", "Cel", "air temperature", -40, 85),
		measures("humidity", "%", "relative humidity", 0, 100),
	}}
}

const aht20Degrees = 1.5 // its accuracy at the ends of the range (figure 2)

// Open finds the chip. It has no id; periph calibrates it where it is not.
func (c *aht20Config) Open(ctx context.Context) (device.Device, error) {
	var periph *aht20.Dev
	return openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) (err error) {
			periph, err = aht20.NewI2C(dev.conn, &aht20.DefaultOpts)
			return err
		},
		read: func(_ *i2cChip, out *driver.Sample) error {
			var env physic.Env
			if err := periph.Sense(&env); err != nil {
				return err
			}
			out.Near(env.Temperature.Celsius(), aht20Degrees)
			out.Number(float64(env.Humidity) / float64(physic.PercentRH))
			return nil
		},
	})
}
