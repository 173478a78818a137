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

	mcp9808First = 250 * time.Millisecond // the longest conversion
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
			if err := dev.WriteUint16(mcp9808Settings, 0); err != nil { // no alert, no sleep
				return nil, err
			}
			if err := dev.WriteUint8(mcp9808Resolution, 3); err != nil {
				return nil, err
			}
			time.Sleep(mcp9808First)
			return dev, nil
		},
		read: func(dev *mmr.Dev8, out *sample) error {
			raw, err := dev.ReadUint16(mcp9808Temperature)
			if err != nil {
				return err
			}
			out.number(float64(int16(raw<<3)) / 128) // the highest three bits are alerts
			return nil
		},
	}
	return s.open(ctx, c.I2C)
}
