package chip

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/i2c"
)

// fakePins is a port expander and what its pins are wired to.
type fakePins struct {
	partBus
	mem     []byte             // its registers; of a PCF857x the pins that are written high
	at      *expanderRegisters // nil for a PCF857x
	bytes   int
	on      []byte // mem after power-on
	outside uint16 // the level of the pins that the chip does not drive
	low     uint16 // pins that are pulled down
	high    uint16 // and up, whatever the chip does
	moved   uint16 // pins that have been anywhere but outside
}

// play makes the chip of a driver, without supply so far.
func play(name string) *fakePins {
	f := &fakePins{bytes: 2, outside: 0xFFFF}
	f.tx = f.transfer
	for model, m := range map[string]expanderModel{"mcp23008": mcp23008, "mcp23017": mcp23017, "tca9534": tca9534, "tca9535": tca9535} {
		if name == model {
			f.at, f.bytes = &m.at, len(m.pins)/8
			f.on = make([]byte, 0x20)
			for i := range f.bytes {
				f.on[int(m.at.direction)+i] = 0xFF
				if m.at.pull == 0 { // Texas Instruments' latches are high after power-on
					f.on[int(m.at.latch)+i] = 0xFF
				}
			}
		}
	}
	if f.at == nil {
		f.on = []byte{0xFF, 0xFF}
		if name == "pcf8574" {
			f.bytes = 1
		}
	}
	f.powerOn()
	return f
}

func (f *fakePins) powerOn() { f.mem = append([]byte(nil), f.on...) }

// bits are a register, or two.
func (f *fakePins) bits(register byte) uint16 {
	if f.bytes == 1 {
		return uint16(f.mem[register]) | 0xFF00
	}
	return uint16(f.mem[register]) | uint16(f.mem[register+1])<<8
}

// pins is the level that a meter would show.
func (f *fakePins) pins() uint16 {
	var level uint16
	if f.at == nil {
		level = f.bits(0) & (f.outside | f.outputs())
	} else {
		inputs := f.bits(f.at.direction)
		level = f.bits(f.at.latch)&^inputs | f.outside&inputs
	}
	return level&^f.low | f.high
}

// outputs are P0 and P1, or the chip's names of them, in all these tests.
func (f *fakePins) outputs() uint16 { return 3 }

func (f *fakePins) transfer(w, r []byte) {
	register := 0
	if f.at != nil {
		register, w = int(w[0]), w[1:]
	}
	copy(f.mem[register:], w)
	f.moved |= f.pins() ^ f.outside
	if len(r) > 0 {
		copy(r, f.mem[register:])
		if f.at == nil || register == int(f.at.input) {
			copy(r, []byte{byte(f.pins()), byte(f.pins() >> 8)})
		}
	}
}

var expanders = []string{"mcp23008", "mcp23017", "pcf8574", "pcf8575", "tca9534", "tca9535"}

// wired has two relays that are on while their pin is low, as most are, a contact to ground, a
// contact that is on while its pin is high, and a lamp that is on when safe.
func wired(t testing.TB, name string, bus i2c.Bus) driver.Config {
	c := config(t, name, bus)
	p := pinsOf(c)
	p.Outputs = map[string]pinOutput{"pump": {Pin: p.pins[0], ActiveLow: true}, "lamp": {Pin: p.pins[1], Safe: true}}
	p.Inputs = map[string]pinInput{"door": {Pin: p.pins[6], ActiveLow: true, PullUp: p.pulls}, "rain": {Pin: p.pins[len(p.pins)-1]}}
	return c
}

func pinsOf(c driver.Config) *pinsConfig {
	switch c := c.(type) {
	case *expanderConfig:
		return &c.pinsConfig
	case *pcf857xConfig:
		return &c.pinsConfig
	}
	return nil
}

func each(t *testing.T, test func(t *testing.T, name string, f *fakePins)) {
	for _, name := range expanders {
		t.Run(name, func(t *testing.T) { test(t, name, play(name)) })
	}
}

