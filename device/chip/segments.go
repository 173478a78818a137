package chip

import (
	"strings"

	"agentsite/device"
)

// sevenSegments are the characters that seven segments can show, the upper segment in bit 6 and on
// clockwise, the middle one in bit 0. Other characters are dark.
var sevenSegments = map[byte]byte{
	'0': 0x7E, '1': 0x30, '2': 0x6D, '3': 0x79, '4': 0x33, '5': 0x5B, '6': 0x5F, '7': 0x70, '8': 0x7F, '9': 0x7B,
	'a': 0x77, 'b': 0x1F, 'c': 0x4E, 'd': 0x3D, 'e': 0x4F, 'f': 0x47, 'g': 0x5E, 'h': 0x37, 'i': 0x30, 'j': 0x3C,
	'l': 0x0E, 'n': 0x15, 'o': 0x1D, 'p': 0x67, 'q': 0x73, 'r': 0x05, 's': 0x5B, 't': 0x0F, 'u': 0x3E, 'y': 0x3B, 'z': 0x6D,
	'-': 0x01, '_': 0x08, '=': 0x09, '?': 0x65, '\'': 0x02, '"': 0x22, '[': 0x4E, ']': 0x78, '(': 0x4E, ')': 0x78,
	degree: 0x63, ' ': 0, '\n': 0,
}

// sevenPoint is the decimal point of a digit.
const sevenPoint = 0x80

// digits lays a text out on a line of so many digits. A point belongs to the digit
// before it. A text with a letter that seven segments cannot show is refused.
func digits(count int) func(string) ([]string, error) {
	return func(text string) ([]string, error) {
		var line []byte
		for _, c := range []byte(strings.TrimSpace(text)) {
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			shape, ok := sevenSegments[c]
			switch {
			case (c == '.' || c == ',') && len(line) > 0 && line[len(line)-1]&sevenPoint == 0:
				line[len(line)-1] |= sevenPoint
			case c == '.' || c == ',':
				line = append(line, sevenPoint)
			case !ok:
				return nil, device.Faultf(device.Invalid, "text: seven segments cannot show %q; write digits and other letters", string(rune(c)))
			default:
				line = append(line, shape)
			}
		}
		switch {
		case len(line) > count:
			return nil, device.Faultf(device.Invalid, "text: it takes %d digits, and the display has %d; shorten it", len(line), count)
		case len(line) == 0:
			return nil, nil
		}
		return []string{string(line)}, nil
	}
}
