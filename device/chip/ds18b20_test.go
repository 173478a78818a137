package chip

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/onewire"
)

// bridge is a DS2482-100 (Maxim 19-4930) with thermometers on its wire.
type bridge struct {
	pads    map[onewire.Address][9]byte
	shorted bool

	pointer, status, data byte
	said                  []byte // on the wire since its reset
	converted             time.Time
	bit                   int // of a search
	alive                 map[onewire.Address]bool
}

func (b *bridge) bus() *registers {
	bus := &registers{addr: 0x18}
	bus.answer = func(w, r []byte) bool {
		if len(w) > 0 {
			b.command(w)
		}
		if len(r) > 0 {
			r[0] = map[byte]byte{0xF0: b.status, 0xE1: b.data, 0xC3: 0x01}[b.pointer]
		}
		return true
	}
	return bus
}

func (b *bridge) command(w []byte) {
	b.pointer = 0xF0
	switch w[0] {
	case 0xF0: // reset
		b.status = 0x18
	case 0xD2: // settings
		b.pointer = 0xC3
	case 0xE1: // which register is read
		b.pointer = w[1]
	case 0xB4: // reset of the wire
		b.said, b.bit, b.status = nil, 0, 0
		if len(b.pads) > 0 {
			b.status = 2
		}
		if b.shorted {
			b.status = 4
		}
		b.alive = make(map[onewire.Address]bool)
		for a := range b.pads {
			b.alive[a] = true
		}
	case 0xA5: // write a byte
		if b.said = append(b.said, w[1]); string(b.said) == "\xCC\x44" {
			b.converted = time.Now().Add(ds18b20Longest)
		}
	case 0x96: // read one
		b.data = b.nextByte()
		b.said = append(b.said, b.data)
	case 0x78: // one step of a search
		b.triplet(w[1] != 0)
	}
}

// nextByte is the next byte of the scratchpad that was asked for; nobody is all ones.
func (b *bridge) nextByte() byte {
	if len(b.said) < 10 || b.said[0] != 0x55 || b.said[9] != 0xBE {
		return 0xFF
	}
	for a, pad := range b.pads {
		if time.Now().Before(b.converted) {
			pad = scratchpad(0x0550, 0x7F, 0x0C)
		}
		if at := len(b.said) - 10; slices.Equal(b.said[1:9], little(a)) && at < len(pad) {
			return pad[at]
		}
	}
	return 0xFF
}

func little(a onewire.Address) []byte {
	var all []byte
	for i := range 8 {
		all = append(all, byte(a>>(8*i)))
	}
	return all
}

func (b *bridge) triplet(one bool) {
	var zeros, ones bool
	for a := range b.alive {
		if a>>b.bit&1 != 0 {
			ones = true
		} else {
			zeros = true
		}
	}
	if one && !ones || !one && !zeros {
		one = !one
	}
	b.status = 0
	if !zeros {
		b.status |= 0x20
	}
	if !ones {
		b.status |= 0x40
	}
	if one {
		b.status |= 0x80
	}
	for a := range b.alive {
		if (a>>b.bit&1 != 0) != one {
			delete(b.alive, a)
		}
	}
	b.bit++
}

func scratchpad(raw uint16, settings, byte6 byte) [9]byte {
	pad := [9]byte{byte(raw), byte(raw >> 8), 0x4B, 0x46, settings, 0xFF, byte6, 0x10}
	pad[8] = onewire.CalcCRC(pad[:8])
	return pad
}

const (
	thermometer = onewire.Address(0x740000070e41ac28) // from periph's recording (ds18b20_test.go)
	id          = "28-0000070e41ac"
	other       = "28-0316a2795c1f"
)

// recorded is that thermometer's scratchpad: 30 degrees, with 9 bits.
var recorded = [9]byte{0xE0, 0x01, 0x00, 0x00, 0x3F, 0xFF, 0x10, 0x10, 0x3F}

func TestDS18B20(t *testing.T) {
	bus := func() *registers {
		b := bridge{pads: map[onewire.Address][9]byte{thermometer: recorded}}
		return b.bus()
	}
	measured(t, "ds18b20", bus, map[string]float64{"temperature": 30})
	for at := uint16(0x18); at <= 0x1B; at++ {
		strapped := bus()
		strapped.addr = at
		c := config(t, "ds18b20", strapped).(*ds18b20Config)
		c.Address = at
		dev, err := c.Open(t.Context())
		if err != nil {
			t.Fatalf("at %#02x: %v", at, err)
		}
		dev.Close()
	}
	synctest.Test(t, func(t *testing.T) {
		for raw, want := range map[uint16]float64{0x07D0: 125, 0x0550: 85, 0x0191: 25.0625, 0x0008: 0.5, 0xFFF8: -0.5, 0xFE6F: -25.0625, 0xFC90: -55} { // the datasheet's table 1
			b := bridge{pads: map[onewire.Address][9]byte{thermometer: scratchpad(raw, 0x7F, 0x00)}}
			wants(t, open(t, "ds18b20", b.bus()), map[string]float64{"temperature": want})
		}
		nine := bridge{pads: map[onewire.Address][9]byte{thermometer: scratchpad(0x0197, 0x1F, 0)}} // the lowest bits say nothing
		wants(t, open(t, "ds18b20", nine.bus()), map[string]float64{"temperature": 25})
	})
}

