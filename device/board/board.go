package board

import (
	"context"
	"sync"

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

	mu    sync.Mutex
	turns map[string]turn // by bus
}

// New returns this machine's board.
func New() *Board {
	return &Board{root: "/", openI2C: openI2C, openSPI: openSPI, openSerial: openSerial, turns: make(map[string]turn)}
}

// Model is what the board calls itself, such as "Raspberry Pi 4 Model B Rev 1.4";
// "" on a machine without a device tree. periph's own answer is not used: it finds
// a Raspberry Pi wherever the kernel has the firmware's driver.
func (b *Board) Model() string {
	return b.word("proc/device-tree/model")
}

// turn holds one token while a bus, or a part's way to it, is in use.
type turn chan struct{}

// take waits for the turn. Without an error the caller receives the token again.
func (t turn) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Board) turn(bus string) turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.turns[bus]
	if !ok {
		t = make(turn, 1)
		b.turns[bus] = t
	}
	return t
}
