package chip

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// mcp9808Config is the YAML of mcp9808.
//
// periph's adapter is not used: it does not ask for the id, takes the 0 degrees
// before the first conversion for a temperature, and drops the bus's own errors.
type mcp9808Config struct{ board.I2C }

// The range is that of Microchip DS25095A ("Temperature Characteristics").
func (c *mcp9808Config) Describe() device.Description {
	return device.Description{Model: "MCP9808", Points: []device.Point{measures("temperature", "Cel", "temperature", -40, 125)}}
}

const (
	mcp9808Settings     = 0x01
	mcp9808Temperature  = 0x05
	mcp9808Manufacturer = 0x06
	mcp9808Device       = 0x07 // and its revision
	mcp9808Resolution   = 0x08 // of 8 bits; 0.0625 degrees after power-on

	mcp9808First = 250 * time.Millisecond // the longest conversion; until it has ended the chip reads 0 degrees

	// mcp9808Mark are the chip's settings: no alert, no sleep, and a hysteresis of the
	// alerts that are off (register 5-2, page 18). After power-on that is 0, so that it
	// shows whether the settings are ours still.
	mcp9808Mark    = 0x0200
	mcp9808Ours    = 0x0700 // with the bit that makes it sleep; below are the alerts
	mcp9808Finest  = 3      // 0.0625 degrees
	mcp9808Degrees = 1      // its accuracy
)

// Open finds the chip by its two ids.
func (c *mcp9808Config) Open(ctx context.Context) (device.Device, error) {
	return openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) error {
			if err := dev.checkWord(mcp9808Manufacturer, 0xFFFF, 0x0054); err != nil {
				return err
			}
			if err := dev.checkWord(mcp9808Device, 0xFF00, 0x0400); err != nil {
				return err
			}
			if err := dev.writeWord(mcp9808Settings, mcp9808Mark); err != nil {
				return err
			}
			return dev.command(mcp9808First, mcp9808Resolution, mcp9808Finest)
		},
		read: func(dev *i2cChip, out *driver.Sample) error {
			raw, err := dev.readSteadyWord(mcp9808Temperature)
			if err != nil {
				return err
			}
			out.Near(float64(int16(raw<<3))/128, mcp9808Degrees) // the highest three bits are alerts
			return dev.checkSettings(mcp9808Settings, mcp9808Ours, mcp9808Mark)
		},
	})
}
