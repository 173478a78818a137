package board

import (
	"sync"

	"agentsite/device"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/spi"
)

// Board is the machine's buses and lines. It opens nothing until a device uses it,
// and is safe for concurrent use.
type Board struct {
	root string // "/", or a test's tree of files
	// How buses are opened; a test has its own.
	openI2C    func(bus int) (i2c.BusCloser, error)
	openSPI    func(port, chipSelect int) (spi.PortCloser, error)
	openSerial func(port string, baud int) (SerialPort, error)
	chips      chips // where lines come from; nil for the kernel's

	mu      sync.Mutex
	turns   map[string]device.Turn // by bus: the holder carries out a transfer
	pulsers map[string]*pulser     // by chip
}

// New returns this machine's board.
func New() *Board {
	return &Board{root: "/", openI2C: openI2C, openSPI: openSPI, openSerial: openSerial, turns: make(map[string]device.Turn)}
}

// Model is what the board calls itself, such as "Raspberry Pi 4 Model B Rev 1.4";
// "" on a machine without a device tree. periph's own answer is not used: it finds
// a Raspberry Pi wherever the kernel has the firmware's driver.
func (b *Board) Model() string {
	return b.word("proc/device-tree/model")
}

func (b *Board) turn(bus string) device.Turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.turns[bus]
	if !ok {
		t = device.NewTurn()
		b.turns[bus] = t
	}
	return t
}
