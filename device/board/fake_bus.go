package board

import (
	"fmt"
	"syscall"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
)

// FakeBuses is a board of a test: it has these I2C buses, by number, and these SPI
// ports, by name, and nothing else. Closing one leaves it as it is.
func FakeBuses(buses map[int]i2c.Bus, ports map[string]spi.Port) *Board {
	b := New()
	b.root = "/nowhere"
	b.openI2C = func(number int) (i2c.BusCloser, error) {
		bus, ok := buses[number]
		if !ok {
			return nil, fmt.Errorf("/dev/i2c-%d: %w", number, syscall.ENOENT)
		}
		return unclosed{bus}, nil
	}
	b.openSPI = func(port, chipSelect int) (spi.PortCloser, error) {
		p, ok := ports[fmt.Sprintf("spidev%d.%d", port, chipSelect)]
		if !ok {
			return nil, syscall.ENOENT
		}
		return unclosedPort{p}, nil
	}
	b.openSerial = func(port string, _ int) (SerialPort, error) {
		return nil, fmt.Errorf("%s: %w", port, syscall.ENOENT)
	}
	return b
}

// FakeSerial is a board of a test: all its serial ports are what open returns.
func FakeSerial(open func() (SerialPort, error)) *Board {
	b := FakeBuses(nil, nil)
	b.openSerial = func(string, int) (SerialPort, error) { return open() }
	return b
}

type unclosed struct{ i2c.Bus }

func (unclosed) Close() error { return nil }

type unclosedPort struct{ spi.Port }

func (unclosedPort) Close() error { return nil }

func (unclosedPort) LimitSpeed(physic.Frequency) error { return nil }
