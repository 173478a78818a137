package chip

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"agentsite/device"
)

// fakePCA9685 is the chip as NXP describes it: it counts registers up only when it
// is told to, takes a prescaler only while it sleeps, and has all channels off after
// power-on.
type fakePCA9685 struct {
	partBus
	mem [256]byte
	ran []pulse // what channel 3 was at, whenever that changed while the chip was awake
}

func newFakePCA9685() *fakePCA9685 {
	f := &fakePCA9685{}
	f.tx = f.transfer
	f.powerOn()
	return f
}

func (f *fakePCA9685) powerOn() {
	f.mem = [256]byte{pca9685Mode1: 0x11, pca9685Mode2: 0x04, pca9685Prescaler: 30}
	for channel := range pca9685Channels {
		f.mem[pca9685Channel0+4*channel+3] = 0x10
	}
}

func (f *fakePCA9685) transfer(w, r []byte) {
	if len(w) == 0 {
		return
	}
	at, step := int(w[0]), 0
	if f.mem[pca9685Mode1]&0x20 != 0 {
		step = 1
	}
	for _, b := range w[1:] {
		switch {
		case at == pca9685Prescaler && f.mem[pca9685Mode1]&pca9685Sleep == 0:
		case at == pca9685Mode1:
			f.mem[at] = b &^ pca9685Restart
		default:
			f.mem[at&0xFF] = b
		}
		at += step
	}
	for i := range r {
		r[i] = f.mem[at&0xFF]
		at += step
	}
	if now := f.channel(3); f.mem[pca9685Mode1]&pca9685Sleep == 0 && (len(f.ran) == 0 || f.ran[len(f.ran)-1] != now) {
		f.ran = append(f.ran, now)
	}
}

func (f *fakePCA9685) channel(i int) pulse {
	b := f.mem[pca9685Channel0+4*i:]
	return pulse{uint16(b[0]) | uint16(b[1])<<8, uint16(b[2]) | uint16(b[3])<<8}
}

// level returns the value of an output of greenhouse.
func (f *fakePCA9685) level(point string) (v device.Value) {
	f.locked(func() {
		switch point {
		case "vent": // 1 to 2 ms of 20 ms, for 0 to 90 degrees
			ms := float64(f.channel(3).off) / 4096 * 20
			v = device.Number((ms - 1) * 90)
		case "lamp":
			w := f.channel(0)
			v = device.Number(float64(w.off) / 40.96)
			if w.off >= 4096 {
				v = device.Number(0)
			} else if w.on == 4096 {
				v = device.Number(100)
			}
		}
	})
	return v
}

func greenhouse(t testing.TB, f *fakePCA9685) *pca9685Config {
	return onBus(t, "pca9685", f, func(c *pca9685Config) {
		c.Outputs = map[string]pca9685Output{
			"vent": {Channel: 3, Kind: "servo", Range: &device.Range{Max: 90}, Safe: device.Number(90)},
			"lamp": {Channel: 0, Safe: device.Bool(false)},
		}
	})
}

