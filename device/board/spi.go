package board

import (
	"regexp"
	"strconv"
	"sync"

	"agentsite/device"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/host/v3/sysfs"
)

// SPI is the port that a chip is wired to. A chip's Config embeds it; Board.SPI makes it.
type SPI struct {
	Port string `json:"port" jsonschema:"the SPI port, such as spidev0.0: bus 0, chip select 0"`

	board *Board
}

// SPI returns the header's first port.
func (b *Board) SPI() SPI { return SPI{Port: "spidev0.0", board: b} }

var portName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^spidev([0-9]{1,3})\.([0-9]{1,2})$`) })

// Validate finds mistakes without hardware.
func (c SPI) Validate() error {
	if !portName().MatchString(c.Port) {
		return device.Faultf(device.Invalid, "port: %.40q is not an SPI port; write it like spidev0.0", c.Port)
	}
	return nil
}

// Resources returns the port and its lines.
func (c SPI) Resources() []driver.Resource {
	m := portName().FindStringSubmatch(c.Port)
	if m == nil {
		return nil
	}
	return append([]driver.Resource{{Name: c.Port}}, linesOf(c.Port, "spi"+m[1])...)
}

// Conn returns the chip's connection to its port, at this clock at most. It does no I/O.
func (c SPI) Conn(clock physic.Frequency, mode spi.Mode) *SPIConn {
	return &SPIConn{Turn: NewTurn(), at: c, clock: clock, mode: mode}
}

// SPIConn is one chip's connection to its SPI port. Transfers are made between Begin and
// End, and fail once the context of Begin has ended; the kernel serialises the transfers of
// one bus.
type SPIConn struct {
	Turn
	at    SPI
	clock physic.Frequency
	mode  spi.Mode
	port  spi.PortCloser // open from the first transfer to End
	conn  spi.Conn
}

// End closes the port and lets the next call begin.
func (c *SPIConn) End() {
	if c.port != nil {
		c.port.Close() // nothing is buffered in it
	}
	c.port, c.conn = nil, nil
	c.Turn.End()
}

// Tx writes w and reads r at the same time, of the same length; r may be nil. A missing
// chip cannot be detected on SPI.
func (c *SPIConn) Tx(w, r []byte) error {
	if err := c.Ready(); err != nil {
		return err
	}
	if err := c.conn.Tx(w, r); err != nil {
		return device.Faultf(device.Offline, "the transfer on %s failed: %w", c.at.Port, err)
	}
	return nil
}

// Ready opens the port and transfers nothing, to check that there is one.
func (c *SPIConn) Ready() (err error) {
	if err := c.ctx.Err(); err != nil || c.conn != nil {
		return err
	}
	if err := c.at.Validate(); err != nil {
		return err
	}
	m := portName().FindStringSubmatch(c.at.Port)
	bus, _ := strconv.Atoi(m[1])
	chip, _ := strconv.Atoi(m[2])
	if c.port, err = c.at.board.machine.OpenSPI(bus, chip); err != nil {
		return device.Faultf(device.Offline, "/dev/%s cannot be opened; switch SPI on (on a Raspberry Pi dtparam=spi=on in config.txt) and add the user to the group spi: %w", c.at.Port, err)
	}
	if c.conn, err = c.port.Connect(c.clock, c.mode, 8); err != nil {
		return device.Faultf(device.Offline, "%s cannot be set to %s and mode %d: %w", c.at.Port, c.clock, c.mode, err)
	}
	return nil
}

// String is the port's name, for messages.
func (c *SPIConn) String() string { return c.at.Port }

func openSPI(port, chipSelect int) (spi.PortCloser, error) {
	p, err := sysfs.NewSPI(port, chipSelect)
	if err != nil {
		return nil, err // a nil *sysfs.SPI would be a port
	}
	return p, nil
}
