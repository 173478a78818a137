package chip

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// pca9685Config is the YAML of pca9685.
//
// periph's adapter is not used: its constructor switches all channels off, with servos on them, and
// its prescaler is one too high (datasheet, section 7.3.5). It reads nothing back, and registers
// pins for the whole process.
type pca9685Config struct {
	board.I2C
	Frequency float64                  `json:"frequency,omitempty" jsonschema:"pulses per second on all channels, 24 to 1526; 50 with a servo among the outputs, else 1000"`
	Outputs   map[string]pca9685Output `json:"outputs" jsonschema:"what is wired to the channels, each with a name of yours"`
}

type pca9685Output struct {
	Channel   int           `json:"channel" jsonschema:"the channel, 0 to 15"`
	Kind      string        `json:"kind,omitempty" jsonschema:"pwm or servo; pwm when not written"`
	ActiveLow bool          `json:"active_low,omitempty" jsonschema:"on where the load of a pwm output runs while the channel is low"`
	MinPulse  time.Duration `json:"min_pulse,omitempty" jsonschema:"a servo's pulse at the lower end of range; 1ms when not written"`
	MaxPulse  time.Duration `json:"max_pulse,omitempty" jsonschema:"a servo's pulse at the upper end of range; 2ms when not written"`
	Range     *device.Range `json:"range,omitempty" jsonschema:"the percent that it may be set to, 0..100 when not written; a servo's degrees, 0..180 when not written"`
	Safe      device.Value  `json:"safe" jsonschema:"the value that harms nobody: off, on or percent; a servo's degrees"`
}

// NXP PCA9685, revision 4. The oscillator has 25 MHz, within a few percent.
const (
	pca9685Mode1     = 0x00
	pca9685Mode2     = 0x01
	pca9685Channel0  = 0x06 // four registers for each
	pca9685Channels  = 16
	pca9685Prescaler = 0xFE

	pca9685Restart = 0x80
	pca9685Awake   = 0x20 // MODE1: registers count up in a transfer; no common address
	pca9685Sleep   = 0x10
	pca9685Drive   = 0x04 // MODE2: outputs drive both ways

	pca9685Clock = 25e6
	pca9685Steps = 4096
	pca9685Full  = 1 << 12 // in the first word on for ever, in the second off for ever

	pca9685Start = 500 * time.Microsecond // of the oscillator
)

// prescaler returns the prescaler for the frequency (section 7.3.5).
func (c *pca9685Config) prescaler() byte {
	frequency := c.Frequency
	if frequency == 0 {
		frequency = 1000
		for _, o := range c.Outputs {
			if o.servo() {
				frequency = 50
			}
		}
	}
	return byte(min(max(math.Round(pca9685Clock/(pca9685Steps*frequency))-1, 3), 255))
}

// period is the time from pulse to pulse that the prescaler really makes.
func (c *pca9685Config) period() time.Duration {
	return time.Duration(pca9685Steps * (float64(c.prescaler()) + 1) / pca9685Clock * float64(time.Second))
}

// Validate finds mistakes without hardware.
func (c *pca9685Config) Validate() error {
	if err := c.I2C.Validate(); err != nil {
		return err
	}
	if c.Frequency != 0 && !(c.Frequency >= 24 && c.Frequency <= 1526) {
		return device.Faultf(device.Invalid, "frequency: a PCA9685 makes 24 to 1526 pulses per second, not %v", device.Number(c.Frequency))
	}
	if len(c.Outputs) == 0 {
		return device.Faultf(device.Invalid, "outputs: the list is empty; add one, such as \"lamp: { channel: 0, safe: off }\"")
	}
	taken := make(map[int]string)
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		o := c.Outputs[name]
		if other, ok := taken[o.Channel]; ok {
			return device.Faultf(device.Invalid, "outputs: %s and %s are both on channel %d", other, name, o.Channel)
		}
		taken[o.Channel] = name
		if err := o.validate(name, c.period()); err != nil {
			return err
		}
	}
	return c.Describe().Validate()
}