// TestExpanders also sees that no pin moves on the way to safe, which is high for
// both outputs, as it is outside.
func TestExpanders(t *testing.T) {
	each(t, func(t *testing.T, name string, f *fakePins) {
		f.outside = 0xFFFF &^ (1 << 6)
		dev := opened(t, wired(t, name, f))
		if len(f.writes) != 0 {
			t.Errorf("Open wrote %x", f.writes)
		}
		reads(t, dev, map[string]string{"pump": "off", "lamp": "on", "door": "on", "rain": "on"})
		if f.moved != 0 {
			t.Errorf("the pins %#b moved on the way to safe", f.moved)
		}
		apply(t, dev, "pump", device.Bool(true))
		if f.pins()&3 != 2 {
			t.Errorf("the pins are at %#b", f.pins())
		}
		apply(t, dev, "lamp", device.Bool(false))
		f.locked(func() { f.outside = 1 << 6 })
		want := map[string]string{"pump": "on", "lamp": "off", "door": "off", "rain": "off"}
		reads(t, dev, want)
		if f.at == nil { // it cannot say whether it had supply meanwhile
			want["pump"], want["lamp"] = "off", "on"
		}
		survives(t, dev, &f.partBus, "lamp", device.Bool(true), want)
		if err := dev.Close(); err != nil || f.pins()&3 != 3 {
			t.Errorf("closed: %v, pins %#b", err, f.pins())
		}
		witnessed(t, func(t *testing.T) (device.Device, func(string) device.Value) {
			f := play(name)
			return opened(t, wired(t, name, f)), func(point string) (v device.Value) {
				f.locked(func() { v = device.Bool(f.pins()&1 == 0 == (point == "pump")) })
				if point == "lamp" {
					f.locked(func() { v = device.Bool(f.pins()&2 != 0) })
				}
				return v
			}
		})
	})
}

// TestExpandersWithoutSupply takes the supply away while the pump runs.
func TestExpandersWithoutSupply(t *testing.T) {
	each(t, func(t *testing.T, name string, f *fakePins) {
		dev := opened(t, wired(t, name, f))
		apply(t, dev, "pump", device.Bool(true))
		f.locked(f.powerOn)
		apply(t, dev, "lamp", device.Bool(false))
		reads(t, dev, map[string]string{"pump": "off", "lamp": "off", "door": "off", "rain": "on"})
		f.locked(f.powerOn)
		reads(t, dev, map[string]string{"pump": "off", "lamp": "on", "door": "off", "rain": "on"})
	})
}

// TestExpandersAfterAnError sees that an output whose write failed does not go along
// with the next one's.
func TestExpandersAfterAnError(t *testing.T) {
	each(t, func(t *testing.T, name string, f *fakePins) {
		dev := opened(t, wired(t, name, f))
		apply(t, dev, "lamp", device.Bool(false))
		move := dev.(device.Actuator).Apply
		f.fails = func(w []byte) error {
			if len(w) > 1 || f.at == nil && len(w) > 0 {
				return errors.New("EIO")
			}
			return nil
		}
		faulted(t, move(t.Context(), "pump", device.Bool(true)), device.Offline, "i2c-1")
		f.fails = nil
		apply(t, dev, "lamp", device.Bool(true))
		if f.pins()&3 != 3 {
			t.Errorf("the pins are at %#b", f.pins())
		}
		f.tx = func(w, r []byte) {
			if len(w) < 2 && len(r) > 0 {
				f.transfer(w, r)
			}
		}
		if err := move(t.Context(), "pump", device.Bool(true)); err == nil {
			t.Error("a chip that takes nothing was believed")
		}
		f.tx = f.transfer
		f.locked(func() { f.broken = errors.New("gone") })
		faulted(t, dev.Close(), device.Offline, "i2c-1")
	})
}

func TestExpandersWithAShort(t *testing.T) {
	each(t, func(t *testing.T, name string, f *fakePins) {
		c := wired(t, name, f)
		pinsOf(c).Outputs["fan"] = pinOutput{Pin: pinsOf(c).pins[2], ActiveLow: true}
		dev := opened(t, c)
		apply(t, dev, "pump", device.Bool(true))
		f.locked(func() { f.high = 4 })
		faulted(t, dev.(device.Actuator).Apply(t.Context(), "fan", device.Bool(true)), device.Offline, "reads high")
		f.locked(func() { f.low = 2 })
		reads(t, dev, map[string]string{"pump": "on", "fan": "", "lamp": "", "door": "off", "rain": "on"})
	})
}

// TestExpandersOnADisturbedBus: answers of zeros or ones only are not taken for pins, with outputs and
// with inputs only. A PCF857x can tell where an output has the other level.
func TestExpandersOnADisturbedBus(t *testing.T) {
	each(t, func(t *testing.T, name string, _ *fakePins) {
		for _, inputsOnly := range []bool{false, true} {
			for _, level := range []byte{0, 0xFF} {
				f := play(name)
				if f.at == nil && (inputsOnly || level != 0) {
					continue
				}
				c := wired(t, name, f)
				if inputsOnly {
					pinsOf(c).Outputs = nil
				}
				dev := opened(t, c)
				sample := dev.(device.Sensor).Sample
				if _, err := sample(t.Context()); err != nil {
					t.Error(err)
				}
				f.locked(func() {
					f.tx = func(w, r []byte) {
						for i := range r {
							r[i] = level
						}
					}
				})
				readings, _ := sample(t.Context())
				for _, r := range readings {
					if r.Quality == device.Good {
						t.Errorf("%#02x, inputs only %v: %s is %v", level, inputsOnly, r.Point, r.Value)
					}
				}
			}
		}
	})
}

