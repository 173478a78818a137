package chip

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"agentsite/device"
	"agentsite/device/board/boardtest"
	"agentsite/device/devicetest"
	"agentsite/device/driver"

	"periph.io/x/conn/v3"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
)

// portFake is an SPI port that is opened anew for each use, which periph's playback
// cannot be.
type portFake struct {
	mu     sync.Mutex
	tx     func(w, r []byte) // may be nil
	broken error
	sent   [][]byte
	clock  physic.Frequency
}

func (p *portFake) String() string { return "port" }

func (p *portFake) Connect(f physic.Frequency, _ spi.Mode, _ int) (spi.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock = f
	return portFakeConn{p}, nil
}

type portFakeConn struct{ *portFake }

func (portFakeConn) Duplex() conn.Duplex { return conn.Full }

func (portFakeConn) TxPackets([]spi.Packet) error { return errors.New("no packets here") }

func (p portFakeConn) Tx(w, r []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return p.broken
	}
	if len(w) > 4096 || r != nil && len(r) != len(w) {
		return errors.New("sysfs-spi: message too long")
	}
	p.sent = append(p.sent, bytes.Clone(w))
	if p.tx != nil {
		p.tx(w, r)
	}
	return nil
}

func (p *portFake) last() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent[len(p.sent)-1]
}

// onPort is the driver's Config on a board with this port, made complete.
func onPort[C driver.Config](t testing.TB, name string, port *portFake, fill func(C)) driver.Config {
	t.Helper()
	d, ok := driver.Find(Drivers(boardtest.Machine{SPI: map[string]spi.Port{"spidev0.0": port}}.Board()), name)
	if !ok {
		t.Fatalf("there is no driver %s", name)
	}
	c := d.Config()
	fill(c.(C))
	return c
}

// fakeMCP3008 has a value at each input.
func fakeMCP3008(raw [8]uint16) *portFake {
	return &portFake{tx: func(w, r []byte) {
		n := raw[w[1]>>4&7]
		copy(r, []byte{0xFF, 0xF8 | byte(n>>8), byte(n)}) // before its answer the line floats
	}}
}

func TestMCP3008(t *testing.T) {
	port := fakeMCP3008([8]uint16{0, 1023, 512, 0, 0, 0, 0, 341})
	c := onPort(t, "mcp3008", port, func(c *mcp3008Config) { c.Channels, c.Reference = []int{0, 1, 2, 7}, 5.12 })
	dev := opened(t, c)
	want := map[string]float64{"voltage0": 0, "voltage1": 5.115, "voltage2": 2.56, "voltage7": 1.705}
	wants(t, dev, want)
	if got := port.last(); !bytes.Equal(got, []byte{0x01, 0xF0, 0}) || port.clock != physic.MegaHertz {
		t.Errorf("channel 7 is asked for with %x at %s; single-ended, it is 01 f0 00 (DS21295, table 5-2)", got, port.clock)
	}
	port.broken = errors.New("sysfs-spi: Tx() failed: input/output error")
	fails(t, dev, device.Offline)
	port.broken = nil
	wants(t, dev, want)
	answers := port.tx
	port.tx = func(_, r []byte) { copy(r, []byte{0xFF, 0xFF, 0xFF}) }
	_, err := dev.(device.Sensor).Sample(t.Context())
	faulted(t, err, device.Offline, "no response")
	port.tx = answers
	wants(t, dev, want)
	mistakes(t, "mcp3008", map[string]func(*mcp3008Config){
		"0.25 to 5.5":  func(c *mcp3008Config) { c.Reference = 5000 },
		"0 to 7":       func(c *mcp3008Config) { c.Channels = []int{8} },
		"twice":        func(c *mcp3008Config) { c.Channels = []int{1, 1} },
		"all eight":    func(c *mcp3008Config) { c.Channels = nil },
		"like spidev0": func(c *mcp3008Config) { c.Port = "spi0" },
	})
	_, err = config(t, "mcp3008", nil).Open(t.Context())
	faulted(t, err, device.Offline, "switch SPI on")
	t.Run("conformance", func(t *testing.T) {
		devicetest.Run(t, func(t *testing.T) device.Device {
			return opened(t, onPort(t, "mcp3008", fakeMCP3008([8]uint16{}), func(*mcp3008Config) {}))
		})
	})
}

// fakeMAX7219 keeps the chip's registers, which are anything after power-on.
func fakeMAX7219(registers *[16]byte) *portFake {
	return &portFake{tx: func(w, _ []byte) { registers[w[0]] = w[1] }}
}

