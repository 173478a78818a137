package scan

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"periph.io/x/conn/v3/physic"
)

// model is a part on a fake bus. moved reports whether its output was changed. A read that
// it does not acknowledge returns nil.
type model interface {
	write(b []byte)
	read(n int) []byte
	moved() bool
}

// registers is a part with a pointer byte; the bytes after it are written to registers.
type registers struct {
	mem     [256]byte
	pointer byte
	touched bool
}

func (m *registers) write(b []byte) {
	m.pointer = b[0]
	m.touched = m.touched || len(b) > 1
}

func (m *registers) read(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = m.mem[m.pointer]
		m.pointer++
	}
	return out
}

func (m *registers) moved() bool { return m.touched }

func with(at byte, bytes ...byte) *registers {
	m := new(registers)
	copy(m.mem[at:], bytes)
	return m
}

// wide is a part with registers of two bytes, which a longer read repeats.
type wide struct {
	registers
	reg map[byte][2]byte
}

func (m *wide) read(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = m.reg[m.pointer][i%2]
	}
	return out
}

// port is a part whose output a byte changes: PCF8574, PCF8591, an amplifier. It repeats its
// bytes when read.
type port struct {
	bytes   []byte
	written int
	deaf    bool // acknowledges no reads
}

func (m *port) write(b []byte) { m.written += len(b) }

func (m *port) read(n int) []byte {
	if m.deaf {
		return nil
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = m.bytes[i%len(m.bytes)]
	}
	return out
}

func (m *port) moved() bool { return m.written > 0 }

// teller is a part that responds to one command, and to no read before.
type teller struct {
	command, answer string
	told            bool
	others          int
}

func (m *teller) write(b []byte) {
	m.told = string(b) == m.command
	if !m.told {
		m.others++
	}
}

func (m *teller) read(n int) []byte {
	if !m.told {
		return nil
	}
	m.told = false
	return append([]byte(m.answer), make([]byte, n)...)[:n]
}

func (m *teller) moved() bool { return m.others > 0 }

// transfer is a recorded transfer.
type transfer struct {
	addr uint16
	w    []byte
	r    int
}

// bus is a fake I2C bus that records all transfers.
type bus struct {
	mu     sync.Mutex
	parts  map[uint16]model
	log    []transfer
	broken error // of every transfer
	stuck  bool  // SDA is low: every address acknowledges and reads zero
}

func (b *bus) String() string { return "fake" }

func (b *bus) SetSpeed(physic.Frequency) error { return errors.New("no speed here") }

func (b *bus) Tx(addr uint16, w, r []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, transfer{addr, append([]byte(nil), w...), len(r)})
	if b.broken != nil {
		return b.broken
	}
	if b.stuck {
		return nil
	}
	nobody := fmt.Errorf("sysfs-i2c: %v", syscall.ENXIO) // as periph returns it
	m, ok := b.parts[addr]
	if !ok {
		return nobody
	}
	if len(w) > 0 {
		m.write(w)
	}
	if len(r) > 0 {
		got := m.read(len(r))
		if got == nil {
			return nobody
		}
		copy(r, got)
	}
	return nil
}

// writes returns the write transfers of an address.
func (b *bus) writes(addr uint16) [][]byte {
	var all [][]byte
	for _, t := range b.log {
		if t.addr == addr && len(t.w) > 0 {
			all = append(all, t.w)
		}
	}
	return all
}
