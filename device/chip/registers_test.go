package chip

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

func number(n float64) *float64 { return &n }

// described is the driver's configuration with what an owner could write, and a
// chip that has it.
func described(t testing.TB) (*registersConfig, *registers) {
	b := &registers{addr: 0x4F}
	c := config(t, "registers", b).(*registersConfig)
	c.Address = 0x4F
	c.ID = &registerWord{registerPlace{Register: 0xD0}, 0x60}
	c.Init = []registerWrite{
		{registerWord{registerPlace{Register: 0x20, Width: 16}, 0x1234}, 0},
		{registerWord{registerPlace{Register: 0x22, Width: 24, Endian: "little"}, 0x123456}, time.Second},
	}
	wide := device.Range{Min: -1e10, Max: 1e10}
	c.Registers = []registerPoint{
		{Name: "temperature", registerPlace: registerPlace{Register: 0x00, Width: 16}, Shift: 5, Signed: true, Quantity: driver.Quantity{Scale: number(0.125), Unit: "Cel", Range: device.Range{Min: -55, Max: 125}}},
		{Name: "byte", registerPlace: registerPlace{Register: 0x02}, Quantity: driver.Quantity{Range: wide}},
		{Name: "nibble", registerPlace: registerPlace{Register: 0x02}, Shift: 2, Mask: 0x0F, Signed: true, Quantity: driver.Quantity{Range: wide}},
		{Name: "little", registerPlace: registerPlace{Register: 0x04, Width: 24, Endian: "little"}, Quantity: driver.Quantity{Range: wide}},
		{Name: "big", registerPlace: registerPlace{Register: 0x04, Width: 32}, Signed: true, Quantity: driver.Quantity{Scale: number(-2), Offset: 0.5, Range: wide}},
	}
	b.mem[0xD0] = 0x60
	copy(b.mem[:], []byte{0xE7, 0x1F, 0xA4, 0, 0x80, 0x00, 0x01, 0x02}) // the LM75A's datasheet: 0xE700 is -25
	return c, b
}

var describedWants = map[string]float64{"temperature": -25, "byte": 0xA4, "nibble": -7, "little": 0x010080, "big": 2*0x7FFFFEFE + 0.5}

// remade is the described device, opened anew.
func remade(t *testing.T) (device.Device, *registers) {
	c, bus := described(t)
	dev, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dev, bus
}

func TestRegisters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, bus := described(t)
		begun := time.Now()
		dev, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); waited < c.Init[1].Wait {
			t.Errorf("the chip got only %v after its settings", waited)
		}
		recovers(t, dev, bus, describedWants)
		var written [][]byte
		for _, w := range bus.writes {
			if len(w) > 1 {
				written = append(written, w)
			}
		}
		once := [][]byte{{0x20, 0x12, 0x34}, {0x22, 0x56, 0x34, 0x12}}
		want := slices.Repeat(once, 1+4) // when it was opened and after each of four failures
		if !slices.EqualFunc(written, want, bytes.Equal) {
			t.Errorf("got %x, want %x", written, want)
		}
		copy(bus.mem[:], []byte{0x7F, 0xE0}) // 127.875 degrees are not in the range
		all := map[string]string{}
		for name := range describedWants {
			all[name] = "only -55..125 can"
		}
		lacks(t, dev, all)
		dev, bus = remade(t)
		copy(bus.mem[0x20:], []byte{0, 0}) // it lost its supply
		fails(t, dev, device.Offline)
		wants(t, dev, describedWants)
	})
	suite(t, func(t *testing.T) device.Device {
		c, _ := described(t)
		dev, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return dev
	})
	c, b := described(t)
	b.mem[0xD0] = 0x61
	refused(t, c, device.Invalid, "its register 0xd0 has 0x61, not 0x60 as in id")
	if len(b.writes) != 1 {
		t.Errorf("%x was written to another chip", b.writes)
	}
}

func TestRegistersValidate(t *testing.T) {
	for says, spoil := range map[string]func(c *registersConfig, p *registerPoint){
		"address: 0x0 is not":                                                              func(c *registersConfig, p *registerPoint) { c.Address = 0 },
		"registers: the list is empty":                                                     func(c *registersConfig, p *registerPoint) { c.Registers = nil },
		"too many; each can have 32":                                                       func(c *registersConfig, p *registerPoint) { c.Registers = make([]registerPoint, 33) },
		"id: value: 0x100 does not fit into 8 bits":                                        func(c *registersConfig, p *registerPoint) { c.ID.Value = 0x100 },
		"id: width: 9 ":                                                                    func(c *registersConfig, p *registerPoint) { c.ID.Width = 9 },
		"init[1]: value: 0x1000000 does not fit into 24 bits":                              func(c *registersConfig, p *registerPoint) { c.Init[1].Value = 1 << 24 },
		"init[0]: wait: 3s is not 0 to 2s":                                                 func(c *registersConfig, p *registerPoint) { c.Init[0].Wait = 3 * time.Second },
		"registers: name: \"Room 1\" is not a name":                                        func(c *registersConfig, p *registerPoint) { p.Name = "Room 1" },
		"point byte is described twice":                                                    func(c *registersConfig, p *registerPoint) { p.Name = "byte" },
		"temperature: width: 12 ":                                                          func(c *registersConfig, p *registerPoint) { p.Width = 12 },
		"temperature: endian: \"middle\"":                                                  func(c *registersConfig, p *registerPoint) { p.Endian = "middle" },
		"temperature: shift: 16 leaves nothing of 16 bits":                                 func(c *registersConfig, p *registerPoint) { p.Shift = 16 },
		"temperature: shift: -1 leaves":                                                    func(c *registersConfig, p *registerPoint) { p.Shift = -1 },
		"temperature: mask: 0xff0 has a gap":                                               func(c *registersConfig, p *registerPoint) { p.Mask = 0xFF0 },
		"temperature: mask: 0xfff has more bits than the shift leaves":                     func(c *registersConfig, p *registerPoint) { p.Mask = 0xFFF },
		"temperature: signed: one bit cannot have a sign":                                  func(c *registersConfig, p *registerPoint) { p.Mask = 1 },
		"temperature.scale":                                                                func(c *registersConfig, p *registerPoint) { p.Scale = number(0) },
		`temperature.unit: "°C" is Cel`:                                                    func(c *registersConfig, p *registerPoint) { p.Unit = "°C" },
		"temperature.range: 1..0 is empty":                                                 func(c *registersConfig, p *registerPoint) { p.Range = device.Range{Min: 1} },
		"temperature.range: 0..0 is empty":                                                 func(c *registersConfig, p *registerPoint) { p.Range = device.Range{} },
		"temperature.range: 200..300 is impossible; the register's range is -128..127.875": func(c *registersConfig, p *registerPoint) { p.Range = device.Range{Min: 200, Max: 300} },
	} {
		c, b := described(t)
		spoil(c, &c.Registers[0])
		refused(t, c, device.Invalid, says)
		if len(b.writes) > 0 {
			t.Errorf("%q: %x was written", says, b.writes)
		}
	}
}
