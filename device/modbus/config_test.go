package modbus

import (
	"math"
	"slices"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// TestPlaces: addresses count from 0, numbers of manuals from 1 with a digit in front, and nothing is both.
func TestPlaces(t *testing.T) {
	number := func(n uint32) Place { return Place{Register: &n} }
	for _, c := range []struct {
		place Place
		want  at
	}{
		{Place{Coil: ptr(uint16(3))}, at{coils, 3}}, {Place{Holding: ptr(uint16(40000))}, at{holdings, 40000}},
		{Place{Input: ptr(uint16(40010))}, at{inputs, 40010}}, {Place{Holding: ptr(uint16(0x5B00))}, at{holdings, 23296}},
		{number(30053), at{inputs, 52}}, {number(40101), at{holdings, 100}}, {number(400101), at{holdings, 100}},
		{number(10001), at{discretes, 0}}, {number(365536), at{inputs, 65535}}, {number(440102), at{holdings, 40101}},
	} {
		if got, err := c.place.resolve("x"); err != nil || got != c.want {
			t.Errorf("got %v and %v, want %v", got, err, c.want)
		}
	}
	for _, p := range []Place{
		{Holding: ptr(uint16(40101))}, {Input: ptr(uint16(30053))}, // either of both
		number(53), number(30000), number(50001), number(0), number(465537), number(20001),
		{Coil: ptr(uint16(1)), Holding: ptr(uint16(1))},
	} {
		if got, err := p.resolve("x"); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("got %v and %v", got, err)
		}
	}
	// What the fault says to write is what was meant.
	for p, says := range map[*Place][]uint32{{Holding: ptr(uint16(40101))}: {40101, 440102}, {Input: ptr(uint16(30053))}: {30053, 330054}} {
		_, err := p.resolve("x")
		for i, n := range says {
			if !strings.Contains(err.Error(), "register: "+device.Number(float64(n)).String()) {
				t.Errorf("%v", err)
			}
			got, err := number(n).resolve("x")
			address := uint16(52)
			if p.Holding != nil {
				address = 100
			}
			if i == 1 {
				address = uint16(n%100000 - 1)
			}
			if err != nil || got.address != address {
				t.Errorf("%d: %v, %v", n, got, err)
			}
		}
	}
}

// TestFormats: a number goes into registers of each order and comes back.
func TestFormats(t *testing.T) {
	for kind := range typeWords {
		for _, order := range orders {
			f := Format{kind, order}
			for _, n := range []float64{0, 1, 258, 32767, -2, -32768} {
				if !f.limits().Contains(n) {
					continue
				}
				words := f.registers(f.bits(n))
				if got := f.number(f.raw(words)); got != n {
					t.Errorf("%v: %v becomes %v, in %x", f, n, got, words)
				}
			}
		}
	}
	pi := uint64(math.Float32bits(1.5))
	for order, want := range map[string][]uint16{"ABCD": {0x3FC0, 0}, "CDAB": {0, 0x3FC0}, "BADC": {0xC03F, 0}, "DCBA": {0, 0xC03F}} {
		if got := (Format{"float32", order}).registers(pi); !slices.Equal(got, want) {
			t.Errorf("%s: %x", order, got)
		}
	}
	if checksum([]byte{1, 5, 0, 0, 0xFF, 0}) != 0x3A8C { // 8C 3A on the line
		t.Errorf("%x", checksum([]byte{1, 5, 0, 0, 0xFF, 0}))
	}
}

// TestGroups: neighbours share a request, and a number is never divided.
func TestGroups(t *testing.T) {
	p := func(a uint16, kind string) point {
		return point{at: at{inputs, a}, format: Format{Type: kind}, bit: -1}
	}
	points := []point{p(4, "float32"), p(0, "float32"), p(2, "float32"), p(10, "uint16"), p(60, "int32")}
	for _, c := range []struct{ gap, block, want int }{{0, 50, 3}, {4, 50, 2}, {32, 8, 3}, {0, 4, 4}} {
		groups := groupsOf(points, c.gap, c.block)
		if len(groups) != c.want {
			t.Errorf("gap %d, block %d: %v", c.gap, c.block, groups)
		}
		for _, p := range points {
			if !slices.ContainsFunc(groups, func(g group) bool { return g.has(p.at, p.words()) }) {
				t.Errorf("gap %d, block %d: %v is in none of %v", c.gap, c.block, p.at, groups)
			}
		}
	}
}

