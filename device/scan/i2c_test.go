package scan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
	"agentsite/device/driver"

	"pgregory.net/rapid"
)

type nothing struct{}

func (nothing) Open(context.Context) (device.Device, error) { return nil, nil }

// have returns drivers with these names.
func have(names ...string) []driver.Driver {
	all := []driver.Driver{{Name: "kernel:", Of: func(string) driver.Config { return nothing{} }}}
	for _, n := range names {
		all = append(all, driver.Driver{Name: n, Config: func() driver.Config { return nothing{} }})
	}
	return all
}

func on(b *bus) *Scan {
	return &Scan{Board: boardtest.I2C(b), Root: "/nowhere", Buses: []string{"i2c-1"}, Drivers: have("bme280", "pcf8574")}
}

// run scans and returns the found parts, one per line.
func run(t testing.TB, s *Scan) string {
	found, trouble := s.Run(context.Background())
	for _, f := range trouble {
		t.Errorf("%s: %s", f.Subject, f.Says)
	}
	return lines(found)
}

func lines(found []Found) string {
	var all []string
	for _, f := range found {
		line := fmt.Sprintf("%s %s: %s", f.Confidence, f.Where, f.What)
		for _, d := range f.Devices {
			line += " | " + d.Name + ": " + d.YAML
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

// sht returns a Sensirion word with its CRC.
func sht(words ...uint16) string {
	var b []byte
	for _, w := range words {
		pair := []byte{byte(w >> 8), byte(w)}
		b = append(b, pair[0], pair[1], board.CRC8(pair))
	}
	return string(b)
}

func bme280() *registers {
	m := with(0xD0, 0x60)
	copy(m.mem[0x88:], []byte{0x70, 0x6b, 0x43, 0x67, 0x18, 0xfc}) // its calibration
	return m
}

func TestFinds(t *testing.T) {
	b := &bus{parts: map[uint16]model{
		0x76: bme280(),
		0x77: &port{bytes: []byte{0x00}},
		0x1f: &wide{reg: map[byte][2]byte{6: {0x00, 0x54}, 7: {0x04, 0x00}}},
		0x41: &wide{reg: map[byte][2]byte{0: {0x39, 0x9F}}},
		0x48: &wide{reg: map[byte][2]byte{1: {0x60, 0xA0}}},
		0x23: &port{bytes: []byte{0x01, 0x2c}},
		0x44: &teller{command: "\x89", answer: sht(1, 2)},
		0x60: &port{bytes: []byte{0xC0, 0x80, 0x00, 0x08, 0x00}},
		0x0c: new(registers),
	}}
	s := on(b)
	want := `certain i2c-1/0x1f: MCP9808 | mcp9808: { driver: kernel:jc42, bus: i2c-1, address: 0x1f }
certain i2c-1/0x76: BME280 | bme280: { driver: bme280, bus: i2c-1, address: 0x76 }
likely i2c-1/0x41: INA219 | ina219: { driver: kernel:ina219, bus: i2c-1, address: 0x41 }
candidate i2c-1/0x23: PCF8574, HD44780 display, PCF8575, BH1750, MCP23017, TCA9534 | pcf8574: { driver: pcf8574, bus: i2c-1, address: 0x23 } | bh1750: { driver: kernel:bh1750, bus: i2c-1, address: 0x23 }
candidate i2c-1/0x48: ADS1115, TMP102, LM75, PCF8591, INA219, PCA9685, INA226, INA260 | lm75: { driver: kernel:lm75, bus: i2c-1, address: 0x48 }
candidate i2c-1/0x60: MCP4725, MCP4728, PCA9685
candidate i2c-1/0x77: PCA9548 multiplexer, MS5611, HT16K33 display, PCA9685, BME280, BMP280, BME680, BMP180 | ms5611: { driver: kernel:ms5611, bus: i2c-1, address: 0x77 }`
	if got := run(t, s); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	b.log = nil
	s.Probe = []uint16{0x44, 0x48, 0x58, 0x23}
	got := run(t, s)
	for _, want := range []string{
		"certain i2c-1/0x44: SHT4x | sht4x: { driver: kernel:sht4x, bus: i2c-1, address: 0x44 }",
		"likely i2c-1/0x48: TMP102 | tmp102: { driver: kernel:tmp102, bus: i2c-1, address: 0x48 }",
		"candidate i2c-1/0x23: PCF8574, HD44780 display, PCF8575, BH1750, MCP23017, TCA9534 |",
		"candidate i2c-1/0x58: no known part",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if w := b.writes(0x60); len(w) > 0 {
		t.Errorf("0x60 was not to be probed, and was written %v", w)
	}
}

// TestProbe scans each part that only a probe identifies, alone at its address.
func TestProbe(t *testing.T) {
	aht := []byte{0x1c, 1, 2, 3, 4, 5}
	aht = append(aht, board.CRC8(aht))
	for want, p := range map[string]struct {
		addr uint16
		part model
	}{
		"certain i2c-1/0x47: HDC302x":              {0x47, &teller{command: "\x37\x81", answer: sht(0x3000)}},
		"likely i2c-1/0x45: SHT3x":                 {0x45, &teller{command: "\xF3\x2D", answer: sht(0x8010)}},
		"certain i2c-1/0x62: SCD4x":                {0x62, &teller{command: "\x36\x82", answer: sht(1, 2, 3)}},
		"certain i2c-1/0x58: SGP30":                {0x58, &teller{command: "\x36\x82", answer: sht(1, 2, 3)}},
		"certain i2c-1/0x38: AHT20":                {0x38, &port{bytes: aht}},
		"likely i2c-1/0x49: ADS1115":               {0x49, &wide{reg: map[byte][2]byte{1: {0x85, 0x83}}}},
		"likely i2c-1/0x40: PCA9685":               {0x40, with(2, 0xE2, 0xE4, 0xE8, 0xE0)},
		"likely i2c-1/0x20: MCP23017":              {0x20, with(0, 0xFF, 0xFF)},
		"likely i2c-1/0x27: TCA9534":               {0x27, with(0, 0x12, 0xFF, 0x00, 0xFF)},
		"certain i2c-1/0x40: INA226":               {0x40, &wide{reg: map[byte][2]byte{0xFF: {0x22, 0x61}}}},
		"certain i2c-1/0x77: BMP180":               {0x77, with(0xD0, 0x55)},
		"certain i2c-1/0x69: MPU9250":              {0x69, with(0x75, 0x71)},
		"certain i2c-1/0x53: ADXL345":              {0x53, with(0, 0xE5)},
		"certain i2c-1/0x5a: CCS811":               {0x5a, with(0x20, 0x81)},
		"likely i2c-1/0x18: DS2482 1-Wire bridge":  {0x18, &bridge{}},
		"candidate i2c-1/0x3c: SSD1306 display, P": {0x3c, &port{bytes: []byte{0x43}}},
		"candidate i2c-1/0x45: no known part":      {0x45, &teller{command: "\xF3\x2D", answer: "\x00\x01\x02"}}, // a wrong CRC
	} {
		s := on(&bus{parts: map[uint16]model{p.addr: p.part}})
		s.Probe = []uint16{p.addr}
		if got := run(t, s); !strings.HasPrefix(got, want) {
			t.Errorf("%s is found as %s", want, got)
		}
	}
}

// bridge is a DS2482 with its line idle.
type bridge struct{ pointer byte }

func (b *bridge) write(w []byte) { b.pointer = w[len(w)-1] }
func (b *bridge) moved() bool    { return false }
func (b *bridge) read(n int) []byte {
	out := make([]byte, n)
	if b.pointer != 0xC3 {
		out[0] = 0x18
	}
	return out
}

// acting is a part of the table, with the test's own model of its effect.
func acting(t *rapid.T, p part) model {
	switch {
	case strings.HasPrefix(p.name, "PCA9548"):
		return &port{bytes: []byte{rapid.Byte().Draw(t, "channels")}}
	case strings.HasPrefix(p.name, "HT16K33"):
		return &port{bytes: rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "keys")}
	case strings.HasPrefix(p.name, "PT2258"), p.name == "SHT4x", p.name == "SCD4x":
		return &port{deaf: true}
	case p.name == "MS5611":
		return &port{bytes: []byte{0}}
	case p.byte == pointer:
		m := new(registers)
		copy(m.mem[:], rapid.SliceOfN(rapid.Byte(), 256, 256).Draw(t, "registers"))
		return m
	}
	return &port{bytes: rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "reads")}
}

// TestMovesNothing scans buses with random parts at random possible addresses. No part that
// acts on a byte gets one, the others get at most one at a time, and skipped addresses
// get no transfer.
func TestMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &bus{parts: make(map[uint16]model)}
		what := make(map[uint16]part)
		for _, p := range rapid.SliceOfN(rapid.SampledFrom(parts), 0, 30).Draw(t, "parts") {
			addr := rapid.Uint16Range(p.from, p.to).Draw(t, "address")
			b.parts[addr], what[addr] = acting(t, p), p
		}
		if rapid.Bool().Draw(t, "with a BME280") {
			b.parts[0x76], what[0x76] = bme280(), part{name: "BME280", byte: pointer}
		}
		s := on(b)
		s.Taken = make(map[string]string)
		taken := rapid.SliceOfN(rapid.Uint16Range(first, last), 0, 5).Draw(t, "taken")
		s.Probe = rapid.SliceOfN(rapid.SampledFrom(append(taken, first)), 0, 3).Draw(t, "probed") // --probe of a used address has no effect
		for _, addr := range taken {
			s.Taken[fmt.Sprintf("i2c-1/%#02x", addr)] = "pump"
		}
		found, trouble := s.Run(context.Background())
		if len(trouble) > 0 {
			t.Fatalf("%+v", trouble)
		}
		for _, tr := range b.log {
			switch {
			case tr.addr < first || tr.addr > last || tr.addr == alert:
				t.Fatalf("%#x is reserved, and saw %+v", tr.addr, tr)
			case slices.Contains(taken, tr.addr):
				t.Fatalf("%#x is another's, and saw %+v", tr.addr, tr)
			case len(tr.w) == 0 && tr.r == 0:
				t.Fatalf("an empty transfer at %#x", tr.addr)
			case len(tr.w) > 1 && tr.addr != first:
				t.Fatalf("%x was written to %#x", tr.w, tr.addr)
			case len(tr.w) > 0 && what[tr.addr].byte != pointer && tr.addr != first:
				t.Fatalf("%x was written to %#x, where %+v is", tr.w, tr.addr, what[tr.addr])
			}
		}
		for addr, m := range b.parts {
			if m.moved() {
				t.Fatalf("%+v moved", what[addr])
			}
		}
		if what[0x76].name == "BME280" && !slices.Contains(taken, 0x76) && !strings.Contains(lines(found), "certain i2c-1/0x76: BME280") {
			t.Fatalf("the BME280 was not found:\n%s", lines(found))
		}
	})
}

