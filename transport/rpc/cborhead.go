package rpc

import "encoding/binary"

// Major types and values of RFC 8949, section 3.1.
const (
	cborUint     = 0
	cborNegative = 1 // -1 less the number
	cborBytes    = 2
	cborText     = 3
	cborList     = 4
	cborMap      = 5
	cborTag      = 6 // of one item
	cborSimple   = 7 // and floating-point numbers

	cborFalse  = 0xf4
	cborTrue   = 0xf5
	cborNull   = 0xf6
	cborHalf   = 0xf9
	cborSingle = 0xfa
)

// AppendCBORText appends the head of a text of n bytes.
func AppendCBORText(b []byte, n int) []byte { return appendHead(b, cborText, uint64(n)) }

// appendHead appends the shortest head of an item.
func appendHead(b []byte, kind byte, n uint64) []byte {
	kind <<= 5
	switch {
	case n < 24:
		return append(b, kind|byte(n))
	case n < 1<<8:
		return append(b, kind|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, kind|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, kind|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, kind|27), n)
}

// cutHead splits off the head of a well-formed item of definite length.
func cutHead(b []byte) (kind byte, n uint64, rest []byte) {
	kind, n, rest = b[0]>>5, uint64(b[0]&31), b[1:]
	if n > 23 {
		size := 1 << (n - 24)
		n, rest = 0, rest[size:]
		for _, digit := range b[1 : 1+size] {
			n = n<<8 | uint64(digit)
		}
	}
	return kind, n, rest
}

// cutText splits off a text, or returns false for another item.
func cutText(b []byte) (text, rest []byte, ok bool) {
	kind, n, b := cutHead(b)
	if kind != cborText {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// itemLength returns the length of the first item, of definite length, and 0 if b does not hold all of
// one.
func itemLength(b []byte) int {
	rest := b
	for left := uint64(1); left > 0; left-- {
		if len(rest) == 0 || rest[0]&31 > 27 || rest[0]&31 > 23 && len(rest) <= 1<<(rest[0]&31-24) {
			return 0
		}
		var kind byte
		var n uint64
		switch kind, n, rest = cutHead(rest); kind {
		case cborBytes, cborText:
			if n > uint64(len(rest)) {
				return 0
			}
			rest = rest[n:]
		case cborList:
			left += min(n, maxLength)
		case cborMap:
			left += 2 * min(n, maxLength)
		case cborTag:
			left++
		}
	}
	return len(b) - len(rest)
}
