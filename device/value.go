package device

import (
	"math"
	"strconv"
	"unique"
)

// Type says which of the three forms a Value has.
type Type uint8

const (
	TypeNone Type = iota // the zero Value: nothing is known
	TypeNumber
	TypeBool
	TypeText
)

func (t Type) String() string {
	switch t {
	case TypeNumber:
		return "number"
	case TypeBool:
		return "true or false"
	case TypeText:
		return "text"
	}
	return "nothing"
}

// Value is a number, a bool or a text: all that a point can hold. The zero Value
// is none of them and stands for "not known". Values compare with ==.
//
// A text is kept as a handle, so that a Value has four words on a 32-bit board: the compiler keeps
// no larger struct in registers.
type Value struct {
	typ  Type
	num  float64
	text unique.Handle[string] // valid if it is a text
}

// Number makes a numeric value, in the unit of its point.
func Number(n float64) Value { return Value{typ: TypeNumber, num: n} }

// Bool makes a bool value.
func Bool(b bool) Value {
	v := Value{typ: TypeBool}
	if b {
		v.num = 1
	}
	return v
}

// Text makes a text value.
func Text(s string) Value { return Value{typ: TypeText, text: unique.Make(s)} }

func (v Value) Type() Type   { return v.typ }
func (v Value) IsZero() bool { return v.typ == TypeNone }

// Number returns the number, 0 or 1 for a bool, and 0 for anything else.
func (v Value) Number() float64 { return v.num }

// Bool reports whether the value is the bool true.
func (v Value) Bool() bool { return v.typ == TypeBool && v.num != 0 }

// Text returns the text, and "" for anything else.
func (v Value) Text() string {
	if v.typ != TypeText {
		return ""
	}
	return v.text.Value()
}

// Finite reports whether the value can be given to hardware and to a wire: all
// but a NaN and the infinities.
func (v Value) Finite() bool { return !math.IsNaN(v.num) && !math.IsInf(v.num, 0) }

// Any returns a float64, a bool, a string or nil, for encoders.
func (v Value) Any() any {
	switch v.typ {
	case TypeNumber:
		return v.num
	case TypeBool:
		return v.num != 0
	case TypeText:
		return v.Text()
	}
	return nil
}

// String writes the value as people do: on and off for a bool.
func (v Value) String() string {
	switch v.typ {
	case TypeNumber:
		return strconv.FormatFloat(v.num, 'f', -1, 64)
	case TypeBool:
		if v.num != 0 {
			return "on"
		}
		return "off"
	case TypeText:
		return v.Text()
	}
	return "-"
}

// Tidy rounds to nine digits, more than any converter has, because the rounding error of a
// multiplication by 0.001 was not measured.
func Tidy(n float64) float64 {
	const digits = 9
	if n == 0 {
		return 0
	}
	places := digits - 1 - int(math.Floor(math.Log10(math.Abs(n))))
	if places < 0 || places > 22 { // 10^22 is the last power of ten that is exact
		return n
	}
	shift := math.Pow10(places)
	return math.Round(n*shift) / shift
}
