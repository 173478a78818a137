package chip

import (
	"maps"
	"testing"

	"agentsite/device"

	"periph.io/x/conn/v3/i2c"
)

// FuzzWords is all chips with registers of 16 bits.
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
		fuzzed{"mcp9808", random(0x18, map[byte]uint16{mcp9808Manufacturer: 0x0054, mcp9808Device: 0x0400})},
		fuzzed{"tmp102", random(0x48, map[byte]uint16{tmp102Settings: 0})},
	)
}

// FuzzCRC is all chips whose answers carry a CRC, which is right here.
func FuzzCRC(f *testing.F) {
	decodesAll(f,
		fuzzed{"aht20", func(seed []byte) i2c.Bus { return aht20Of(append(seed, make([]byte, 6)...)[:6]...) }},
		fuzzed{"hdc302x", func(seed []byte) i2c.Bus { return hdc302x(pair(seed)) }},
		fuzzed{"scd4x", func(seed []byte) i2c.Bus {
			return scd4xEach(0, first(seed), first(seed[min(2, len(seed)):]), first(seed[min(4, len(seed)):]))
		}},
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
		p := registerPoint{Name: "it", registerPlace: registerPlace{Register: register, Width: width}, Shift: shift, Mask: mask, Signed: signed, Scale: &scale, Offset: offset, Range: device.Range{Min: low, Max: high}}
		if little {
			p.Endian = "little"
		}
		c.Address, c.Registers = 0x4F, []registerPoint{p}
		decodesOne(t, c)
	})
}

// first is the first word of a seed, however short that is.
func first(seed []byte) uint16 {
	seed = append(seed[:len(seed):len(seed)], 0, 0)
	return uint16(seed[0])<<8 | uint16(seed[1])
}

func pair(seed []byte) (uint16, uint16) { return first(seed), first(seed[min(2, len(seed)):]) }