func TestPCA9685(t *testing.T) {
	f := newFakePCA9685()
	dev := opened(t, greenhouse(t, f))
	if len(f.writes) != 0 {
		t.Errorf("Open wrote %x", f.writes)
	}
	apply(t, dev, "lamp", device.Number(50))
	if last := f.writes[len(f.writes)-1]; !bytes.Equal(last, []byte{0x06, 0, 0, 0, 0x08}) { // as periph's half
		t.Errorf("50 %% is written as %x", last)
	}
	if f.mem[pca9685Prescaler] != 121 || f.mem[pca9685Mode1] != 0x20 {
		t.Errorf("prescaler %d, MODE1 %#x; 50 Hz are 121 (datasheet, 7.3.5), awake is 0x20", f.mem[pca9685Prescaler], f.mem[pca9685Mode1])
	}
	if want := []pulse{{off: 410}}; len(f.ran) != 1 || f.ran[0] != want[0] { // 2 ms of 19.99 ms
		t.Errorf("the servo was sent to %v on its way to safe, want only %v", f.ran, want)
	}
	reads(t, dev, map[string]string{"vent": "90", "lamp": "50"})
	for percent, want := range map[float64]pulse{0: {off: 0x1000}, 100: {on: 0x1000}, 25: {off: 1024}, 0.001: {off: 0x1000}, 99.999: {on: 0x1000}} {
		apply(t, dev, "lamp", device.Number(percent))
		if got := f.channel(0); got != want {
			t.Errorf("%v %% is %x, want %x", percent, got, want)
		}
	}
	for degrees, steps := range map[float64]uint16{0: 205, 45: 307, 90: 410} {
		apply(t, dev, "vent", device.Number(degrees))
		if got := f.channel(3); got != (pulse{off: steps}) {
			t.Errorf("%v° is %v, want %d steps of 4.88 µs", degrees, got, steps)
		}
	}
	apply(t, dev, "lamp", device.Number(25))
	apply(t, dev, "vent", device.Number(90))
	survives(t, dev, &f.partBus, "lamp", device.Number(1), map[string]string{"vent": "90", "lamp": "25"})
	witnessed(t, func(t *testing.T) (device.Device, func(string) device.Value) {
		f := newFakePCA9685()
		return opened(t, greenhouse(t, f)), f.level
	})
}

// TestPCA9685WithoutSupply takes the supply away while the lamp is on.
func TestPCA9685WithoutSupply(t *testing.T) {
	f := newFakePCA9685()
	dev := opened(t, greenhouse(t, f))
	apply(t, dev, "lamp", device.Number(100))
	apply(t, dev, "vent", device.Number(10))
	f.locked(f.powerOn)
	reads(t, dev, map[string]string{"vent": "90", "lamp": "0"})
	if got := f.channel(3); got != (pulse{off: 410}) {
		t.Errorf("the servo is at %v, not at safe", got)
	}
	apply(t, dev, "lamp", device.Number(100))
	f.locked(f.powerOn)
	apply(t, dev, "vent", device.Number(45))
	reads(t, dev, map[string]string{"vent": "45", "lamp": "0"})
}

func TestPCA9685OfAnotherProgram(t *testing.T) {
	f := newFakePCA9685()
	f.mem[pca9685Mode1], f.mem[pca9685Prescaler] = 0xA1, 3 // running fast, common address on
	copy(f.mem[pca9685Channel0+4*3:], []byte{0, 0, 0, 8})
	copy(f.mem[pca9685Channel0+4*9:], []byte{0, 0, 0, 8})
	dev := opened(t, greenhouse(t, f))
	if got := f.channel(3).off; got != 0x800 {
		t.Errorf("Open moved the servo to %d", got)
	}
	reads(t, dev, map[string]string{"vent": "90", "lamp": "0"})
	if f.channel(9) != pulseNever || f.mem[pca9685Prescaler] != 121 {
		t.Errorf("a channel without a name is at %v, prescaler %d", f.channel(9), f.mem[pca9685Prescaler])
	}
	f.locked(func() { copy(f.mem[pca9685Channel0:], []byte{0, 0, 0, 4}) })
	f.locked(func() { copy(f.mem[pca9685Channel0+4*3:], []byte{0, 0, 0, 0x10}) })
	reads(t, dev, map[string]string{"vent": "", "lamp": "25"})
	f.locked(func() { copy(f.mem[pca9685Channel0+4*3:], []byte{0, 0, 0xFF, 0x0F}) })
	reads(t, dev, map[string]string{"vent": "", "lamp": "25"})
}

func TestPCA9685ThatForgets(t *testing.T) {
	f := newFakePCA9685()
	dev := opened(t, greenhouse(t, f))
	apply(t, dev, "lamp", device.Number(0))
	transfer := f.tx
	f.tx = func(w, r []byte) {
		if len(w) != 5 {
			transfer(w, r)
		}
	}
	faulted(t, dev.(device.Actuator).Apply(t.Context(), "lamp", device.Number(10)), device.Offline, "PCA9685")
	f.tx = func(w, r []byte) {} // no chip: something acknowledges, and reads 0
	faulted(t, dev.(device.Actuator).Apply(t.Context(), "lamp", device.Number(10)), device.Offline, "PCA9685")
	f.broken = errors.New("gone")
	faulted(t, dev.Close(), device.Offline, "failed")
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	_, err := greenhouse(t, f).Open(t.Context())
	faulted(t, err, device.Offline, "0x40")
}

