package chip

import (
	"context"
	"strings"

	"agentsite/device"
	"agentsite/device/board"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/devices/v3/bmxx80"
)

// bmxx80Config is the YAML of bme280, bmp280 and bmp180.
type bmxx80Config struct {
	board.I2C
	model string
}

// The ranges are those of the datasheets, "operation range, full accuracy" not
// asked for: BST-BME280-DS002 (1.1, 1.2, 1.3), BST-BMP280-DS001 (table 2),
// BST-BMP180-DS000 (1). The pressure is in Pa, the humidity in % of saturation.
func (c *bmxx80Config) Describe() device.Description {
	d := device.Description{Model: c.model, Points: []device.Point{
		{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel", Description: "air temperature", Range: device.Range{Min: -40, Max: 85}},
		{Name: "pressure", Kind: device.KindMeasurement, Unit: "Pa", Description: "air pressure", Range: device.Range{Min: 30000, Max: 110000}},
	}}
	if c.model == "BME280" {
		d.Points = append(d.Points, device.Point{Name: "humidity", Kind: device.KindMeasurement, Unit: "%", Description: "relative humidity", Range: device.Range{Max: 100}})
	}
	return d
}

// Open finds the chip and checks by its id that it is the one that was written.
func (c *bmxx80Config) Open(ctx context.Context) (device.Device, error) {
	s := sensor[*bmxx80.Dev]{
		desc: c.Describe(),
		setUp: func(bus i2c.Bus) (*bmxx80.Dev, error) {
			dev, err := bmxx80.NewI2C(bus, c.Address, &bmxx80.DefaultOpts)
			if err == nil && !strings.HasPrefix(dev.String(), c.model) {
				found, _, _ := strings.Cut(dev.String(), "{")
				err = device.Faultf(device.Invalid, "at %#02x on %s is a %s, not a %s; write \"driver: %s\"", c.Address, c.Bus, found, c.model, strings.ToLower(found))
			}
			return dev, err
		},
		read: func(dev *bmxx80.Dev, out *sample) error {
			var env physic.Env
			if err := dev.Sense(&env); err != nil {
				return err
			}
			out.number(env.Temperature.Celsius())
			out.number(float64(env.Pressure) / float64(physic.Pascal))
			if c.model == "BME280" {
				out.number(float64(env.Humidity) / float64(physic.PercentRH))
			}
			return nil
		},
	}
	return s.open(ctx, c.I2C)
}
