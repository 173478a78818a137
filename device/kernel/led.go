package kernel

import (
	"bytes"
	"context"
	"math"
	"path/filepath"
	"strconv"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

// LED is the YAML of the driver "led".
type LED struct {
	Name string       `json:"name" jsonschema:"the lamp as the kernel names it in /sys/class/leds, such as ACT"`
	Safe device.Value `json:"safe" jsonschema:"whichever harms nobody: off or on, and the lamp is a switch; or percent, such as 0, and it can be dimmed"`

	root sysfs.Root
}

const leds = "sys/class/leds"

// Validate finds mistakes without hardware.
func (c *LED) Validate() error {
	full := device.Range{Max: 100}
	if t := c.Safe.Type(); t != device.TypeBool && (t != device.TypeNumber || !full.Contains(c.Safe.Number())) {
		return device.Faultf(device.Invalid, "safe: a lamp rests off, on or at 0 to 100 percent, not at %v", c.Safe)
	}
	return plain("name", c.Name)
}

// Resources are the lamp.
func (c *LED) Resources() []driver.Resource {
	return []driver.Resource{{Name: "/" + leds + "/" + c.Name}}
}

// Describe has a switch or a level, by the type of safe: only the board knows whether the
// lamp can be dimmed.
func (c *LED) Describe() device.Description {
	p := device.Point{Name: "led", Kind: device.KindSwitch, Description: "a lamp", Safe: c.Safe}
	if c.Safe.Type() == device.TypeNumber {
		p = device.Point{Name: "brightness", Kind: device.KindLevel, Unit: "%", Description: "how bright a lamp is", Range: device.Range{Max: 100}, Safe: c.Safe}
	}
	return device.Description{Model: "LED " + printable(c.Name), Points: []device.Point{p}}
}

// Open finds the lamp. One that the kernel does not have is an Offline fault, and so is
// one that is to be dimmed and cannot be.
func (c *LED) Open(context.Context) (device.Device, error) {
	l := &led{folder: c.root.Path(leds, c.Name), dimmed: c.Safe.Type() == device.TypeNumber}
	var r reader
	var err error
	l.most, err = r.number(filepath.Join(l.folder, "max_brightness"))
	switch {
	case err != nil:
		var others []string
		for _, folder := range c.root.Glob(leds + "/*") {
			others = append(others, filepath.Base(folder))
		}
		return nil, device.Faultf(device.Offline, "the kernel has no LED %s; it has %s: %w", printable(c.Name), listed(others), err)
	case !(l.most >= 1 && l.most <= math.MaxInt32):
		return nil, device.Faultf(device.Offline, "the LED %s says that its greatest brightness is %v, which cannot be", printable(c.Name), device.Number(l.most))
	case l.dimmed && l.most == 1:
		return nil, device.Faultf(device.Offline, "the LED %s cannot be dimmed; write safe: off or safe: on", printable(c.Name))
	}
	return driver.NewOutput(c.Describe(), l.set, l.get, func() error { return nil }), nil
}

// led is a folder of /sys/class/leds (Documentation/ABI/testing/sysfs-class-led).
type led struct {
	folder string
	most   float64 // the kernel's number for its greatest brightness
	dimmed bool
	reader reader
}

// set takes the lamp from whatever trigger of the kernel drives it, and sets it.
// Without triggers in the kernel there is no such file.
func (l *led) set(_ context.Context, v device.Value) error {
	trigger := filepath.Join(l.folder, "trigger")
	if b, err := l.reader.Read(trigger); err == nil && !bytes.Contains(b, []byte("[none]")) {
		if err := write(trigger, "none"); err != nil {
			return err
		}
	}
	return write(filepath.Join(l.folder, "brightness"), strconv.FormatFloat(l.brightness(v), 'f', 0, 64))
}

// brightness is the kernel's number for a value.
func (l *led) brightness(v device.Value) float64 {
	n := v.Number() * l.most
	if l.dimmed {
		n /= 100
	}
	return math.Round(n)
}

func (l *led) get(now device.Value) (device.Value, error) {
	n, err := l.reader.number(filepath.Join(l.folder, "brightness"))
	switch {
	case err != nil:
		return device.Value{}, device.Faultf(device.Offline, "the LED cannot be read: %w", err)
	case !now.IsZero() && n == l.brightness(now):
		return now, nil
	case l.dimmed:
		return device.Number(device.Tidy(100 * n / l.most)), nil
	}
	return device.Bool(n > 0), nil
}
