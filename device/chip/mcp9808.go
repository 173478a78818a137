package chip

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/mmr"
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
	s := sensor[*mmr.Dev8]{
		desc: c.Describe(),
		setUp: func(bus i2c.Bus) (*mmr.Dev8, error) {
			dev := bigEndian(bus, c.Address)
			if is, err := dev.ReadUint16(mcp9808Manufacturer); err != nil {
				return nil, err
			} else if is != 0x0054 {
				return nil, another(c.I2C, "MCP9808", is, 0x0054)
			}
			if is, err := dev.ReadUint16(mcp9808Device); err != nil {
				return nil, err
			} else if is>>8 != 0x04 {
				return nil, another(c.I2C, "MCP9808", is, 0x0400)
			}
			if err := dev.WriteUint16(mcp9808Settings, mcp9808Mark); err != nil {
				return nil, err
			}
			if err := dev.WriteUint8(mcp9808Resolution, mcp9808Finest); err != nil {
				return nil, err
			}
			time.Sleep(mcp9808First)
			return dev, nil
		},
		read: func(dev *mmr.Dev8, out *sample) error {
			raw, err := readWord(dev, mcp9808Temperature)
			if err != nil {
				return err
			}
			out.near(float64(int16(raw<<3))/128, mcp9808Degrees) // the highest three bits are alerts
			is, err := dev.ReadUint16(mcp9808Settings)
			if err == nil && is&mcp9808Ours != mcp9808Mark {
				err = errSettings
			}
			return err
		},
	}
	return s.open(ctx, c.I2C)
}
