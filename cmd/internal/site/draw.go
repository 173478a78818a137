package site

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentsite/device/board"
)

// style is how a kind of position is drawn, and what the legend says of it. What it is
// stands in words beside each position, so that no colour has to be told from another.
type style struct{ kind, fill, ink, legend string }

var styles = []style{
	{board.ThreeVolts, "#8a3b00", "#ffffff", "supply for chips and sensors"},
	{board.FiveVolts, "#a8001c", "#ffffff", "supply for relay boards and such; never into a line"},
	{board.Ground, "#1a1a1a", "#ffffff", "the same at all of these"},
	{board.I2CLine, "#00498a", "#ffffff", "SDA and SCL, for many chips at once"},
	{board.SPILine, "#56287f", "#ffffff", "for chips with a chip select each (CE0, CE1)"},
	{board.UARTLine, "#5a4600", "#ffffff", "what sends goes to RX"},
	{board.OneWire, "#005a4e", "#ffffff", "thermometers such as DS18B20, where it is switched on"},
	{board.GPIOLine, "#e6e6e6", "#000000", "a line: 3.3 V at most, some milliamperes"},
	{board.IDLine, "#ffffff", "#000000", "for boards that sit on this one; leave it alone"},
}

const (
	paper = "#ffffff"
	ink   = "#000000"

	rowHeight  = 28
	padWidth   = 30
	tagWidth   = 104
	letter     = 8.5 // the width of a letter of a name, about
	fewLetters = 14  // that a column of names has room for at least
	gap        = 8
	headHeight = 84
	mostNames  = 3 // of devices at one position; a bus has more
)

// SVG is the header as a picture. The same pinout is the same text, byte for byte.
func (p *Pinout) SVG() []byte {
	longest := fewLetters
	for _, pos := range p.Positions {
		longest = max(longest, utf8.RuneCountInString(few(pos.Devices)))
	}
	column := int(float64(longest)*letter) + gap
	width := 2 * (gap + column + gap + tagWidth + gap + padWidth)
	middle := width / 2
	rows := (len(p.Positions) + 1) / 2
	legend := headHeight + rows*rowHeight + 28
	height := legend + 22*(len(styles)+2) + gap

	title := p.Board
	if p.Site != "" {
		title = fmt.Sprintf("%s on %s", p.Site, p.Board)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" font-family="DejaVu Sans, Verdana, sans-serif" font-size="13">
<title>%s</title>
<desc>The 40-pin header from above, with what is wired to each position.</desc>
<rect width="%[1]d" height="%[2]d" fill="%[4]s"/>
`, width, height, escape("The header: "+title), paper)
	text := func(x, y int, how, s string) {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" fill=\"%s\"%s>%s</text>\n", x, y, ink, how, escape(s))
	}
	text(middle, 26, ` text-anchor="middle" font-size="16" font-weight="bold"`, title)
	text(middle, 48, ` text-anchor="middle"`, "switch the board off before you wire it")
	text(middle, 70, ` text-anchor="middle" font-size="12"`, "▲ this end is the SD card's; position 1 is square ▲")
	for i, pos := range p.Positions {
		y := headHeight + i/2*rowHeight
		side := 1 // to the right
		if pos.Number%2 == 1 {
			side = -1
		}
		position(&b, middle, y, side, pos)
	}
	y := legend
	for _, s := range styles {
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"64\" height=\"18\" rx=\"3\" fill=\"%s\" stroke=\"%s\"/>\n", gap, y, s.fill, ink)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" fill=\"%s\" text-anchor=\"middle\" font-size=\"12\">%s</text>\n", gap+32, y+13, s.ink, escape(s.kind))
		text(gap+74, y+13, ` font-size="12"`, s.legend)
		y += 22
	}
	fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"62\" height=\"16\" rx=\"3\" fill=\"%s\" stroke=\"%s\" stroke-width=\"3\"/>\n", gap+1, y+1, paper, ink)
	text(gap+74, y+13, ` font-size="12"`, "in use, by the device beside it")
	if len(p.Elsewhere) > 0 {
		text(gap, y+36, ` font-size="12"`, "not on this header: "+few(p.Elsewhere))
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// position draws one: its number, what it is and who is there, from the middle outwards.
func position(b *strings.Builder, middle, y, side int, pos board.Position) {
	var s style
	for _, one := range styles {
		if one.kind == pos.Kind {
			s = one
		}
	}
	box := func(from, width int) int { // its left edge
		if side < 0 {
			return middle - from - width
		}
		return middle + from
	}
	round := 11
	if pos.Number == 1 {
		round = 0
	}
	fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"22\" rx=\"%d\" fill=\"%s\" stroke=\"%s\"/>\n", box(2, padWidth-4), y, padWidth-4, round, paper, ink)
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" fill=\"%s\" text-anchor=\"middle\" font-size=\"12\">%d</text>\n", box(2, padWidth-4)+(padWidth-4)/2, y+15, ink, pos.Number)
	frame := 1
	if len(pos.Devices) > 0 {
		frame = 3
	}
	fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"22\" rx=\"3\" fill=\"%s\" stroke=\"%s\" stroke-width=\"%d\"/>\n", box(padWidth+gap, tagWidth), y, tagWidth, s.fill, ink, frame)
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" fill=\"%s\" text-anchor=\"middle\">%s</text>\n", box(padWidth+gap, tagWidth)+tagWidth/2, y+15, s.ink, escape(Label(pos)))
	if len(pos.Devices) > 0 {
		anchor := "start"
		if side < 0 {
			anchor = "end"
		}
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" fill=\"%s\" text-anchor=\"%s\" font-family=\"DejaVu Sans Mono, monospace\" font-weight=\"bold\">%s</text>\n", box(padWidth+gap+tagWidth+gap, 0), y+15, ink, anchor, escape(few(pos.Devices)))
	}
}

// Label is what a position is, in few letters.
func Label(pos board.Position) string {
	switch {
	case pos.Line == "":
		return pos.Kind
	case pos.Signal != "":
		return string(pos.Line) + " " + pos.Signal
	case pos.Kind != board.GPIOLine:
		return string(pos.Line) + " " + pos.Kind
	}
	return string(pos.Line)
}

// few are devices, as many as fit.
func few(names []string) string {
	if len(names) > mostNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames-1], ", "), len(names)-mostNames+1)
	}
	return strings.Join(names, ", ")
}

// escape is a text within XML. What XML cannot have is a question mark in a box.
func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a strings.Builder takes all
	return b.String()
}
