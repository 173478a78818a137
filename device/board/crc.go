package board

// CRC8 returns the checksum of Sensirion's, Aosong's and some of Texas Instruments' chips:
// x⁸+x⁵+x⁴+1, highest bit first, from 0xFF. For 0xBE 0xEF it is 0x92 (Sensirion, SHT4x datasheet,
// section 4.4).
func CRC8(b []byte) byte {
	crc := byte(0xFF)
	for _, c := range b {
		crc ^= c
		for range 8 {
			high := crc & 0x80
			if crc <<= 1; high != 0 {
				crc ^= 0x31
			}
		}
	}
	return crc
}