func (o pca9685Output) validate(name string, period time.Duration) error {
	limits := o.limits()
	shortest, longest := o.pulses()
	switch {
	case o.Channel < 0 || o.Channel >= pca9685Channels:
		return device.Faultf(device.Invalid, "outputs.%s.channel: a PCA9685 has channels 0 to 15, not %d", name, o.Channel)
	case !slices.Contains([]string{"", "pwm", "servo"}, o.Kind):
		return device.Faultf(device.Invalid, "outputs.%s.kind: it is pwm or servo, not %.20q", name, o.Kind)
	case !(limits.Min < limits.Max) || math.Abs(limits.Min) > 1e6 || math.Abs(limits.Max) > 1e6:
		return device.Faultf(device.Invalid, "outputs.%s.range: %v is empty; write it like 0..90", name, limits)
	case !o.servo() && (limits.Min < 0 || limits.Max > 100):
		return device.Faultf(device.Invalid, "outputs.%s.range: %v is outside 0..100 percent; for degrees write kind: servo", name, limits)
	case !o.servo() && (o.MinPulse != 0 || o.MaxPulse != 0):
		return device.Faultf(device.Invalid, "outputs.%s: min_pulse and max_pulse are for kind: servo", name)
	case o.servo() && o.ActiveLow:
		return device.Faultf(device.Invalid, "outputs.%s: a servo cannot be active_low; remove it", name)
	case o.servo() && (shortest < 100*time.Microsecond || longest <= shortest || longest > 5*time.Millisecond || longest >= period):
		return device.Faultf(device.Invalid, "outputs.%s: min_pulse and max_pulse are from 100µs to 5ms and shorter than the time between pulses (%v), such as 1ms and 2ms", name, period)
	}
	return nil
}

func (o pca9685Output) servo() bool { return o.Kind == "servo" }

func (o pca9685Output) pulses() (shortest, longest time.Duration) {
	shortest, longest = o.MinPulse, o.MaxPulse
	if shortest == 0 {
		shortest = time.Millisecond
	}
	if longest == 0 {
		longest = 2 * time.Millisecond
	}
	return shortest, longest
}

func (o pca9685Output) limits() device.Range {
	switch {
	case o.Range != nil:
		return *o.Range
	case o.servo():
		return device.Range{Max: 180}
	}
	return device.Range{Max: 100}
}

// Describe needs no hardware.
func (c *pca9685Config) Describe() device.Description {
	d := device.Description{Model: "PCA9685"}
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		o := c.Outputs[name]
		p := device.Point{Name: name, Kind: device.KindLevel, Unit: "%", Description: "share of the time that it is on", Range: o.limits()}
		if o.servo() {
			p.Unit, p.Description = "deg", "where the servo turns to"
		}
		if p.Safe = o.Safe; !o.servo() && p.Safe.Type() == device.TypeBool {
			p.Safe = device.Number(100 * p.Safe.Number())
		}
		d.Points = append(d.Points, p)
	}
	return d
}

// Open finds the chip. It has no id, and may be moving something, so that Open only reads its first
// register.
func (c *pca9685Config) Open(ctx context.Context) (device.Device, error) {
	dev := newI2CChip(c.I2C, "PCA9685")
	desc := c.Describe()
	p := &pca9685{dev: dev, prescaler: c.prescaler(), channels: make([]pca9685Channel, len(desc.Points))}
	for i, point := range desc.Points {
		o := c.Outputs[point.Name]
		p.channels[i] = pca9685Channel{pca9685Output: o, limits: point.Range, safe: point.Safe.Number(), period: c.period()}
	}
	return openReadable(ctx, dev, desc, p, func() error { dev.readByte(pca9685Mode1); return dev.err })
}

// pca9685 is the chip.
type pca9685 struct {
	dev       *i2cChip
	prescaler byte
	channels  []pca9685Channel // of the points
}

// pca9685Channel is one output.
type pca9685Channel struct {
	pca9685Output
	limits device.Range
	safe   float64
	period time.Duration

	value float64 // set last
	seen  pulse   // read last
}

// pulse is the four registers of a channel: the steps at which it begins and ends.
type pulse struct{ on, off uint16 }

var (
	pulseNever   = pulse{off: pca9685Full}
	pulseForEver = pulse{on: pca9685Full}
)

