package chip

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
)

// mcp3008Config is the YAML of mcp3008. periph has no adapter.
type mcp3008Config struct {
	board.SPI
	Channels  []int   `json:"channels" jsonschema:"the inputs to measure, 0 to 7; all eight when not written"`
	Reference float64 `json:"reference" jsonschema:"the volts at the chip's pin VREF, the most that it can measure"`
}

// Microchip MCP3008, DS21295: 10 bits, straight binary from 0 to VREF (figure 4-2).
// The clock rate is within the limit at 2.7 V.
const (
	mcp3008Channels = 8
	mcp3008Steps    = 1024
	mcp3008Clock    = physic.MegaHertz
)

// Validate finds mistakes without hardware.
func (c *mcp3008Config) Validate() error {
	if !(c.Reference >= 0.25 && c.Reference <= 5.5) {
		return device.Faultf(device.Invalid, "reference: VREF is 0.25 to 5.5 V, not %v", device.Number(c.Reference))
	}
	if len(c.Channels) == 0 {
		return device.Faultf(device.Invalid, "channels: the list is empty; remove the key to measure all eight")
	}
	for i, channel := range c.Channels {
		if channel < 0 || channel >= mcp3008Channels {
			return device.Faultf(device.Invalid, "channels: an MCP3008 has 0 to 7, not %d", channel)
		}
		if slices.Contains(c.Channels[:i], channel) {
			return device.Faultf(device.Invalid, "channels: %d is written twice", channel)
		}
	}
	return c.SPI.Validate()
}

// Describe needs no hardware.
func (c *mcp3008Config) Describe() device.Description {
	d := device.Description{Model: "MCP3008"}
	for _, channel := range c.Channels {
		number := strconv.Itoa(channel)
		d.Points = append(d.Points, device.Point{Name: "voltage" + number, Kind: device.KindMeasurement, Unit: "V", Description: "voltage at input " + number, Range: device.Range{Max: c.Reference}})
	}
	return d
}

// Open measures once, to test the port and the chip.
func (c *mcp3008Config) Open(ctx context.Context) (device.Device, error) {
	conn := c.Conn(mcp3008Clock, spi.Mode0)
	m := &mcp3008{managedChip: managedChip{desc: c.Describe(), on: conn, setUp: func() error { return nil }}, conn: conn, config: c}
	if _, err := m.Sample(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// mcp3008 is the chip. It has nothing to set up.
type mcp3008 struct {
	managedChip
	conn   *board.SPIConn
	config *mcp3008Config
}

var errSilent = errors.New("no response; check its supply, MISO and the chip select")

// Sample converts each channel.
func (m *mcp3008) Sample(ctx context.Context) ([]device.Reading, error) {
	return m.sample(ctx, func(out *driver.Sample) error {
		for _, channel := range m.config.Channels {
			var r [3]byte
			if err := m.conn.Tx([]byte{0x01, 0x80 | byte(channel)<<4, 0}, r[:]); err != nil {
				return err
			}
			if r[1]&0x04 != 0 { // the chip begins with a 0 (figure 6-1)
				return errSilent
			}
			raw := int(r[1]&0x03)<<8 | int(r[2])
			out.Number(float64(raw) * m.config.Reference / mcp3008Steps)
		}
		return nil
	})
}
