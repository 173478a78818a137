package device

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// On the wire a Value is a number, a bool, a text or null, in JSON and in CBOR
// (RFC 8949, core deterministic encoding). Lists and maps are refused.

// Constant encodings are shared: encoders copy them.
var (
	jsonNull, jsonTrue, jsonFalse = []byte("null"), []byte("true"), []byte("false")
	itemNull, itemTrue, itemFalse = []byte{cborNull}, []byte{cborTrue}, []byte{cborFalse}
)

// MarshalJSON encodes a number as JSON's own grammar and ECMAScript have it.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.typ {
	case TypeNumber:
		return appendJSONNumber(make([]byte, 0, 24), v.num)
	case TypeBool:
		if v.num != 0 {
			return jsonTrue, nil
		}
		return jsonFalse, nil
	case TypeText:
		return json.Marshal(v.Text())
	}
	return jsonNull, nil
}

func appendJSONNumber(b []byte, n float64) ([]byte, error) {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return nil, Faultf(Invalid, "%v is not a number that can be sent", n)
	}
	form := byte('f')
	if abs := math.Abs(n); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		form = 'e'
	}
	b = strconv.AppendFloat(b, n, form, -1, 64)
	if l := len(b); form == 'e' && l >= 4 && b[l-4] == 'e' && b[l-2] == '0' { // e-09 is written e-9
		b = append(b[:l-2], b[l-1])
	}
	return b, nil
}

func (v *Value) UnmarshalJSON(b []byte) error {
	var err error
	switch b = bytes.TrimSpace(b); {
	case string(b) == "null":
		*v = Value{}
	case string(b) == "true", string(b) == "false":
		*v = Bool(b[0] == 't')
	case len(b) > 0 && b[0] == '"':
		var text string
		if err = json.Unmarshal(b, &text); err == nil {
			*v = Text(text)
		}
	default:
		var n float64
		if err = json.Unmarshal(b, &n); err == nil {
			*v = Number(n)
		}
	}
	if err != nil {
		return errNotValue
	}
	return nil
}

var errNotValue error = Faultf(Invalid, "a value is a number, true, false, a text or null")

// The first bytes of CBOR items: major types in the upper three bits, and simple values.
const (
	cborText    = 3 << 5
	cborFalse   = 0xf4
	cborTrue    = 0xf5
	cborNull    = 0xf6
	cborFloat16 = 0xf9
	cborFloat32 = 0xfa
	cborFloat64 = 0xfb
)

func (v Value) MarshalCBOR() ([]byte, error) {
	switch v.typ {
	case TypeNumber:
		if math.IsNaN(v.num) || math.IsInf(v.num, 0) {
			return nil, Faultf(Invalid, "%v is not a number that can be sent", v.num)
		}
		return appendCBORFloat(make([]byte, 0, 9), v.num), nil
	case TypeBool:
		if v.num != 0 {
			return itemTrue, nil
		}
		return itemFalse, nil
	case TypeText:
		text := v.Text()
		b := appendCBORHead(make([]byte, 0, 5+len(text)), cborText, len(text))
		return append(b, text...), nil
	}
	return itemNull, nil
}

// appendCBORFloat appends the shortest form that keeps n.
func appendCBORFloat(b []byte, n float64) []byte {
	short := float32(n)
	if float64(short) != n {
		return binary.BigEndian.AppendUint64(append(b, cborFloat64), math.Float64bits(n))
	}
	bits := math.Float32bits(short)
	if half, ok := halfBits(bits); ok {
		return binary.BigEndian.AppendUint16(append(b, cborFloat16), half)
	}
	return binary.BigEndian.AppendUint32(append(b, cborFloat32), bits)
}

// halfBits converts the bits of a finite float32 to those of a float16, where none is lost.
func halfBits(bits uint32) (half uint16, ok bool) {
	sign := uint16(bits >> 16 & 0x8000)
	exponent, mantissa := int(bits>>23&0xff)-127, bits&0x7fffff
	switch {
	case exponent == -127 && mantissa == 0:
		return sign, true
	case exponent >= -14 && exponent <= 15 && mantissa&0x1fff == 0:
		return sign | uint16(exponent+15)<<10 | uint16(mantissa>>13), true
	case exponent >= -24 && exponent < -14: // a subnormal one
		whole, shift := mantissa|1<<23, -1-exponent // 2^-24 is 1<<23 shifted by 23
		if whole&(1<<shift-1) == 0 {
			return sign | uint16(whole>>shift), true
		}
	}
	return 0, false
}

// appendCBORHead appends the first bytes of an item whose length or value is n.
func appendCBORHead(b []byte, major byte, n int) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
}

// UnmarshalCBOR decodes one item whose form the caller's decoder has checked.
func (v *Value) UnmarshalCBOR(b []byte) error {
	if len(b) == 0 {
		return errNotValue
	}
	switch b[0] {
	case cborNull:
		*v = Value{}
		return nil
	case cborFalse, cborTrue:
		*v = Bool(b[0] == cborTrue)
		return nil
	}
	argument, rest, ok := cborArgument(b)
	if !ok {
		return errNotValue
	}
	switch major := b[0] &^ 31; {
	case b[0] == cborFloat16:
		*v = Number(halfFloat(uint16(argument)))
	case b[0] == cborFloat32:
		*v = Number(float64(math.Float32frombits(uint32(argument))))
	case b[0] == cborFloat64:
		*v = Number(math.Float64frombits(argument))
	case major == 0:
		*v = Number(float64(argument))
	case major == 1<<5:
		*v = Number(-1 - float64(argument))
	case major == cborText && uint64(len(rest)) == argument && utf8.Valid(rest):
		*v = Text(string(rest))
	default:
		return errNotValue
	}
	if !v.Finite() {
		return errNotValue
	}
	return nil
}

// cborArgument reads the argument after an item's first byte.
func cborArgument(b []byte) (argument uint64, rest []byte, ok bool) {
	short := b[0] & 31
	if short < 24 {
		return uint64(short), b[1:], true
	}
	size := 1 << (short - 24)
	if short > 27 || len(b) < 1+size {
		return 0, nil, false
	}
	for _, c := range b[1 : 1+size] {
		argument = argument<<8 | uint64(c)
	}
	return argument, b[1+size:], true
}

// halfFloat converts the bits of a float16.
func halfFloat(half uint16) float64 {
	n := float64(half & 0x3ff)
	switch exponent := int(half >> 10 & 31); exponent {
	case 0:
		n = math.Ldexp(n, -24)
	case 31:
		n = math.Inf(1) // or NaN: neither is taken
	default:
		n = math.Ldexp(n+1024, exponent-25)
	}
	if half&0x8000 != 0 {
		n = -n
	}
	return n
}
