package chip

import (
	"context"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// gaugeConfig is the YAML of max17043.
type gaugeConfig struct {
	board.I2C
	Cells int `json:"cells,omitempty" jsonschema:"lithium cells in series: 1, or 2 for a MAX17041, MAX17044 or MAX17049; 1 when not written"`
}

// The registers are those of Maxim's 19-5210 (MAX17040, MAX17041), 19-4811 (MAX17043, MAX17044) and 19-6171
// (MAX17048, MAX17049). One count of the cell's voltage is 78.125 µV in all of them: the older ones do not
// use the lowest four bits.
const (
	gaugeVoltage = 0x02
	gaugeCharge  = 0x04
	gaugeVersion = 0x08

	gaugeVolts  = 78.125e-6
	gaugeHigh   = 5.12 // of a cell, the largest that the older ones can tell
	gaugeAbsent = 2.0  // of a cell: below, there is no battery, or nothing is measured yet
	gaugeFull   = 3.4  // of a cell: above, it is not at 0 %; before its first result the chip says so
	gaugeOver   = 20   // per cent beyond 100, which the model reports for a cell that is charged higher
)

// Validate finds mistakes without hardware.
func (c *gaugeConfig) Validate() error {
	if c.Cells < 0 || c.Cells > 2 {
		return device.Faultf(device.Invalid, "cells: %d is out of range; write 1, or 2 for a gauge of two cells in series",
			c.Cells)
	}
	return c.I2C.Validate()
}

func (c *gaugeConfig) cells() float64 { return float64(max(c.Cells, 1)) }

// Describe needs no hardware.
func (c *gaugeConfig) Describe() device.Description {
	return device.Description{Model: "MAX17043", Points: []device.Point{
		measures("voltage", "V", "voltage of the battery", 0, device.Tidy(gaugeHigh*c.cells())),
		measures("charge", "%", "charge of the battery, as the gauge estimates it", 0, 100),
	}}
}

// Open finds the chip. It writes nothing to it: a gauge that is started again has to learn again.
func (c *gaugeConfig) Open(ctx context.Context) (device.Device, error) {
	return openSensor(ctx, c.I2C, c.Describe(), func(dev *i2cChip) sensor {
		return sensor{
			configure: func() {
				if v := dev.readWordTwice(gaugeVersion); v == 0 || v == 0xFFFF {
					dev.fail(device.Faultf(device.Invalid, "at %#02x on %s is no %s: its version is %#04x; check the chip and its "+
						"address",
						dev.at.Address, dev.at.Bus, dev.model, v))
				}
			},
			read: func(out *driver.Sample) { c.read(dev, out) },
		}
	})
}

func (c *gaugeConfig) read(dev *i2cChip, out *driver.Sample) {
	charge := dev.readWordTwice(gaugeCharge)
	cell := float64(dev.readWordTwice(gaugeVoltage)) * gaugeVolts
	if cell < gaugeAbsent {
		out.FaultAll("the gauge measures no battery; look whether one is in its holder, the right way round")
		return
	}
	out.Near(cell*c.cells(), 0)
	if charge == 0 && cell >= gaugeFull {
		out.Fault("the gauge has no result yet; it begins to estimate when the battery is inserted")
		return
	}
	out.Near(float64(charge)/256, gaugeOver)
}