// TestTable checks the table: parts that are identified without --probe have addresses at
// which no part acts on a byte, and each part has its source.
func TestTable(t *testing.T) {
	for _, p := range parts {
		if p.source == "" || p.from > p.to || p.from < 3 || p.to > 0x7f {
			t.Errorf("%+v", p)
		}
	}
	free := make(map[uint16]bool)
	for _, sig := range signatures {
		if (sig.ask == nil) == (len(sig.ids) == 0) || sig.part == "" || len(sig.addresses) == 0 {
			t.Errorf("%+v", sig)
		}
		for _, id := range sig.ids {
			if id.want == "" || id.mask != "" && len(id.mask) != len(id.want) {
				t.Errorf("%s: %+v", sig.part, id)
			}
		}
		for _, addr := range sig.addresses {
			acted := slices.ContainsFunc(partsAt(addr), func(p part) bool { return p.byte == acts })
			free[addr] = !acted
		}
	}
	maps.DeleteFunc(free, func(_ uint16, ok bool) bool { return !ok })
	var got []string
	for _, addr := range slices.Sorted(maps.Keys(free)) {
		got = append(got, fmt.Sprintf("%02x", addr))
	}
	// All addresses to which a register's number is written without --probe.
	const want = "1c 1d 1e 1f 36 41 43 47 50 51 52 53 54 55 56 57 58 59 5a 5b 5d 5e 5f 68 69 6a 6b 6c 6d 6e 6f 70 71 72 73 74 75 76 77"
	if strings.Join(got, " ") != want {
		t.Errorf("a scan writes at %s, want %s", strings.Join(got, " "), want)
	}
}

