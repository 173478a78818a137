package chip

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/devicetest"
)

func show(t testing.TB, dev device.Device, text string) {
	t.Helper()
	if err := dev.(device.Display).Show(t.Context(), "text", text); err != nil {
		t.Fatalf("Show(%q): %v", text, err)
	}
}

// fakeSSD1306 is the chip's memory and whether its panel is on.
type fakeSSD1306 struct {
	partBus
	dots         [8][ssd1306Width]byte
	page, column int
	on           bool
	rows         byte
	settings     []byte // written last
}

func newFakeSSD1306() *fakeSSD1306 {
	f := &fakeSSD1306{}
	for i := range f.dots { // what is in it after power-on is anything
		f.dots[i][0] = 0x5A
	}
	f.tx = f.transfer
	return f
}

func (f *fakeSSD1306) transfer(w, _ []byte) {
	if w[0] == ssd1306Data {
		f.column += copy(f.dots[f.page][f.column:], w[1:])
		return
	}
	if len(w) > 8 {
		f.settings, f.rows = slices.Clone(w), w[2]
		return
	}
	for _, c := range w[1:] {
		switch {
		case c&^1 == 0xAE:
			f.on = c == 0xAF
		case c&0xF0 == 0xB0:
			f.page = int(c & 7)
		case c&0xF0 == 0x00:
			f.column = f.column&0xF0 | int(c)
		case c&0xF0 == 0x10:
			f.column = f.column&0x0F | int(c&0x0F)<<4
		}
	}
}

