package chip

import (
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

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

// newMCP9808 returns the Config of mcp9808. The range is that of Microchip DS25095A
// ("Temperature Characteristics").
//
// periph's adapter is not used. It does not read the id, returns the 0 degrees before the first
// conversion as a temperature, and drops the bus's own errors.
func newMCP9808(at board.I2C) driver.Config {
	desc := device.Description{Model: "MCP9808", Points: []device.Point{measures("temperature", "Cel", "temperature", -40, 125)}}
	return &sensorConfig{at, desc, func(dev *i2cChip) sensor {
		return sensor{
			configure: func() {
				dev.checkWord(mcp9808Manufacturer, 0xFFFF, 0x0054)
				dev.checkWord(mcp9808Device, 0xFF00, 0x0400)
				dev.writeWord(mcp9808Settings, mcp9808Mark)
				dev.command(mcp9808First, mcp9808Resolution, mcp9808Finest)
			},
			read: func(out *driver.Sample) {
				raw := dev.readWordTwice(mcp9808Temperature)
				out.Near(float64(int16(raw<<3))/128, mcp9808Degrees) // the highest three bits are alerts
				dev.checkSettings(mcp9808Settings, mcp9808Ours, mcp9808Mark)
			},
		}
	}}
}
