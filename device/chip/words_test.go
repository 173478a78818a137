package chip

import "agentsite/device/board"

// speaks is a chip at addr that answers commands with words and their CRC, in the
// read that follows. A command that is not listed is taken and answered by nothing.
func speaks(addr uint16, answers map[string][]uint16) *registers {
	b := &registers{addr: addr}
	var last string
	b.answer = func(w, r []byte) bool {
		if len(w) > 0 {
			last = string(w)
		}
		if len(r) > 0 {
			copy(r, withCRC(answers[last]))
		}
		return true
	}
	return b
}

func withCRC(words []uint16) []byte {
	var b []byte
	for _, w := range words {
		two := []byte{byte(w >> 8), byte(w)}
		b = append(b, two[0], two[1], board.CRC8(two))
	}
	return b
}

// spoilt is the bus whose answers to one command have their n-th bit turned.
func spoilt(b *registers, command string, n int) *registers {
	whole, last := b.answer, ""
	b.answer = func(w, r []byte) bool {
		if len(w) > 0 {
			last = string(w)
		}
		done := whole(w, r)
		if last == command && len(r) > n/8 {
			r[n/8] ^= 1 << (n % 8)
		}
		return done
	}
	return b
}
