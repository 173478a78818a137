package chip

import (
	"context"
	"strings"

	"agentsite/device"
)

// display is a chip that shows lines of text. It cannot be read back, so that show also writes its
// settings each time, in case it lost its supply.
type display struct {
	managedChip
	lay  func(text string) ([]string, error) // of a folded text, the lines that it takes
	show func(lines []string) error
}

// openDisplay opens the chip with the display dark, as its setUp makes it.
func openDisplay(ctx context.Context, chip managedChip, lay func(string) ([]string, error), show func([]string) error) (device.Device, error) {
	d := &display{chip, lay, show}
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// textPoint is the one point of a display.
func textPoint(description string) []device.Point {
	return []device.Point{{Name: "text", Kind: device.KindText, Description: description}}
}

// Show shows a text; an empty one leaves the display dark. A text that does not fit is refused, and
// the shown text stays.
func (d *display) Show(ctx context.Context, point, text string) error {
	if point != d.desc.Points[0].Name {
		return device.Faultf(device.Invalid, "%.40q is not a display of this device", point)
	}
	lines, err := d.lay(fold(text))
	switch {
	case err != nil:
		return err
	case len(lines) == 0:
		return d.use(ctx, d.setUp)
	}
	return d.use(ctx, func() error { return d.show(lines) })
}

// Close makes the display dark. One that is gone shows nothing either, so that is no
// error.
func (d *display) Close() error {
	d.managedChip.Close()
	return nil
}

// degree is the sign for degrees in folded text, a byte like all others there.
const degree = 0xB0

// folds are signs that have something like them in ASCII.
var folds = strings.NewReplacer(
	"\t", " ", "–", "-", "—", "-", "−", "-", "‘", "'", "’", "'", "“", "\"", "”", "\"", "…", "...", "µ", "u", "μ", "u", "²", "2", "³", "3", "×", "x", "Ω", "Ohm",
	"ä", "ae", "ö", "oe", "ü", "ue", "Ä", "Ae", "Ö", "Oe", "Ü", "Ue", "ß", "ss", "é", "e", "è", "e", "€", "EUR",
)

// fold converts a text to the characters that displays can show: ASCII, line ends and the byte
// degree. Other characters become question marks.
func fold(text string) string {
	var b strings.Builder
	for _, r := range folds.Replace(text) {
		switch {
		case r == '\n' || r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r == '°':
			b.WriteByte(degree)
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

// wrapped lays a text out in lines of characters.
func wrapped(columns, rows int) func(string) ([]string, error) {
	return func(text string) ([]string, error) {
		lines := wrap(text, columns)
		if len(lines) > rows {
			return nil, device.Faultf(device.Invalid, "text: it takes %d lines, and the display has %d of %d characters; shorten it", len(lines), rows, columns)
		}
		return lines, nil
	}
}

// wrap breaks a folded text into lines, at spaces where there are some.
func wrap(text string, columns int) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var lines []string
	for _, paragraph := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			switch {
			case line == "":
				line = word
			case len(line)+1+len(word) <= columns:
				line += " " + word
			default:
				lines, line = append(lines, line), word
			}
			for ; len(line) > columns; line = line[columns:] {
				lines = append(lines, line[:columns])
			}
		}
		lines = append(lines, line)
	}
	return lines
}
