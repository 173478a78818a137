package pinout

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentsite/device/board"
)

// style is the colours of a kind of position, and its line of the legend. The kind is also
// written at each position, so that no reader has to tell colours apart.
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

	headHeight   = 84
	rowHeight    = 28
	legendHeight = 22
	padWidth     = 26
	tagWidth     = 104
	letterWidth  = 8.5 // of a name, about
	minLetters   = 14  // of a column of names
	gap          = 8
	maxNames     = 3 // of devices at one position; a bus has more
)

// SVG draws the header. The same pinout always gives the same bytes.
func (p *Pinout) SVG() []byte {
	longest := minLetters
	for _, pos := range p.Positions {
		longest = max(longest, utf8.RuneCountInString(shorten(pos.Devices)))
	}
	column := int(float64(longest)*letterWidth) + gap
	width := 2 * (gap + column + gap + tagWidth + gap + padWidth + 2)
	middle := width / 2
	rows := (len(p.Positions) + 1) / 2
	legend := headHeight + rows*rowHeight + 28
	height := legend + legendHeight*(len(styles)+2) + gap

	title := p.Board
	if p.Site != "" {
		title = fmt.Sprintf("%s on %s", p.Site, p.Board)
	}
	var c canvas
	fmt.Fprintf(&c, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" font-family="DejaVu Sans, Verdana, sans-serif">
<title>%s</title>
<desc>The 40-pin header from above, with what is wired to each position.</desc>
`, width, height, escape("The header: "+title))
	c.box(0, 0, width, height, 0, paper, 0)
	c.text(middle, 26, "middle", ink, `font-size="16" font-weight="bold"`, title)
	c.text(middle, 48, "middle", ink, normal, "switch the board off before you wire it")
	c.text(middle, 70, "middle", ink, small, "▲ this end is the SD card's; position 1 is square ▲")
	for i, pos := range p.Positions {
		c.position(middle, headHeight+i/2*rowHeight, pos)
	}
	y := legend
	for _, s := range styles {
		c.box(gap, y, 64, 18, 3, s.fill, 1)
		c.text(gap+32, y+13, "middle", s.ink, small, s.kind)
		c.text(gap+74, y+13, "start", ink, small, s.legend)
		y += legendHeight
	}
	c.box(gap+1, y+1, 62, 16, 3, paper, 3)
	c.text(gap+74, y+13, "start", ink, small, "in use, by the device beside it")
	if len(p.Elsewhere) > 0 {
		c.text(gap, y+13+legendHeight, "start", ink, small, "not on this header: "+shorten(p.Elsewhere))
	}
	c.WriteString("</svg>\n")
	return []byte(c.String())
}

// canvas collects the elements of the picture.
type canvas struct{ strings.Builder }

const (
	normal = `font-size="13"`
	small  = `font-size="12"`
	name   = `font-size="13" font-weight="bold" font-family="DejaVu Sans Mono, monospace"`
)

func (c *canvas) box(x, y, width, height, round int, fill string, frame int) {
	fmt.Fprintf(c, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" fill=\"%s\" stroke=\"%s\" stroke-width=\"%d\"/>\n", x, y, width, height, round, fill, ink, frame)
}

// text writes s with its start, its middle or its end at x.
func (c *canvas) text(x, y int, at, colour, how, s string) {
	fmt.Fprintf(c, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" fill=\"%s\" %s>%s</text>\n", x, y, at, colour, how, escape(s))
}

// position draws one position: its number, its label and its devices, from the middle
// outwards, odd numbers to the left.
func (c *canvas) position(middle, y int, pos board.Position) {
	s := styles[slices.IndexFunc(styles, func(s style) bool { return s.kind == pos.Kind })]
	left := func(from, width int) int { return middle + from }
	outwards := "start"
	if pos.Number%2 == 1 {
		left = func(from, width int) int { return middle - from - width }
		outwards = "end"
	}
	round, frame := 11, 1
	if pos.Number == 1 {
		round = 0
	}
	if len(pos.Devices) > 0 {
		frame = 3
	}
	pad, tag, devices := left(2, padWidth), left(2+padWidth+gap, tagWidth), left(2+padWidth+gap+tagWidth+gap, 0)
	c.box(pad, y, padWidth, 22, round, paper, 1)
	c.text(pad+padWidth/2, y+15, "middle", ink, small, strconv.Itoa(pos.Number))
	c.box(tag, y, tagWidth, 22, 3, s.fill, frame)
	c.text(tag+tagWidth/2, y+15, "middle", s.ink, normal, Label(pos))
	if len(pos.Devices) > 0 {
		c.text(devices, y+15, outwards, ink, name, shorten(pos.Devices))
	}
}

// shorten joins the names of devices, as many as fit.
func shorten(names []string) string {
	if len(names) > maxNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames-1], ", "), len(names)-maxNames+1)
	}
	return strings.Join(names, ", ")
}

// escape quotes a text for XML. A character that XML does not allow becomes U+FFFD.
func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a strings.Builder takes all
	return b.String()
}