func TestBadBuses(t *testing.T) {
	for name, tt := range map[string]struct {
		bus  *bus
		says string
		most int // transfers
	}{
		"stuck, SCL":    {&bus{broken: fmt.Errorf("sysfs-i2c: %v", syscall.ETIMEDOUT)}, "i2c-1 is stuck", 3},
		"stuck, SDA":    {&bus{stuck: true}, "SDA is held low", last - first},
		"gone":          {&bus{broken: syscall.ENODEV}, "plug its adapter in", 3},
		"not permitted": {&bus{broken: syscall.EACCES}, "group i2c", 1},
	} {
		found, trouble := on(tt.bus).Run(t.Context())
		if len(found) != 0 || len(trouble) != 1 || !strings.Contains(trouble[0].Says, tt.says) || len(tt.bus.log) > tt.most {
			t.Errorf("%s: %v %+v after %d transfers", name, found, trouble, len(tt.bus.log))
		}
		for _, tr := range tt.bus.log {
			if len(tr.w) > 0 {
				t.Errorf("%s: %+v was written", name, tr)
			}
		}
	}
	s := on(&bus{})
	for bus, says := range map[string]string{"i2c-7": "there is no i2c-7", "i2c-1/0x70:3": "bind the multiplexer", "spi": "is not an I2C bus"} {
		s.Buses = []string{bus}
		if _, trouble := s.Run(t.Context()); len(trouble) != 1 || !strings.Contains(trouble[0].Says, says) {
			t.Errorf("%s: %+v", bus, trouble)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	if _, trouble := on(&bus{}).Run(ctx); len(trouble) != 1 {
		t.Errorf("after the end: %+v", trouble)
	}
}

// A part that is excluded by its ID is not a candidate.
func TestAnotherPartIsNotOffered(t *testing.T) {
	for _, reg := range []map[byte][2]byte{
		{6: {0x00, 0x55}, 7: {0x04, 0x00}}, // another manufacturer
		{6: {0x00, 0x54}, 7: {0x22, 0x00}}, // an MCP9844
		{},
	} {
		s := on(&bus{parts: map[uint16]model{0x1f: &wide{reg: reg}}})
		if got := run(t, s); strings.Contains(got, "MCP9808") || strings.Contains(got, "jc42") {
			t.Errorf("%v: %s", reg, got)
		}
	}
	s := on(&bus{parts: map[uint16]model{0x62: &teller{command: "\x36\x82", answer: "\x00\x01\x02\x00\x01\x02\x00\x01\x02"}}})
	s.Probe = []uint16{0x62}
	if got := run(t, s); strings.Contains(got, "SCD4x") {
		t.Errorf("its CRC is wrong: %s", got)
	}
}
