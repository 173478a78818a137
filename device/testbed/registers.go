package testbed

import (
	"encoding/binary"
	"math"
)

// wordRegisters has the 16-bit registers of a chip, selected by a pointer byte, high byte
// first, as in the TMP102, ADS1115 and MCP9808.
type wordRegisters struct {
	reg                    []uint16
	pointer                byte
	beforeRead, afterWrite func(pointer byte)
}

func (w *wordRegisters) Write(b []byte) {
	w.pointer = b[0]
	if len(b) < 3 || int(w.pointer) >= len(w.reg) {
		return
	}
	w.reg[w.pointer] = binary.BigEndian.Uint16(b[1:])
	w.afterWrite(w.pointer)
}

// Read repeats the register for as long as the master reads.
func (w *wordRegisters) Read(b []byte) {
	var word [2]byte
	if int(w.pointer) < len(w.reg) {
		w.beforeRead(w.pointer)
		binary.BigEndian.PutUint16(word[:], w.reg[w.pointer])
	}
	for i := range b {
		b[i] = word[i%2]
	}
}

// sixteenths converts a temperature to steps of 1/16 °C, limited to the part's range.
func sixteenths(celsius, lowest, highest float64) int16 {
	return int16(math.Round(min(max(celsius, lowest), highest) * 16))
}
