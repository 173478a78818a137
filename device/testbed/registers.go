package testbed

import (
	"encoding/binary"
	"math"
)

// words are the 16-bit registers of a chip behind a pointer byte, highest byte
// first: the way of TMP102, ADS1115 and MCP9808.
type words struct {
	reg     []uint16
	pointer byte
	// read is called before a register is read, written after one was written.
	read, written func(pointer byte)
}

func (w *words) Write(b []byte) {
	w.pointer = b[0]
	if len(b) < 3 || int(w.pointer) >= len(w.reg) {
		return
	}
	w.reg[w.pointer] = binary.BigEndian.Uint16(b[1:])
	w.written(w.pointer)
}

// Read repeats the register for as long as the master goes on.
func (w *words) Read(b []byte) {
	var word [2]byte
	if int(w.pointer) < len(w.reg) {
		w.read(w.pointer)
		binary.BigEndian.PutUint16(word[:], w.reg[w.pointer])
	}
	for i := range b {
		b[i] = word[i%2]
	}
}

// sixteenths is a temperature as most digital thermometers count, within what the
// part can tell.
func sixteenths(celsius, lowest, highest float64) int16 {
	return int16(math.Round(min(max(celsius, lowest), highest) * 16))
}