// setUp writes the safe values first: a running chip applies them at once, and a sleeping chip
// wakes with them. Only a sleeping chip accepts a prescaler.
func (p *pca9685) setUp() error {
	mode, prescaler := p.dev.readByte(pca9685Mode1), p.dev.readByte(pca9685Prescaler)
	p.dev.write(pca9685Mode1, pca9685Awake|mode&pca9685Sleep)
	p.writeSafe()
	p.dev.write(pca9685Mode2, pca9685Drive)
	if prescaler != p.prescaler {
		p.dev.write(pca9685Mode1, pca9685Awake|pca9685Sleep)
		p.dev.write(pca9685Prescaler, p.prescaler)
	}
	p.dev.command(pca9685Start, pca9685Mode1, pca9685Awake)
	p.dev.write(pca9685Mode1, pca9685Awake|pca9685Restart)
	if intact, err := p.intact(); err != nil || !intact {
		return cmp.Or(err, errForgets)
	}
	for _, c := range p.channels {
		if c.seen != c.pulse(c.safe) {
			return errForgets
		}
	}
	return nil
}

// writeSafe brings the outputs to safe, and the channels that have no name to nothing.
func (p *pca9685) writeSafe() {
	var all [pca9685Channels]pulse
	for i := range all {
		all[i] = pulseNever
	}
	for i := range p.channels {
		c := &p.channels[i]
		c.value = c.safe
		all[c.Channel] = c.pulse(c.safe)
	}
	for channel, w := range all {
		p.writePulse(channel, w)
	}
}

// intact reads the settings and all outputs.
func (p *pca9685) intact() (bool, error) {
	var modes [2]byte
	p.dev.readFrom(pca9685Mode1, modes[:])
	prescaler := p.dev.readByte(pca9685Prescaler)
	if modes[0]&^pca9685Restart != pca9685Awake || modes[1] != pca9685Drive || prescaler != p.prescaler {
		return false, p.dev.err
	}
	for i := range p.channels {
		p.readPulse(&p.channels[i])
	}
	return true, p.dev.err
}

func (p *pca9685) set(i int, v device.Value) error {
	c := &p.channels[i]
	c.value = v.Number()
	wants := c.pulse(c.value)
	p.writePulse(c.Channel, wants)
	if p.readPulse(c); c.seen != wants {
		p.dev.fail(errForgets)
	}
	return p.dev.err
}

func (p *pca9685) tell(out *driver.Sample) {
	for i := range p.channels {
		c := &p.channels[i]
		switch n, ok := c.number(c.seen); {
		case c.seen == c.pulse(c.value):
			out.Value(device.Number(c.value))
		case !ok:
			out.Fault("the servo gets no pulses, so its angle is unknown")
		case !c.limits.Contains(n):
			out.Fault("another program has set it to " + device.Number(n).String() + ", outside " + c.limits.String())
		default:
			out.Number(n)
		}
	}
}

// pulse returns the pulse for a value.
func (c *pca9685Channel) pulse(value float64) pulse {
	var share float64
	if c.servo() {
		shortest, longest := c.pulses()
		part := (value - c.limits.Min) / (c.limits.Max - c.limits.Min)
		share = (float64(shortest) + part*float64(longest-shortest)) / float64(c.period)
	} else if share = value / 100; c.ActiveLow {
		share = 1 - share
	}
	switch steps := math.Round(share * pca9685Steps); {
	case steps < 1:
		return pulseNever
	case steps >= pca9685Steps:
		return pulseForEver
	default:
		return pulse{off: uint16(steps)}
	}
}

// number is the value that a pulse makes; ok is false where that is none.
func (c *pca9685Channel) number(w pulse) (n float64, ok bool) {
	share := float64((w.off-w.on)%pca9685Steps) / pca9685Steps
	switch {
	case w.off&pca9685Full != 0: // it comes before the other
		share = 0
	case w.on&pca9685Full != 0:
		share = 1
	}
	if c.servo() {
		shortest, longest := c.pulses()
		part := (share*float64(c.period) - float64(shortest)) / float64(longest-shortest)
		return c.limits.Min + part*(c.limits.Max-c.limits.Min), share > 0
	}
	if c.ActiveLow {
		share = 1 - share
	}
	return 100 * share, true
}

func (p *pca9685) writePulse(channel int, w pulse) {
	b := []byte{byte(pca9685Channel0 + 4*channel)}
	b = binary.LittleEndian.AppendUint16(b, w.on)
	p.dev.write(binary.LittleEndian.AppendUint16(b, w.off)...)
}

func (p *pca9685) readPulse(c *pca9685Channel) {
	var b [4]byte
	p.dev.readFrom(byte(pca9685Channel0+4*c.Channel), b[:])
	c.seen = pulse{binary.LittleEndian.Uint16(b[:]), binary.LittleEndian.Uint16(b[2:])}
}