func TestMAX7219(t *testing.T) {
	registers := [16]byte{max7219Test: 1, max7219On: 1, 3: 0xFF, max7219Decode: 0xFF}
	port := fakeMAX7219(&registers)
	dev := opened(t, onPort(t, "max7219", port, func(c *max7219Config) { c.Digits = 4 }))
	if registers[max7219On] != 0 || registers[3] != 0 || registers[max7219Test] != 0 {
		t.Errorf("opened: %x", registers)
	}
	show(t, dev, "2 °C")
	if got := registers[1:5]; registers[max7219On] != 1 || registers[max7219Scan] != 3 || registers[max7219Decode] != 0 || registers[max7219Dim] != 7 ||
		!bytes.Equal(got, []byte{0x4E, 0x63, 0x00, 0x6D}) {
		t.Errorf("registers %x", registers)
	}
	faulted(t, dev.(device.Display).Show(t.Context(), "text", "12345"), device.Invalid, "takes 5 digits")
	faulted(t, dev.(device.Display).Show(t.Context(), "text", "x"), device.Invalid, "cannot show \"x\"")
	show(t, dev, "1.2.34")
	if got := registers[1:5]; !bytes.Equal(got, []byte{0x33, 0x79, 0x6D | 0x80, 0x30 | 0x80}) {
		t.Errorf("digits %x", got)
	}
	port.broken = errors.New("gone")
	faulted(t, dev.(device.Display).Show(t.Context(), "text", "1"), device.Offline, "spidev0.0")
	port.broken = nil
	show(t, dev, "-")
	if err := dev.Close(); err != nil || registers[max7219On] != 0 || registers[1] != 0 {
		t.Errorf("closed: %v, %x", err, registers)
	}
	mistakes(t, "max7219", map[string]func(*max7219Config){
		"1 to 8":       func(c *max7219Config) { c.Digits = 9 },
		"1 to 16":      func(c *max7219Config) { c.Brightness = 0 },
		"like spidev0": func(c *max7219Config) { c.Port = "" },
	})
	t.Run("conformance", func(t *testing.T) {
		devicetest.Run(t, func(t *testing.T) device.Device {
			return opened(t, onPort(t, "max7219", fakeMAX7219(&[16]byte{}), func(*max7219Config) {}))
		})
	})
}

// stripLight decodes the first and the last lamp of what was sent last, in percent.
func stripLight(name string, sent []byte, lamps int) (first, last [3]float64) {
	lamp := func(i int) (light [3]float64) {
		for c := range light {
			var value byte
			if name == "apa102" {
				value = sent[4+4*i+1+c]
			} else {
				bits := sent[1+9*i+3*c:]
				whole := uint32(bits[0])<<16 | uint32(bits[1])<<8 | uint32(bits[2])
				for b := range 8 {
					value = value<<1 | byte(whole>>(22-3*b)&1)
				}
			}
			place := map[string][3]int{"apa102": {2, 1, 0}, "neopixel": {1, 0, 2}}[name][c]
			light[place] = float64(value) * 100 / 255
		}
		return light
	}
	return lamp(0), lamp(lamps - 1)
}

func TestStrips(t *testing.T) {
	for name, kind := range map[string]strip{"apa102": apa102, "neopixel": neopixel} {
		t.Run(name, func(t *testing.T) {
			port := &portFake{}
			fill := func(c *stripConfig) { c.Lamps, c.Safe = 30, colour{Blue: 20} }
			dev := opened(t, onPort(t, name, port, fill))
			if len(port.sent) != 0 {
				t.Errorf("Open sent %x", port.sent)
			}
			apply(t, dev, "red", device.Number(100))
			apply(t, dev, "green", device.Number(40))
			if first, last := stripLight(name, port.last(), 30); first != [3]float64{100, 40, 20} || last != first {
				t.Errorf("the lamps are at %v and %v", first, last)
			}
			port.broken = errors.New("gone")
			faulted(t, dev.(device.Actuator).Apply(t.Context(), "green", device.Number(1)), device.Offline, "spidev0.0")
			port.broken = nil
			apply(t, dev, "green", device.Number(60)) // the others went to safe with the error
			if first, _ := stripLight(name, port.last(), 30); first != [3]float64{0, 60, 20} {
				t.Errorf("after an error the lamps are at %v", first)
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
			if first, _ := stripLight(name, port.last(), 30); first != [3]float64{0, 0, 20} {
				t.Errorf("closed, the lamps are at %v", first)
			}
			longest := opened(t, onPort(t, name, port, func(c *stripConfig) { c.Lamps, c.Order = kind.most, "rgb" }))
			apply(t, longest, "red", device.Number(1))
			mistakes(t, name, map[string]func(*stripConfig){
				"lamps: 1 to":        func(c *stripConfig) {},
				"not 5000":           func(c *stripConfig) { c.Lamps = 5000 },
				"once each":          func(c *stripConfig) { c.Lamps, c.Order = 1, "rgbw" },
				"safe value within":  func(c *stripConfig) { c.Lamps, c.Safe.Red = 1, 101 },
				"write it like spid": func(c *stripConfig) { c.Lamps, c.Port = 1, "x" },
			})
			witnessed(t, func(t *testing.T) (device.Device, func(string) device.Value) {
				port := &portFake{}
				return opened(t, onPort(t, name, port, fill)), func(point string) device.Value {
					first, _ := stripLight(name, port.last(), 30)
					return device.Number(first[strings.Index("rgb", point[:1])])
				}
			})
		})
	}
}

// TestStripFrames are the values of periph's tests: nrzled for one lamp of 0xFF,
// 0x00, 0x80 (three bits for each), apa102 for how a frame begins and ends.
func TestStripFrames(t *testing.T) {
	if got, want := neopixelFrame(1, 0xFF, 0x00, 0x80)[:10], []byte{0, 0xDB, 0x6D, 0xB6, 0x92, 0x49, 0x24, 0xD2, 0x49, 0x24}; !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	if got := neopixelFrame(1, 1, 2, 3); len(got)-10 < 88 { // 280 us at 2.5 MHz
		t.Errorf("only %d bytes of silence", len(got)-10)
	}
	got := apa102Frame(33, 1, 2, 3)
	if !bytes.Equal(got[:8], []byte{0, 0, 0, 0, 0xFF, 1, 2, 3}) || len(got)-4-33*4 < 4+3 {
		t.Errorf("got %x", got)
	}
}
