package rpc

import (
	"bytes"
	"errors"
	"math"
	"unicode/utf8"
)

// checkCBOR refuses items that JSON cannot express anywhere in a message, also in unknown fields.
// These are invalid UTF-8, keys that are duplicate or not texts, undefined and other simple values,
// NaN and Inf, and integers below -2^63. The message is well formed and of definite lengths.
func checkCBOR(b []byte) error {
	_, err := checkItem(b)
	return err
}

// checkItem is checkCBOR for the first item, and returns the rest.
func checkItem(b []byte) (rest []byte, err error) {
	first := b[0]
	kind, n, rest := cutHead(b)
	switch kind {
	case cborNegative:
		if n > math.MaxInt64 {
			return nil, &FieldError{Msg: "an integer is below -2^63"}
		}
	case cborBytes:
		return rest[n:], nil
	case cborText:
		if !utf8.Valid(rest[:n]) {
			return nil, &FieldError{Msg: "a text is no UTF-8"}
		}
		return rest[n:], nil
	case cborList:
		for ; n > 0 && err == nil; n-- {
			rest, err = checkItem(rest)
		}
		return rest, err
	case cborMap:
		return checkMap(rest, n, nil)
	case cborSimple:
		switch {
		case first == cborFalse || first == cborTrue || first == cborNull:
		case first < cborHalf:
			return nil, &FieldError{Msg: "a simple value is none of false, true and null"}
		case !isFinite(first, n):
			return nil, &FieldError{Msg: "a number is none"}
		}
	}
	return rest, nil
}

// walkCBOR is Raw.Walk for a well-formed item of CBOR.
func walkCBOR(b []byte, m Members) bool {
	kind, pairs, b := cutHead(b)
	if kind != cborMap {
		return false
	}
	rest, err := checkMap(b, pairs, m)
	return err == nil && len(rest) == 0
}

var errUnusual = errors.New("left to the library")

// checkMap is checkItem for the pairs of a map, and sets them as members where m is not nil. Sorted
// keys, as in the deterministic encoding, are not stored.
func checkMap(b []byte, pairs uint64, m Members) (rest []byte, err error) {
	var last []byte
	var seen map[string]bool // once they do not rise
	begin := b
	for i := range pairs {
		text, after, ok := cutText(b)
		if !ok {
			return nil, &FieldError{Msg: "a key is no text"}
		}
		if !utf8.Valid(text) {
			return nil, &FieldError{Msg: "a key is no UTF-8"}
		}
		if rises := len(last) < len(text) || len(last) == len(text) && bytes.Compare(last, text) < 0; seen == nil && i > 0 && !rises {
			seen = make(map[string]bool)
			for at := begin; len(at) > len(b); {
				before, value, _ := cutText(at)
				seen[string(before)] = true
				at = value[itemLength(value):]
			}
		}
		if seen != nil {
			if seen[string(text)] {
				return nil, &FieldError{Msg: "a name stands twice in one object"}
			}
			seen[string(text)] = true
		}
		last = text
		if b, err = checkItem(after); err != nil {
			return nil, err
		}
		if n := len(after) - len(b); m != nil && !m.SetMember(text, Raw{CBOR, after[:n:n]}) {
			return nil, errUnusual
		}
	}
	return b, nil
}

// isFinite reports whether a number is neither NaN nor infinite: their exponent is all ones.
func isFinite(head byte, bits uint64) bool {
	switch head {
	case cborHalf:
		return bits&0x7c00 != 0x7c00
	case cborSingle:
		return bits&0x7f800000 != 0x7f800000
	}
	return bits&0x7ff0000000000000 != 0x7ff0000000000000
}