func TestDS18B20Faults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bridge{pads: map[onewire.Address][9]byte{thermometer: recorded}}
		dev := open(t, "ds18b20", b.bus())
		for bit := range 9 * 8 {
			pad := recorded
			pad[bit/8] ^= 1 << (bit % 8)
			b.pads[thermometer] = pad
			lacks(t, dev, map[string]string{"temperature": "CRC of the thermometer " + id})
		}
		for says, pad := range map[string][9]byte{
			"short-circuited":  {},
			"check its supply": scratchpad(0x0550, 0x7F, 0x0C),
			"reads 127.0625":   scratchpad(0x07F1, 0x7F, 0),
			"reads -57.0625":   scratchpad(0xFC6F, 0x7F, 0),
			"does not answer":  {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
		} {
			b.pads[thermometer] = pad
			lacks(t, dev, map[string]string{"temperature": says})
		}
		b.pads[thermometer] = recorded
		b.shorted = true
		if _, err := dev.(device.Sensor).Sample(t.Context()); err == nil || !strings.Contains(err.Error(), "short-circuited") {
			t.Error(err)
		}
		b.shorted = false
		wants(t, dev, map[string]float64{"temperature": 30})
		delete(b.pads, thermometer)
		fails(t, dev, device.Offline)
		b.pads[address(other)] = recorded
		lacks(t, dev, map[string]string{"temperature": id + " does not answer"}) // another one is not this one
		b.pads[thermometer] = recorded                                           // it is plugged in again
		wants(t, dev, map[string]float64{"temperature": 30})
	})
}

// TestDS18B20Several: of several thermometers, a missing one is a fault and the others go on.
func TestDS18B20Several(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bridge{pads: map[onewire.Address][9]byte{thermometer: recorded, address(other): scratchpad(0x0191, 0x7F, 0)}}
		refused(t, config(t, "ds18b20", b.bus()), device.Invalid, "there are 2 thermometers")
		c := config(t, "ds18b20", b.bus()).(*ds18b20Config)
		c.Sensors = []ds18b20Sensor{{"floor", other}, {"tank", id}}
		dev, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wants(t, dev, map[string]float64{"floor": 25.0625, "tank": 30})
		delete(b.pads, address(other))
		lacks(t, dev, map[string]string{"floor": "the thermometer " + other + " does not answer"})

		none := bridge{}
		refused(t, config(t, "ds18b20", none.bus()), device.Offline, "thermometer")
		disturbed := bridge{pads: map[onewire.Address][9]byte{thermometer ^ 1<<40: recorded}}
		refused(t, config(t, "ds18b20", disturbed.bus()), device.Offline, "CRC error")
		// a DS2413 is no thermometer
		switches := bridge{pads: map[onewire.Address][9]byte{address("3a-0000070e41ac"): {}}}
		refused(t, config(t, "ds18b20", switches.bus()), device.Offline, "DS18B20")
	})
	if got := idOf(address(other)); got != other || address(id) != thermometer {
		t.Errorf("got %s, %x", got, address(id))
	}
}

// A bridge that stays busy ends the call with the deadline of the bridge's adapter.
func TestDS18B20Busy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bridge{pads: map[onewire.Address][9]byte{thermometer: recorded}}
		bus := b.bus()
		dev, whole := open(t, "ds18b20", bus), bus.answer
		bus.answer = func(w, r []byte) bool {
			whole(w, r)
			if len(r) > 0 {
				r[0] = 0xFF
			}
			return true
		}
		fails(t, dev, device.Offline)
		bus.answer = whole
		wants(t, dev, map[string]float64{"temperature": 30})
	})
	synctest.Test(t, func(t *testing.T) { // as often as with "every: 500ms"
		b := bridge{pads: map[onewire.Address][9]byte{thermometer: recorded}}
		dev := open(t, "ds18b20", b.bus())
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := dev.(device.Sensor).Sample(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	lost := &registers{addr: 0x19}
	refused(t, config(t, "ds18b20", lost), device.Offline, "0x18")
	refused(t, config(t, "ds18b20", mcp9808(0)), device.Offline, "DS18B20") // it can have the same address
}

func TestDS18B20Validate(t *testing.T) {
	for says, sensors := range map[string][]ds18b20Sensor{
		"tank: id: \"28-12\" is not a DS18B20": {{"tank", "28-12"}},
		"id: \"10-000801b5a7a6\" is not":       {{"tank", "10-000801b5a7a6"}},
		"floor: id: " + id + " is written":     {{"tank", id}, {"floor", id}},
		"point tank is described twice":        {{"tank", id}, {"tank", other}},
		"\"Tank\" is not a name":               {{"Tank", id}},
	} {
		c := config(t, "ds18b20", mcp9808(0)).(*ds18b20Config)
		c.Sensors = sensors
		refused(t, c, device.Invalid, says)
	}
}

func FuzzDS18B20(f *testing.F) {
	decodes(f, "ds18b20", func(seed []byte) i2c.Bus {
		var pad [9]byte
		copy(pad[:8], seed)
		pad[8] = onewire.CalcCRC(pad[:8])
		b := bridge{pads: map[onewire.Address][9]byte{thermometer: pad}}
		return b.bus()
	})
}
