package board

import "testing"

func TestCRC8(t *testing.T) {
	if got := CRC8([]byte{0xBE, 0xEF}); got != 0x92 { // Sensirion, SHT4x, "Checksum calculation"
		t.Errorf("%#x", got)
	}
}
