package identity

import "strings"

// alphabet is base58btc's: digits and letters without 0, O, I and l.
const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// base58 encodes b as one large number, with a 1 for each leading zero. Its time grows with the
// square of the length; keys are short.
func base58(b []byte) string {
	var digits []byte // least significant first
	for _, carry := range b {
		carry := int(carry)
		for i := range digits {
			carry += int(digits[i]) << 8
			digits[i], carry = byte(carry%58), carry/58
		}
		for ; carry > 0; carry /= 58 {
			digits = append(digits, byte(carry%58))
		}
	}
	for i := 0; i < len(b) && b[i] == 0; i++ {
		digits = append(digits, 0)
	}
	text := make([]byte, len(digits))
	for i, d := range digits {
		text[len(text)-1-i] = alphabet[d]
	}
	return string(text)
}

// unbase58 reverses base58, and returns nil for invalid text. The mapping is one to one.
func unbase58(text string) []byte {
	var bytes []byte // least significant first
	for _, c := range []byte(text) {
		carry := strings.IndexByte(alphabet, c)
		if carry < 0 {
			return nil
		}
		for i := range bytes {
			carry += int(bytes[i]) * 58
			bytes[i], carry = byte(carry), carry>>8
		}
		for ; carry > 0; carry >>= 8 {
			bytes = append(bytes, byte(carry))
		}
	}
	for i := 0; i < len(text) && text[i] == alphabet[0]; i++ {
		bytes = append(bytes, 0)
	}
	b := make([]byte, len(bytes))
	for i, v := range bytes {
		b[len(b)-1-i] = v
	}
	return b
}
