// Package qr draws QR codes.
package qr

import (
	"strings"

	"rsc.io/qr"
)

const margin = 2 // squares around the code; readers take fewer than the four of the standard

// Draw returns a text as a QR code, or "" where it is too long for one. A character shows two squares, one
// above the other, from the few that fonts of a Linux console have. Light squares have the color of letters,
// so that it is a code on a dark terminal, and by Color on all others.
func Draw(text string) string {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for y := -margin; y < code.Size+margin; y += 2 {
		for x := -margin; x < code.Size+margin; x++ {
			above, below := !code.Black(x, y), !code.Black(x, y+1)
			switch {
			case above && below:
				b.WriteRune('█')
			case above:
				b.WriteRune('▀')
			case below:
				b.WriteRune('▄')
			default:
				b.WriteRune(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Rows returns the squares of a text's QR code, row by row and without a margin: 1 is a dark one, and 0 a light
// one. It returns nil where the text is too long for one.
func Rows(text string) (rows []string) {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return nil
	}
	for y := range code.Size {
		row := make([]byte, code.Size)
		for x := range row {
			row[x] = '0'
			if code.Black(x, y) {
				row[x] = '1'
			}
		}
		rows = append(rows, string(row))
	}
	return rows
}

// Color makes the letters of each row white on black, whatever the terminal's colors are.
func Color(drawn string) string {
	const whiteOnBlack, before = "\x1b[37;40;1m", "\x1b[0m"
	var b strings.Builder
	for row := range strings.Lines(drawn) {
		b.WriteString(whiteOnBlack + strings.TrimSuffix(row, "\n") + before + "\n")
	}
	return b.String()
}
