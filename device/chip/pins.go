package chip

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// pinsConfig is the YAML of the chips whose pins are switches and states.
type pinsConfig struct {
	board.I2C
	Outputs map[string]pinOutput `json:"outputs,omitempty" jsonschema:"the pins that switch something, each with a name of yours"`
	Inputs  map[string]pinInput  `json:"inputs,omitempty" jsonschema:"the pins that are looked at, each with a name of yours"`

	model string
	pins  []string // as the datasheet calls them, from the lowest bit on
	pulls bool     // the chip has pull-ups that can be switched on
}

type pinOutput struct {
	Pin       string `json:"pin" jsonschema:"the pin as the chip's datasheet calls it, such as GPA0 or P3"`
	Safe      bool   `json:"safe" jsonschema:"off or on, whichever harms nobody"`
	ActiveLow bool   `json:"active_low,omitempty" jsonschema:"on where the load runs while the pin is low, as with most relay boards"`
}

type pinInput struct {
	Pin       string `json:"pin" jsonschema:"the pin as the chip's datasheet calls it, such as GPB7 or P3"`
	PullUp    bool   `json:"pull_up,omitempty" jsonschema:"on to use the chip's pull-up, for a contact to ground"`
	ActiveLow bool   `json:"active_low,omitempty" jsonschema:"on where a low pin means on, as with a contact to ground"`
}

// Validate finds mistakes without hardware.
func (c *pinsConfig) Validate() error {
	if err := c.I2C.Validate(); err != nil {
		return err
	}
	if len(c.Outputs)+len(c.Inputs) == 0 {
		return device.Faultf(device.Invalid, "outputs: there are no outputs and no inputs; add one, such as \"pump: { pin: %s, safe: off }\"", c.pins[0])
	}
	taken := make(map[string]string)
	for _, p := range c.named() {
		if p.bit == 0 {
			return device.Faultf(device.Invalid, "%s.pin: a %s has no pin %.20q; it has %s", p.key, c.model, p.pin, strings.Join(c.pins, ", "))
		}
		if other, ok := taken[p.pin]; ok {
			return device.Faultf(device.Invalid, "%s and %s are both on pin %s", other, p.key, p.pin)
		}
		taken[p.pin] = p.key
		if p.pull && !c.pulls {
			return device.Faultf(device.Invalid, "%s.pull_up: a %s has no configurable pull-ups; remove the key, and add a resistor of 10 kOhm if the chip has none of its own", p.key, c.model)
		}
	}
	return c.Describe().Validate()
}

// Describe needs no hardware.
func (c *pinsConfig) Describe() device.Description {
	d := device.Description{Model: c.model}
	for _, p := range c.named() {
		d.Points = append(d.Points, p.point)
	}
	return d
}

// namedPin is one point and its bit in the chip's ports.
type namedPin struct {
	point    device.Point
	key, pin string // as in the YAML
	bit      uint16
	output   bool
	safe     bool
	inverted bool
	pull     bool
}

// named lists the outputs and then the inputs, by name.
func (c *pinsConfig) named() []namedPin {
	var all []namedPin
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		o := c.Outputs[name]
		all = append(all, namedPin{
			point: device.Point{Name: name, Kind: device.KindSwitch, Description: "output " + o.Pin, Safe: device.Bool(o.Safe)},
			key:   "outputs." + name, pin: o.Pin, bit: c.bit(o.Pin), output: true, safe: o.Safe, inverted: o.ActiveLow,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		i := c.Inputs[name]
		all = append(all, namedPin{
			point: device.Point{Name: name, Kind: device.KindState, Description: "input " + i.Pin},
			key:   "inputs." + name, pin: i.Pin, bit: c.bit(i.Pin), inverted: i.ActiveLow, pull: i.PullUp,
		})
	}
	return all
}

func (c *pinsConfig) bit(pin string) uint16 {
	if i := slices.Index(c.pins, pin); i >= 0 {
		return 1 << i
	}
	return 0
}

// put returns level with the pin at the level that means on or off.
func (p namedPin) put(level uint16, on bool) uint16 {
	if on != p.inverted {
		return level | p.bit
	}
	return level &^ p.bit
}

// on returns the value of the pin at a level.
func (p namedPin) on(level uint16) bool { return (level&p.bit != 0) != p.inverted }

// ports are the pins of an opened chip, one bit each.
type ports struct {
	named   []namedPin
	outputs uint16
	pulled  uint16 // up
	rest    uint16 // the level of all outputs at safe
	wanted  uint16 // of the outputs
	latch   uint16 // of the outputs, as the chip has it
	level   uint16 // of all pins, as the chip saw them last
}

func newPorts(named []namedPin) ports {
	p := ports{named: named}
	for _, n := range named {
		if n.output {
			p.outputs |= n.bit
			p.rest = n.put(p.rest, n.safe)
		}
		if n.pull {
			p.pulled |= n.bit
		}
	}
	return p
}

// follows reports a pin that is not at the level that the chip drives it to.
func (p *ports) follows(n namedPin) error {
	switch {
	case !n.output || (p.latch^p.level)&n.bit == 0:
		return nil
	case p.latch&n.bit != 0:
		return fmt.Errorf("%s is driven high but reads low: something pulls it down; check what is wired to it", n.pin)
	}
	return fmt.Errorf("%s is driven low but reads high: something pulls it up; check what is wired to it", n.pin)
}

func (p *ports) tell(out *driver.Sample) {
	for _, n := range p.named {
		if err := p.follows(n); err != nil {
			out.Fault(err.Error())
			continue
		}
		out.Value(device.Bool(n.on(p.level)))
	}
}

// numbered are the names of the pins of ports of eight: GPA0, GPA1 and so on.
func numbered(ports ...string) []string {
	var names []string
	for _, port := range ports {
		for i := range 8 {
			names = append(names, port+strconv.Itoa(i))
		}
	}
	return names
}