// picture is a part of the panel as one sees it.
func (f *fakeSSD1306) picture(x, y, width, height int) []string {
	var lines []string
	for dy := range height {
		line := ""
		for dx := range width {
			line += string(" #"[f.dots[(y+dy)/8][x+dx]>>((y+dy)%8)&1])
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

func (f *fakeSSD1306) empty() bool { return f.dots == [8][ssd1306Width]byte{} }

func TestSSD1306(t *testing.T) {
	f := newFakeSSD1306()
	dev := open(t, "ssd1306", f)
	if f.on || !f.empty() || f.rows != 63 {
		t.Errorf("opened: on %v, empty %v, %d rows", f.on, f.empty(), f.rows+1)
	}
	show(t, dev, "x\n 5 °T")
	want := []string{"", "", " #####", "   #", "   #", "   #", "   #", "   #", "   #", "   #", "   #"}
	if got := f.picture(21, 13, 6, 11); !f.on || !slices.Equal(got, want) {
		t.Errorf("on %v, the T is\n%s", f.on, strings.Join(got, "\n"))
	}
	if got := f.picture(14, 15, 6, 4); !slices.Equal(got, []string{" ##", "#  #", "#  #", " ##"}) {
		t.Errorf("the sign for degrees is\n%s", strings.Join(got, "\n"))
	}
	f.broken = errors.New("sysfs-i2c: input/output error")
	faulted(t, dev.(device.Display).Show(t.Context(), "text", "y"), device.Offline, "SDA and SCL")
	f.broken = nil
	*f = fakeSSD1306{partBus: partBus{tx: f.tx}} // it lost its supply
	show(t, dev, "y")
	if !f.on || f.empty() || f.rows != 63 {
		t.Error("it shows nothing after it lost its supply")
	}
	was := f.dots
	faulted(t, dev.(device.Display).Show(t.Context(), "text", strings.Repeat("word ", 17)), device.Invalid, "4 of 18")
	if f.dots != was {
		t.Error("a text that was refused changed the display")
	}
	if err := dev.Close(); err != nil || f.on || !f.empty() {
		t.Errorf("closed: %v, on %v, empty %v", err, f.on, f.empty())
	}
	devicetest.Run(t, func(t *testing.T) device.Device { return open(t, "ssd1306", newFakeSSD1306()) })
}

// TestSSD1306Settings holds the settings to those that periph has tried (its
// initialisation in ssd1306_test.go), for 64 rows and for 32.
func TestSSD1306Settings(t *testing.T) {
	for height, want := range map[int][][]byte{64: {{0xA8, 63}, {0xDA, 0x12}}, 32: {{0xA8, 31}, {0xDA, 0x02}}} {
		for _, rotated := range []bool{false, true} {
			f := newFakeSSD1306()
			c := onBus(t, "ssd1306", f, func(c *ssd1306Config) { c.Height, c.Rotated = height, rotated })
			show(t, opened(t, c), strings.Repeat("M", 18*height/13/18*18))
			directions := []byte{0xA1, 0xC8}
			if rotated {
				directions = []byte{0xA0, 0xC0}
			}
			for _, part := range append(want, directions, []byte{0x8D, 0x14}, []byte{0xA4, 0xA6}, []byte{0xD9, 0xF1, 0xDB, 0x40}) {
				if !strings.Contains(string(f.settings), string(part)) {
					t.Errorf("%d rows, rotated %v: %x is not among %x", height, rotated, part, f.settings)
				}
			}
		}
	}
	mistakes(t, "ssd1306", map[string]func(*ssd1306Config){
		"64 or 32":           func(c *ssd1306Config) { c.Height = 48 },
		"address: this chip": func(c *ssd1306Config) { c.Address = 0x3E },
	})
	_, err := config(t, "ssd1306", &partBus{broken: errors.New("sysfs-i2c: remote I/O error")}).Open(t.Context())
	faulted(t, err, device.Offline, "nothing answers at 0x3c")
}

// fakeHD44780 is the chip with eight or four wires, as after any past.
type fakeHD44780 struct {
	partBus
	pins     byte
	four     bool
	half     bool // the upper half of a byte has come
	upper    byte
	at       byte
	memory   [0x80]byte
	commands []byte
}

func newFakeHD44780() *fakeHD44780 {
	f := &fakeHD44780{}
	f.tx = func(w, _ []byte) {
		for _, pins := range w {
			if f.pins&hd44780Enable != 0 && pins&hd44780Enable == 0 {
				f.take(pins)
			}
			f.pins = pins
		}
	}
	return f
}

func (f *fakeHD44780) take(pins byte) {
	value := pins & 0xF0
	if f.four && !f.half {
		f.half, f.upper = true, value
		return
	}
	if f.four {
		f.half, value = false, f.upper|value>>4
	}
	switch {
	case pins&hd44780Character != 0:
		f.memory[f.at&0x7F] = value
		f.at++
	case value&0x80 != 0:
		f.at = value & 0x7F
	case value&0xE0 == 0x20:
		f.four = value&0x10 == 0
	default:
		f.commands = append(f.commands, value)
	}
}

func (f *fakeHD44780) line(at, columns int) string { return string(f.memory[at : at+columns]) }

func TestHD44780(t *testing.T) {
	for name, past := range map[string]func(*fakeHD44780){
		"after power-on":     func(*fakeHD44780) {},
		"four bits":          func(f *fakeHD44780) { f.four = true },
		"half way in a byte": func(f *fakeHD44780) { f.four, f.half, f.upper = true, true, 0x10 },
		"with characters":    func(f *fakeHD44780) { f.memory[3] = '#' },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeHD44780()
			past(f)
			dev := open(t, "hd44780", f)
			if f.pins&hd44780Light != 0 {
				t.Error("it is lit before it shows something")
			}
			show(t, dev, "24 °C \\ ~ µm now the second line")
			if one, two := f.line(0, 16), f.line(0x40, 16); one != "24 \xDFC / - um now" || two != "the second line " || f.pins&hd44780Light == 0 {
				t.Errorf("it shows %q and %q, pins %#b", one, two, f.pins)
			}
			if err := dev.Close(); err != nil || f.line(0, 16)+f.line(0x40, 16) != strings.Repeat(" ", 32) || f.pins&hd44780Light != 0 {
				t.Errorf("closed: %v, %q, pins %#b", err, f.line(0, 16), f.pins)
			}
		})
	}
	f := newFakeHD44780()
	show(t, opened(t, onBus(t, "hd44780", f, func(c *hd44780Config) { c.Columns, c.Rows = 20, 4 })), "a\nb\nc\nd")
	if f.memory[0] != 'a' || f.memory[0x40] != 'b' || f.memory[0x14] != 'c' || f.memory[0x54] != 'd' {
		t.Errorf("four lines are %q", f.memory)
	}
	mistakes(t, "hd44780", map[string]func(*hd44780Config){
		"8 to 20":            func(c *hd44780Config) { c.Columns = 40 },
		"1, 2 or 4":          func(c *hd44780Config) { c.Rows = 3 },
		"address: this chip": func(c *hd44780Config) { c.Address = 0x40 },
	})
	t.Run("conformance", func(t *testing.T) {
		devicetest.Run(t, func(t *testing.T) device.Device { return open(t, "hd44780", newFakeHD44780()) })
	})
}

func TestWrap(t *testing.T) {
	for text, want := range map[string][]string{
		"":                     nil,
		" \n ":                 nil,
		"one two three":        {"one two", "three"},
		"one\n\ntwo":           {"one", "", "two"},
		"abcdefghijklmnopqrst": {"abcdefgh", "ijklmnop", "qrst"},
		"ab abcdefghij cd":     {"ab", "abcdefgh", "ij cd"},
		"12345678\n":           {"12345678"},
		"„24 °C“ – ☃":          {"?24 \xB0C\"", "- ?"},
		"\xff\xfe":             {"??"},
	} {
		if got := wrap(fold(text), 8); !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func FuzzShow(f *testing.F) {
	f.Add("24 °C \xff…\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, line := range wrap(fold(text), 18) {
			if len(line) > 18 {
				t.Errorf("%q has a line of %d", text, len(line))
			}
			for _, c := range []byte(line) {
				glyph(make([]byte, ssd1306Width*8), 0, 0, c)
			}
		}
	})
}
