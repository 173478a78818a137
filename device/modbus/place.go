package modbus

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"agentsite/device"
)

// table is one of the four tables of a unit, each with the addresses 0 to 65535.
type table uint8

const (
	noTable table = iota
	coils
	discretes
	holdings
	inputs
)

var tableKeys = [...]string{coils: "coil", discretes: "discrete", holdings: "holding", inputs: "input"}

func (t table) String() string { return tableKeys[t] }

// bits reports whether a place of t is on or off rather than a register.
func (t table) bits() bool { return t == coils || t == discretes }

// reader is the function that reads t.
func (t table) reader() byte {
	return [...]byte{coils: readCoils, discretes: readDiscretes, holdings: readHoldings, inputs: readInputs}[t]
}

// Place is the YAML of a coil or a register. The four tables count from 0, as it is sent; Register is the
// number of a manual that counts from 1 and begins with the digit of the table.
type Place struct {
	Coil     *uint16 `json:"coil,omitempty" jsonschema:"the coil's address, counted from 0"`
	Discrete *uint16 `json:"discrete,omitempty" jsonschema:"the discrete input's address, counted from 0"`
	Holding  *uint16 `json:"holding,omitempty" jsonschema:"the holding register's address, counted from 0"`
	Input    *uint16 `json:"input,omitempty" jsonschema:"the input register's address, counted from 0"`
	Register *uint32 `json:"register,omitempty" jsonschema:"instead the number in a manual that counts from 1 with the digit of the table in front: 30053 is input 52, 40101 and 400101 are holding 100"`
}

// at is the place of a value. A switch at a register may be one bit of it when read.
type at struct {
	table   table
	address uint16
}

func (a at) String() string { return fmt.Sprintf("%s %d", a.table, a.address) }

// resolve returns the place; the table is noTable if none is written.
func (p Place) resolve(of string) (at, error) {
	var found []at
	for i, address := range []*uint16{p.Coil, p.Discrete, p.Holding, p.Input} {
		if address != nil {
			found = append(found, at{coils + table(i), *address})
		}
	}
	if p.Register != nil {
		a, err := numbered(of, *p.Register)
		if err != nil {
			return at{}, err
		}
		found = append(found, a)
	}
	switch len(found) {
	case 0:
		return at{}, nil
	case 1:
	default:
		return at{}, device.Faultf(device.Invalid,
			"%s: it has %d places; write one of coil, discrete, holding, input and register", of, len(found))
	}
	a := found[0]
	low, digit := 40001, 4
	if a.table == inputs {
		low, digit = 30001, 3
	}
	if n := int(a.address); p.Register == nil && !a.table.bits() && n >= low && n < low+9999 {
		return at{}, device.Faultf(device.Invalid,
			"%s.%s: %d may be the number of a manual or an address; write register: %[4]d for the %[2]s register "+
				"%[5]d, or register: %[6]d for %[3]d",
			of, a.table, n, n, n-low, digit*100000+n+1)
	}
	return a, nil
}

// numbered returns the place of a number of five or six digits: 30001 to 39999, or 300001 to 365536.
func numbered(of string, n uint32) (at, error) {
	tables := map[uint32]table{1: discretes, 3: inputs, 4: holdings}
	for _, digit := range []uint32{10_000, 100_000} {
		rest := n % digit
		if t, ok := tables[n/digit]; ok && rest >= 1 && rest <= 65536 {
			return at{t, uint16(rest - 1)}, nil
		}
	}
	return at{}, device.Faultf(device.Invalid,
		"%s.register: %d has no digit of a table in front, as 30053 and 40101 have; write holding or input with "+
			"the address, counted from 0 (coil and discrete for what is on or off)", of, n)
}

// Format is the YAML of how a number is in registers.
type Format struct {
	Type  string `json:"type,omitempty" jsonschema:"int16, uint16, int32, uint32, int64, uint64, float32 or float64; uint16 when not written"`
	Order string `json:"order,omitempty" jsonschema:"the order of the bytes in two registers: ABCD, the highest first, CDAB, BADC or DCBA; ABCD when not written"`
}

var typeWords = map[string]int{
	"int16": 1, "uint16": 1, "int32": 2, "uint32": 2, "int64": 4, "uint64": 4, "float32": 2, "float64": 4,
}

var orders = []string{"ABCD", "CDAB", "BADC", "DCBA"}

func (f Format) validate(of string) error {
	switch {
	case typeWords[f.kind()] == 0:
		return device.Faultf(device.Invalid,
			"%s.type: %.20q is unknown; use int16, uint16, int32, uint32, int64, uint64, float32 or float64",
			of, f.Type)
	case f.Order != "" && !slices.Contains(orders, f.Order):
		return device.Faultf(device.Invalid, "%s.order: %.20q is unknown; use ABCD, CDAB, BADC or DCBA", of, f.Order)
	}
	return nil
}

func (f Format) kind() string { return cmp.Or(f.Type, "uint16") }

// words returns how many registers a number has.
func (f Format) words() int { return typeWords[f.kind()] }

// swap brings registers from or into the order of the device.
func (f Format) swap(words []uint16) {
	if f.Order == "CDAB" || f.Order == "DCBA" {
		slices.Reverse(words)
	}
	if f.Order == "BADC" || f.Order == "DCBA" {
		for i, w := range words {
			words[i] = w<<8 | w>>8
		}
	}
}

// raw returns the bits of the number in registers, right-aligned.
func (f Format) raw(words []uint16) uint64 {
	var ordered [4]uint16
	n := copy(ordered[:f.words()], words)
	f.swap(ordered[:n])
	var raw uint64
	for _, w := range ordered[:n] {
		raw = raw<<16 | uint64(w)
	}
	return raw
}

// registers is the reverse of raw.
func (f Format) registers(raw uint64) []uint16 {
	words := make([]uint16, f.words())
	for i := len(words) - 1; i >= 0; i-- {
		words[i] = uint16(raw)
		raw >>= 16
	}
	f.swap(words)
	return words
}

// number returns the number that the bits mean.
func (f Format) number(raw uint64) float64 {
	switch f.kind() {
	case "int16":
		return float64(int16(raw))
	case "int32":
		return float64(int32(raw))
	case "int64":
		return float64(int64(raw))
	case "float32":
		return float64(math.Float32frombits(uint32(raw)))
	case "float64":
		return math.Float64frombits(raw)
	}
	return float64(raw)
}

// bits returns the bits of the number nearest to n; n is within the limits.
func (f Format) bits(n float64) uint64 {
	switch f.kind() {
	case "float32":
		return uint64(math.Float32bits(float32(n)))
	case "float64":
		return math.Float64bits(n)
	case "int16", "int32", "int64":
		return uint64(int64(math.Round(n))) & (1<<(16*f.words()-1)<<1 - 1)
	}
	return uint64(math.Round(n))
}

// limits returns the smallest and the largest number. Those of 64 bits are narrowed to what is exact.
func (f Format) limits() device.Range {
	const exact = 1 << 53
	switch f.kind() {
	case "int16", "int32":
		half := math.Exp2(float64(16*f.words() - 1))
		return device.Range{Min: -half, Max: half - 1}
	case "uint16", "uint32":
		return device.Range{Min: 0, Max: math.Exp2(float64(16*f.words())) - 1}
	case "int64":
		return device.Range{Min: -exact, Max: exact}
	case "uint64":
		return device.Range{Min: 0, Max: exact}
	}
	return device.Range{Min: -math.MaxFloat32, Max: math.MaxFloat32}
}

func (f Format) float() bool { return f.Type == "float32" || f.Type == "float64" }