func TestPCA9685Mistakes(t *testing.T) {
	one := func(o pca9685Output) func(*pca9685Config) {
		return func(c *pca9685Config) { c.Outputs = map[string]pca9685Output{"vent": o} }
	}
	ms := time.Millisecond
	mistakes(t, "pca9685", map[string]func(*pca9685Config){
		"address: this chip":  func(c *pca9685Config) { c.Address = 0x20 },
		"the list is empty":   func(c *pca9685Config) {},
		"24 to 1526":          func(c *pca9685Config) { one(pca9685Output{})(c); c.Frequency = 23 },
		"0 to 15":             one(pca9685Output{Channel: 16}),
		"0 to 15, not -1":     one(pca9685Output{Channel: -1}),
		"pwm or servo":        one(pca9685Output{Kind: "motor"}),
		"range: ":             one(pca9685Output{Kind: "servo", Range: &device.Range{Min: 90, Max: 0}}),
		"outside 0..100":      one(pca9685Output{Range: &device.Range{Max: 180}}),
		"are for kind: servo": one(pca9685Output{MinPulse: ms}),
		"cannot be active":    one(pca9685Output{Kind: "servo", ActiveLow: true}),
		"from 100µs":          one(pca9685Output{Kind: "servo", MinPulse: 3 * ms}),
		"(19.98848ms)":        one(pca9685Output{Kind: "servo", MaxPulse: 20 * ms}),
		"shorter":             func(c *pca9685Config) { one(pca9685Output{Kind: "servo"})(c); c.Frequency = 1000 },
		"within 0..90":        one(pca9685Output{Kind: "servo", Range: &device.Range{Max: 90}, Safe: device.Number(91)}),
		"both on channel 3": func(c *pca9685Config) {
			c.Outputs = map[string]pca9685Output{"a": {Channel: 3}, "b": {Channel: 3}}
		},
		"is not a name": func(c *pca9685Config) { c.Outputs = map[string]pca9685Output{"The Vent": {}} },
	})
}

func TestPCA9685Defaults(t *testing.T) {
	c := &pca9685Config{I2C: noBoard().I2C(0x40), Outputs: map[string]pca9685Output{"fan": {ActiveLow: true, Safe: device.Bool(true)}, "dim": {Channel: 1, Range: &device.Range{Min: 10, Max: 80}, Safe: device.Number(10)}}}
	if err := c.Validate(); err != nil || c.prescaler() != 5 {
		t.Errorf("%v; prescaler %d, 1 kHz is 5", err, c.prescaler())
	}
	if d := c.Describe(); d.Points[0].Safe != device.Number(10) || d.Points[1].Safe != device.Number(100) {
		t.Errorf("%+v", d.Points)
	}
	low := pca9685Channel{pca9685Output: c.Outputs["fan"], period: c.period()}
	for percent, want := range map[float64]pulse{0: pulseForEver, 100: pulseNever, 25: {off: 3072}} {
		if got := low.pulse(percent); got != want {
			t.Errorf("%v %% while low is %v, want %v", percent, got, want)
		}
	}
}

// FuzzPCA9685 is whatever another program may have set while ours runs.
func FuzzPCA9685(f *testing.F) {
	f.Add([]byte{0, 0, 0, 8}, []byte{0xFF, 0xFF, 0xFF, 0xFF})
	f.Add([]byte{0, 0, 0, 0x10}, []byte{0xFF, 0x0F, 1, 0})
	f.Fuzz(func(t *testing.T, lamp, vent []byte) {
		chip := newFakePCA9685()
		dev := opened(t, greenhouse(t, chip))
		apply(t, dev, "lamp", device.Number(5))
		copy(chip.mem[pca9685Channel0:pca9685Channel0+4], lamp)
		copy(chip.mem[pca9685Channel0+4*3:pca9685Channel0+4*4], vent)
		believable(t, dev)
	})
}
