package pinout

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentsite/device/board"
)

// drawn returns the texts in a picture and counts its shapes. It fails if the picture is no XML.
func drawn(t *testing.T, svg []byte) (texts []string, shapes map[string]int) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	shapes = make(map[string]int)
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && depth == 0 {
			return texts, shapes
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			depth++
			shapes[token.Name.Local]++
			if depth == 1 && token.Name != (xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"}) {
				t.Errorf("it begins with %v", token.Name)
			}
		case xml.EndElement:
			depth--
		case xml.CharData:
			if s := strings.TrimSpace(string(token)); s != "" {
				texts = append(texts, s)
			}
		}
	}
}

// TestPinoutSVG has names that a picture must not take for its own words, and a bus with
// more devices than there is room for.
func TestPinoutSVG(t *testing.T) {
	positions, _ := board.On(board.Machine{Root: t.TempDir()}).Header([]board.Use{
		{Device: "a", Resources: (&board.I2C{Bus: "i2c-1", Address: 1}).Resources()}, {Device: "b", Resources: (&board.I2C{Bus: "i2c-1", Address: 2}).Resources()},
		{Device: "c", Resources: (&board.I2C{Bus: "i2c-1", Address: 3}).Resources()}, {Device: "d", Resources: (&board.I2C{Bus: "i2c-1", Address: 4}).Resources()},
	})
	p := &Pinout{Site: "shed", Board: "Pi <4> & \"more\"\x01 ]]>", Positions: positions, Elsewhere: []string{"</svg>"}}
	svg := p.SVG()
	texts, shapes := drawn(t, svg)
	for _, want := range []string{"shed on Pi <4> & \"more\"\uFFFD ]]>", "a, b and 2 more", "not on this header: </svg>", "GPIO2 SDA", "GPIO4 1-Wire", "40"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not there", want)
		}
	}
	// The paper, two for each position, and the legend.
	if want := 1 + 2*40 + len(styles) + 1; shapes["rect"] != want || shapes["title"] != 1 {
		t.Errorf("%d rectangles, want %d; %d titles", shapes["rect"], want, shapes["title"])
	}
	if !bytes.Equal(svg, p.SVG()) {
		t.Error("it is another one now")
	}
}

// TestPinoutContrast checks the contrast of each colour with the letters on it, in colour and
// therefore in grey. It is at least 4.5 to 1 (WCAG 2.2, 1.4.3) for all kinds of positions.
func TestPinoutContrast(t *testing.T) {
	positions, _ := board.On(board.Machine{Root: t.TempDir()}).Header(nil)
	for _, pos := range positions {
		if !slices.ContainsFunc(styles, func(s style) bool { return s.kind == pos.Kind }) {
			t.Errorf("%s has no colours", pos.Kind)
		}
	}
	for _, pair := range append(styles, style{kind: "paper", fill: paper, ink: ink}) {
		if got := contrast(t, pair.fill, pair.ink); got < 4.5 {
			t.Errorf("%s: %.1f to 1", pair.kind, got)
		}
	}
	if got := contrast(t, "#ffffff", "#767676"); got < 4.5 || got > 4.6 {
		t.Errorf("the measure is wrong: %.2f", got)
	}
}

func contrast(t *testing.T, a, b string) float64 {
	light, dark := luminance(t, a), luminance(t, b)
	if light < dark {
		light, dark = dark, light
	}
	return (light + 0.05) / (dark + 0.05)
}

// luminance is WCAG's, of a colour like #0a1b2c.
func luminance(t *testing.T, colour string) float64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 24)
	if err != nil || len(colour) != 7 {
		t.Fatal(colour)
	}
	var sum float64
	for shift, weight := range map[int]float64{16: 0.2126, 8: 0.7152, 0: 0.0722} {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
