package chip

import (
	"encoding/binary"
	"maps"
	"testing"

	"agentsite/device"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/i2c"
)

// FuzzWords is all chips whose answers carry no CRC.
func FuzzWords(f *testing.F) {
	random := func(addr uint16, fixed map[byte]uint16) func(seed []byte) i2c.Bus {
		return func(seed []byte) i2c.Bus {
			words := maps.Clone(fixed)
			for at := byte(0); len(seed) > 1; at, seed = at+1, seed[2:] {
				if _, ok := words[at]; !ok {
					words[at] = uint16(seed[0])<<8 | uint16(seed[1])
				}
			}
			return &registers{addr: addr, words: words}
		}
	}
	ads1x15 := func(seed []byte) i2c.Bus {
		results := make(map[byte]uint16)
		for i := 0; i+1 < len(seed); i += 2 {
			results[byte(i/2)] = uint16(seed[i])<<8 | uint16(seed[i+1])
		}
		return ads1x15(results, 1)
	}
	decodesAll(f,
		fuzzed{"ads1015", ads1x15},
		fuzzed{"ads1115", ads1x15},
		fuzzed{"bh1750", func(seed []byte) i2c.Bus { return bh1750(first(seed)) }},
		fuzzed{"ccs811", func(seed []byte) i2c.Bus { return ccs811Of(filled(seed, 6)...) }},
		fuzzed{"ina219", inaOf(ina219)},
		fuzzed{"ina226", inaOf(ina226)},
		fuzzed{"ina260", inaOf(ina260)},
		fuzzed{"max17043", random(0x36, map[byte]uint16{gaugeVersion: 3})},
		fuzzed{"mcp9808", random(0x18, map[byte]uint16{mcp9808Manufacturer: 0x0054, mcp9808Device: 0x0400})},
		fuzzed{"tmp102", random(0x48, map[byte]uint16{tmp102Settings: 0})},
	)
}

// FuzzCRC is all chips whose answers carry a CRC, which is right here.
func FuzzCRC(f *testing.F) {
	decodesAll(f,
		fuzzed{"aht20", func(seed []byte) i2c.Bus { return aht20Of(filled(seed, 6)...) }},
		fuzzed{"am2320", func(seed []byte) i2c.Bus {
			return am2320Of(append([]byte{3, 4}, filled(seed, 4)...)...)
		}},
		fuzzed{"hdc302x", func(seed []byte) i2c.Bus { return hdc302x(pair(seed)) }},
		fuzzed{"pijuice", func(seed []byte) i2c.Bus {
			b := filled(seed, 4)
			return pijuice(b[0], b[1], first(b[2:]))
		}},
		fuzzed{"scd4x", func(seed []byte) i2c.Bus {
			b := filled(seed, 6)
			return scd4xEach(0, first(b), first(b[2:]), first(b[4:]))
		}},
		fuzzed{"sgp30", func(seed []byte) i2c.Bus { return sgp30Of(pair(seed)) }},
		fuzzed{"sht4x", func(seed []byte) i2c.Bus { return sht4x(pair(seed)) }},
	)
}

// FuzzRegisters is descriptions as well as contents: whatever Validate lets pass
// reads without a panic, and nothing outside its range.
func FuzzRegisters(f *testing.F) {
	f.Add([]byte{0x80, 0x01, 0xFF, 0x7F}, uint8(0), 16, false, 5, uint32(0x7FF), true, 0.125, 0.0, -55.0, 125.0)
	f.Add([]byte{1, 2, 3}, uint8(1), 24, true, 0, uint32(0), false, -2.5, 1e6, 0.0, 1e9)
	f.Fuzz(func(t *testing.T, mem []byte, register uint8, width int, little bool, shift int, mask uint32, signed bool, scale, offset, low, high float64) {
		b := &registers{addr: 0x4F}
		copy(b.mem[:], mem)
		c := config(t, "registers", b).(*registersConfig)
		p := registerPoint{Name: "it", registerPlace: registerPlace{Register: register, Width: width}, Shift: shift, Mask: mask, Signed: signed, Quantity: driver.Quantity{Scale: &scale, Offset: offset, Range: device.Range{Min: low, Max: high}}}
		if little {
			p.Endian = "little"
		}
		c.Address, c.Registers = 0x4F, []registerPoint{p}
		decodesOne(t, c)
	})
}

// filled is the first n bytes of a seed, with zeros where it is shorter.
func filled(seed []byte, n int) []byte {
	b := make([]byte, n)
	copy(b, seed)
	return b
}

// first and pair are its first words.
func first(seed []byte) uint16 { return binary.BigEndian.Uint16(filled(seed, 2)) }

func pair(seed []byte) (uint16, uint16) {
	b := filled(seed, 4)
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
}
