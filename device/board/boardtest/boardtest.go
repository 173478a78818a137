// Package boardtest has fakes for device/board: buses, ports and GPIO chips whose
// wiring a test plays.
package boardtest

import (
	"cmp"
	"fmt"
	"syscall"

	"agentsite/device/board"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
)

// Machine is all that the board of a test has. Closing a bus or port leaves it as it is.
type Machine struct {
	I2C    map[int]i2c.Bus
	SPI    map[string]spi.Port // by name, such as spidev0.0
	Serial func() (board.SerialPort, error)
	Chips  []*Chip
	Root   string // a tree of files; without it there are none
}

// Board returns a board that has what m has and nothing else.
func (m Machine) Board() *board.Board {
	return board.On(board.Machine{
		Root: cmp.Or(m.Root, "/nowhere"),
		GPIO: chips(m.Chips),
		OpenI2C: func(number int) (i2c.BusCloser, error) {
			if bus, ok := m.I2C[number]; ok {
				return unclosedBus{bus}, nil
			}
			return nil, fmt.Errorf("/dev/i2c-%d: %w", number, syscall.ENOENT)
		},
		OpenSPI: func(port, chipSelect int) (spi.PortCloser, error) {
			if p, ok := m.SPI[fmt.Sprintf("spidev%d.%d", port, chipSelect)]; ok {
				return unclosedPort{p}, nil
			}
			return nil, syscall.ENOENT
		},
		OpenSerial: func(port string, _ board.SerialMode) (board.SerialPort, error) {
			if m.Serial != nil {
				return m.Serial()
			}
			return nil, fmt.Errorf("%s: %w", port, syscall.ENOENT)
		},
	})
}

// I2C returns a board with one bus, i2c-1.
func I2C(bus i2c.Bus) *board.Board { return Machine{I2C: map[int]i2c.Bus{1: bus}}.Board() }

// Lines returns a board with these GPIO chips.
func Lines(chips ...*Chip) *board.Board { return Machine{Chips: chips}.Board() }

type unclosedBus struct{ i2c.Bus }

func (unclosedBus) Close() error { return nil }

type unclosedPort struct{ spi.Port }

func (unclosedPort) Close() error { return nil }

func (unclosedPort) LimitSpeed(physic.Frequency) error { return nil }