// TestMaps: every map describes valid points, names its document, and can be opened by its name.
func TestMaps(t *testing.T) {
	if len(knownMaps()) < 12 {
		t.Errorf("there are %d", len(knownMaps()))
	}
	for _, m := range knownMaps() {
		c := configOf(board.New())
		c.Address, c.Map = "192.168.1.20", m.name
		if m.points[0].output {
			c.Outputs = map[string]outputConfig{"pump": {Use: m.points[0].Name, OutputPoint: driver.OutputPoint{Safe: device.Bool(false)}}}
			if m.points[0].Kind != device.KindSwitch {
				c.Outputs["pump"] = outputConfig{Use: m.points[0].Name, OutputPoint: driver.OutputPoint{Safe: device.Number(4)}}
			}
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if m.source == "" || m.model == "" || strings.ToLower(m.also) != m.also {
			t.Errorf("%+v", m)
		}
		seen := map[at]string{}
		for _, p := range m.points {
			if seen[p.at] != "" {
				t.Errorf("%s: %s and %s are both at %v", m.name, p.Name, seen[p.at], p.at)
			}
			seen[p.at] = p.Name
		}
	}
}

// TestMistakes are found without hardware.
func TestMistakes(t *testing.T) {
	number := driver.Quantity{Range: device.Range{Min: 0, Max: 10}}
	ok := func(c *config) {
		c.Address = "192.168.1.20"
		c.Inputs = map[string]inputConfig{"a": {Place: Place{Input: ptr(uint16(1))}, InputPoint: driver.InputPoint{Quantity: number}}}
	}
	good := configOf(board.New())
	if ok(good); good.Validate() != nil {
		t.Fatal(good.Validate())
	}
	input := func(i inputConfig) func(c *config) {
		return func(c *config) { c.Inputs["a"] = i }
	}
	output := func(o outputConfig) func(c *config) {
		return func(c *config) { c.Outputs = map[string]outputConfig{"b": o} }
	}
	off := driver.OutputPoint{Safe: device.Bool(false)}
	level := driver.OutputPoint{Quantity: number, Safe: device.Number(0)}
	for name, change := range map[string]func(c *config){
		"nothing":        func(c *config) { c.Address = "" },
		"both":           func(c *config) { c.Port = "/dev/ttyUSB0" },
		"host":           func(c *config) { c.Address = "a b" },
		"host port":      func(c *config) { c.Address = "a:0" },
		"tcp with baud":  func(c *config) { c.Baud = 9600 },
		"broadcast":      func(c *config) { c.Address, c.Port, c.UnitID = "", "/dev/ttyUSB0", 0 },
		"baud":           func(c *config) { c.Address, c.Port, c.Baud = "", "/dev/ttyUSB0", 9601 },
		"parity":         func(c *config) { c.Address, c.Port, c.Parity = "", "/dev/ttyUSB0", "mark" },
		"no points":      func(c *config) { c.Inputs = nil },
		"map":            func(c *config) { c.Map = "sdm63" },
		"relays only":    func(c *config) { c.Inputs, c.Map = nil, "waveshare-relay-8" },
		"timeout":        func(c *config) { c.Timeout = 5e9 },
		"no place":       input(inputConfig{InputPoint: driver.InputPoint{Quantity: number}}),
		"no range":       input(inputConfig{Place: Place{Input: ptr(uint16(1))}}),
		"type":           input(inputConfig{Place: Place{Input: ptr(uint16(1))}, Format: Format{Type: "int8"}, InputPoint: driver.InputPoint{Quantity: number}}),
		"coil a number":  input(inputConfig{Place: Place{Coil: ptr(uint16(1))}, InputPoint: driver.InputPoint{Quantity: number}}),
		"last":           input(inputConfig{Place: Place{Input: ptr(uint16(65535))}, Format: Format{Type: "int32"}, InputPoint: driver.InputPoint{Quantity: number}}),
		"out of reach":   input(inputConfig{Place: Place{Input: ptr(uint16(1))}, InputPoint: driver.InputPoint{Quantity: driver.Quantity{Range: device.Range{Min: -20, Max: -10}}}}),
		"use no map":     input(inputConfig{Use: "ai1"}),
		"exponent":       input(inputConfig{Place: Place{Input: ptr(uint16(1))}, Exponent: &Place{Coil: ptr(uint16(1))}, InputPoint: driver.InputPoint{Quantity: number}}),
		"write an input": output(outputConfig{Place: Place{Input: ptr(uint16(1))}, OutputPoint: off}),
		"coil a level":   output(outputConfig{Place: Place{Coil: ptr(uint16(1))}, OutputPoint: level}),
		"no safe":        output(outputConfig{Place: Place{Coil: ptr(uint16(1))}}),
		"read back":      output(outputConfig{Place: Place{Coil: ptr(uint16(1))}, ReadBack: &Place{Holding: ptr(uint16(1))}, OutputPoint: off}),
		"on is off":      output(outputConfig{Place: Place{Holding: ptr(uint16(1))}, On: ptr(uint16(0)), OutputPoint: off}),
		"too wide": output(outputConfig{Place: Place{Holding: ptr(uint16(1))}, OutputPoint: driver.OutputPoint{
			Quantity: driver.Quantity{Range: device.Range{Min: -1, Max: 1}}, Safe: device.Number(0)}}),
		"watchdog": func(c *config) { c.Watchdog = &watchdogConfig{Place: Place{Holding: ptr(uint16(1))}} },
	} {
		c := configOf(board.New())
		ok(c)
		change(c)
		if err := c.Validate(); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		c.Describe() // does not crash
		c.Resources()
	}
}

// TestEncode: no output leaves its range because of its steps.
func TestEncode(t *testing.T) {
	scale := 0.3
	p := point{at: at{holdings, 0}, quantity: driver.Quantity{Scale: &scale}}
	p.Point = device.Point{Name: "speed", Kind: device.KindLevel, Range: device.Range{Min: 0, Max: 50}}
	for n := 0.0; n <= 50; n += 0.01 {
		raw, err := p.encode(device.Number(n))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.quantity.Number(p.format.number(raw)); got < 0 || got > 50 || math.Abs(got-n) > 0.3 {
			t.Fatalf("%v becomes %v", n, got)
		}
	}
}
