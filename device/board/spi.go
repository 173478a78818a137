package board

import (
	"regexp"
	"strconv"

	"agentsite/device"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/spi"
	"periph.io/x/host/v3/sysfs"
)

// SPI is where a chip is wired. A chip's Config embeds it; Board.SPI makes it.
type SPI struct {
	Port string `json:"port" jsonschema:"the SPI port, such as spidev0.0: bus 0, chip select 0"`

	board *Board
}

// SPI is the place of a chip on the header's first port.
func (b *Board) SPI() SPI { return SPI{Port: "spidev0.0", board: b} }

var portName = regexp.MustCompile(`^spidev([0-9]{1,3})\.([0-9]{1,2})$`)

// Validate finds mistakes without hardware.
func (c SPI) Validate() error {
	if !portName.MatchString(c.Port) {
		return device.Faultf(device.Invalid, "port: %.40q is not an SPI port; write it like spidev0.0", c.Port)
	}
	return nil
}

// Claims are the port and its lines.
func (c SPI) Claims() []driver.Claim {
	m := portName.FindStringSubmatch(c.Port)
	if m == nil {
		return nil
	}
	return append([]driver.Claim{{What: c.Port}}, linesOf(c.Port, "spi"+m[1])...)
}

// Open opens the port. The caller closes it.
func (c SPI) Open() (spi.PortCloser, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := portName.FindStringSubmatch(c.Port)
	bus, _ := strconv.Atoi(m[1])
	chip, _ := strconv.Atoi(m[2])
	p, err := c.board.openSPI(bus, chip)
	if err != nil {
		return nil, device.Faultf(device.Offline, "there is no /dev/%s to be had; switch SPI on (on a Raspberry Pi dtparam=spi=on in config.txt) and add the user to the group spi: %w", c.Port, err)
	}
	return p, nil
}

func openSPI(port, chipSelect int) (spi.PortCloser, error) {
	p, err := sysfs.NewSPI(port, chipSelect)
	if err != nil {
		return nil, err // a nil *sysfs.SPI would be a port
	}
	return p, nil
}
