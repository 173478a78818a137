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
	Name string       `json:"name" jsonschema:"the LED's name in /sys/class/leds, such as ACT"`
	Safe device.Value `json:"safe" jsonschema:"the safe value: off or on for a switch; percent, such as 0, for an LED that can be dimmed"`

	root sysfs.Root
}

const leds = "sys/class/leds"

// Validate finds mistakes without hardware.
func (c *LED) Validate() error {
	full := device.Range{Max: 100}
	if t := c.Safe.Type(); t != device.TypeBool && (t != device.TypeNumber || !full.Contains(c.Safe.Number())) {
		return device.Faultf(device.Invalid, "safe: %v is not a value of an LED; write off, on or 0 to 100 percent", c.Safe)
	}
	return checkFileName("name", c.Name)
}

// Resources returns the LED.
func (c *LED) Resources() []driver.Resource {
	return []driver.Resource{{Name: "/" + leds + "/" + c.Name}}
}

// Describe returns a switch or a level, by the type of safe.
func (c *LED) Describe() device.Description {
	p := device.Point{Name: "led", Kind: device.KindSwitch, Description: "an LED", Safe: c.Safe}
	if c.Safe.Type() == device.TypeNumber {
		p = device.Point{Name: "brightness", Kind: device.KindLevel, Unit: "%", Description: "brightness of an LED", Range: device.Range{Max: 100}, Safe: c.Safe}
	}
	return device.Description{Model: "LED " + printable(c.Name), Points: []device.Point{p}}
}

// Open finds the LED. A missing LED is an Offline fault, and so is an LED that cannot be
// dimmed where safe is a number.
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
		return nil, device.Faultf(device.Offline, "the LED %s reports the impossible max_brightness %v", printable(c.Name), device.Number(l.most))
	case l.dimmed && l.most == 1:
		return nil, device.Faultf(device.Offline, "the LED %s cannot be dimmed; write safe: off or safe: on", printable(c.Name))
	}
	return driver.NewOutput(c.Describe(), l.set, l.get, func() error { return nil }), nil
}

// led is a folder of /sys/class/leds (Documentation/ABI/testing/sysfs-class-led).
type led struct {
	folder string
	most   float64 // max_brightness
	dimmed bool
	reader reader
}

// set removes the LED's kernel trigger, if any, and sets its brightness.
func (l *led) set(_ context.Context, v device.Value) error {
	trigger := filepath.Join(l.folder, "trigger")
	if b, err := l.reader.Read(trigger); err == nil && !bytes.Contains(b, []byte("[none]")) {
		if err := write(trigger, "none"); err != nil {
			return err
		}
	}
	return write(filepath.Join(l.folder, "brightness"), strconv.FormatFloat(l.brightness(v), 'f', 0, 64))
}

// brightness converts a value to the kernel's number.
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