// TestMCP23017OfAnotherProgram begins with outputs that drive, inverted inputs, and
// the registers of the other bank.
func TestMCP23017OfAnotherProgram(t *testing.T) {
	f := play("mcp23017")
	copy(f.mem, []byte{0, 0, 0xFF, 0xFF, 0xFF, 0xFF})
	f.mem[0x14], f.mem[0x15] = 0, 0x01
	bank := true
	f.tx = func(w, r []byte) {
		if !bank {
			f.transfer(w, r)
		} else if len(w) == 2 && w[0] == 0x05 {
			bank = w[1]&0x80 != 0
		}
	}
	dev := opened(t, wired(t, "mcp23017", f))
	reads(t, dev, map[string]string{"pump": "off", "lamp": "on", "door": "off", "rain": "on"})
	if bank || f.bits(0x02) != 0 || f.bits(0x04) != 0 || f.bits(0x00) != 0xFFFC || f.bits(0x0C) != 1<<6 {
		t.Errorf("bank 1: %v, registers %x", bank, f.mem)
	}
}

func TestExpanderMistakes(t *testing.T) {
	for _, name := range expanders {
		for says, spoil := range map[string]func(*pinsConfig){
			"address: this chip": func(c *pinsConfig) { c.Address = 0x40 },
			"add one":            func(c *pinsConfig) { c.Outputs, c.Inputs = nil, nil },
			"has no pin":         func(c *pinsConfig) { c.Outputs = map[string]pinOutput{"pump": {Pin: "17"}} },
			"both on pin":        func(c *pinsConfig) { c.Inputs["door"] = pinInput{Pin: c.pins[0]} },
			"is not a name":      func(c *pinsConfig) { c.Inputs["Door"] = pinInput{Pin: c.pins[5]} },
			"described twice":    func(c *pinsConfig) { c.Inputs["pump"] = pinInput{Pin: c.pins[5]} },
			".pull_up: ": func(c *pinsConfig) {
				if c.Inputs["door"] = (pinInput{Pin: c.pins[6], PullUp: true}); c.pulls {
					c.Inputs[".pull_up: "] = pinInput{Pin: c.pins[5]} // it has some; this is no name
				}
			},
		} {
			c := wired(t, name, nil)
			spoil(pinsOf(c))
			faulted(t, c.(driver.Validator).Validate(), device.Invalid, says)
		}
	}
}

// TestWriteAfterAHang: an output is written to soon although a reading hung before, and although
// another reading leaves the bus to others. After a write that hung, the next one leaves it, too.
func TestWriteAfterAHang(t *testing.T) {
	each(t, func(t *testing.T, name string, f *fakePins) {
		synctest.Test(t, func(t *testing.T) {
			dev := opened(t, wired(t, name, f))
			apply(t, dev, "pump", device.Bool(false))
			hang := func(is bool) {
				f.locked(func() {
					f.fails = nil
					if is {
						f.fails = func([]byte) error {
							time.Sleep(4 * time.Second)
							return syscall.ETIMEDOUT
						}
					}
				})
			}
			hang(true)
			if _, err := dev.(device.Sensor).Sample(t.Context()); err == nil {
				t.Fatal("it does not hang")
			}
			hang(false)
			read := make(chan error)
			go func() {
				_, err := dev.(device.Sensor).Sample(t.Context())
				read <- err
			}()
			synctest.Wait()
			begun := time.Now()
			apply(t, dev, "pump", device.Bool(true))
			if took := time.Since(begun); took > 200*time.Millisecond {
				t.Errorf("the write took %v", took)
			}
			if err := <-read; err != nil {
				t.Error(err)
			}
			hang(true)
			if err := dev.(device.Actuator).Apply(t.Context(), "pump", device.Bool(false)); err == nil {
				t.Fatal("it does not hang")
			}
			hang(false)
			begun = time.Now()
			apply(t, dev, "pump", device.Bool(false))
			if took := time.Since(begun); took < 2*time.Second {
				t.Errorf("the next write came after %v", took)
			}
		})
	})
}
