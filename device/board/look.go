package board

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// Bus is an I2C bus of this board.
type Bus struct {
	Name    string // "i2c-1"
	Adapter string // as the kernel names it, or ""
}

// Buses lists the I2C buses that programs can use.
func (b *Board) Buses() []Bus {
	var all []Bus
	for _, path := range b.files.Glob("dev/i2c-*") {
		name := filepath.Base(path)
		if busName().MatchString(name) {
			all = append(all, Bus{name, b.files.Text("sys/class/i2c-dev/" + name + "/name")})
		}
	}
	slices.SortFunc(all, func(x, y Bus) int {
		if len(x.Name) != len(y.Name) {
			return len(x.Name) - len(y.Name) // i2c-2 before i2c-10
		}
		return strings.Compare(x.Name, y.Name)
	})
	return all
}

// KernelDriver returns the kernel driver that uses the chip's address, or "".
func (c *Conn) KernelDriver() string {
	if c.mux != 0 {
		return ""
	}
	return c.at.board.kernelDriver(c.number, c.at.Address)
}

// Answers reads one byte from the chip's address and reports whether a chip acknowledged
// it. It writes nothing, not even an empty message: on some bridges that is a zero byte.
// An error means that the bus fails, or that a kernel driver uses the address. It is
// called between Begin and End.
func (c *Conn) Answers() (bool, error) {
	var b [1]byte
	err := c.Tx(c.at.Address, nil, b[:])
	if f := failureOf(errors.Unwrap(err)); f != nil && f.absent {
		return false, nil
	}
	return err == nil, err
}

// Answers reports whether a chip answers at the address; see Conn.Answers.
func (c I2C) Answers(ctx context.Context) (bool, error) {
	conn := c.Conn()
	if err := conn.Begin(ctx); err != nil {
		return false, err
	}
	defer conn.End()
	return conn.Answers()
}
