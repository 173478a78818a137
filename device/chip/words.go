package chip

import (
	"agentsite/device/board"
	"encoding/binary"
	"errors"
	"time"
)

// errCRC is of an answer that was changed on its way.
var errCRC = errors.New("the CRC of its answer is wrong; the wires are too long or disturbed")

// words writes a command, waits for the time that the chip takes, and reads n words of 16
// bits, each with its CRC, as Sensirion's chips and some of Texas Instruments' send them.
func (d *i2cChip) words(command []byte, takes time.Duration, n int) []uint16 {
	d.command(takes, command...)
	raw, all := make([]byte, 3*n), make([]uint16, n)
	d.transfer(nil, raw)
	for i := range all {
		word := raw[3*i : 3*i+3]
		if board.CRC8(word[:2]) != word[2] {
			d.fail(errCRC)
		}
		all[i] = binary.BigEndian.Uint16(word)
	}
	return all
}

// share is a word as a part of the whole range, 0 to 1.
func share(word uint16) float64 { return float64(word) / 0xFFFF }
