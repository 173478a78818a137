package kernel

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// Selector is the YAML of the drivers "iio" and "hwmon". It selects one of the kernel's devices
// by the kernel's number, by name or by bus and address.
type Selector struct {
	Name   string `json:"name,omitempty" jsonschema:"the device as the kernel names it, such as bme280 or lm75"`
	Device string `json:"device,omitempty" jsonschema:"the kernel's number, such as iio:device0 or hwmon0; it can change at each boot, so prefer name"`
	At     string `json:"at,omitempty" jsonschema:"bus and address, such as 1-0076 for address 0x76 on bus i2c-1, to select one of several with the same name"`
	Bind   *Bind  `json:"bind,omitempty" jsonschema:"bus, address and kernel driver of a chip that the kernel does not find by itself"`

	class class
	root  sysfs.Root
}

// class is one of the kernel's classes of sensors.
type class struct {
	name   string // for messages: "iio", "hwmon"
	folder string
	prefix string                                      // of a number: "iio:device"
	place  func(folder string) string                  // bus and address of a folder
	add    func(s *sensor, folder, model string) error // adds the channels of a folder
}

var (
	iio   = class{"iio", iioDevices, "iio:device", iioPlace, (*sensor).addIIO}
	hwmon = class{"hwmon", hwmonDevices, "hwmon", deviceOf, (*sensor).addHwmon}
)

// Validate finds mistakes without hardware.
func (c *Selector) Validate() error {
	if err := c.Bind.Validate(); err != nil {
		return err
	}
	number, numbered := strings.CutPrefix(c.Device, c.class.prefix)
	_, err := strconv.ParseUint(number, 10, 16)
	switch {
	case c.Name == "" && c.Device == "" && c.At == "" && c.Bind == nil:
		return device.Faultf(device.Invalid, "no device selected; write its name, such as \"name: bme280\"")
	case c.Device != "" && (!numbered || err != nil):
		return device.Faultf(device.Invalid, "device: %q is not the kernel's number of a device; write it like %s0, or use name", printable(c.Device), c.class.prefix)
	}
	if c.Name != "" {
		if err := checkFileName("name", c.Name); err != nil {
			return err
		}
	}
	if c.At != "" {
		return checkFileName("at", c.At)
	}
	return nil
}

// place returns the required bus and address, or "" for any.
func (c *Selector) place() string {
	if c.At == "" && c.Bind != nil {
		return c.Bind.place()
	}
	return c.At
}

// fits reports whether the folder is the device's.
func (c *Selector) fits(r *reader, folder string) bool {
	if c.Device != "" && filepath.Base(folder) != c.Device {
		return false
	}
	name := r.Text(filepath.Join(folder, "name"))
	if name == "" || c.Name != "" && name != c.Name && r.Text(filepath.Join(folder, "label")) != c.Name {
		return false
	}
	return c.place() == "" || c.class.place(folder) == c.place()
}

// pick returns the folder that fits. Several are a fault.
func (c *Selector) pick(r *reader) (string, error) {
	var fit, others []string
	for _, folder := range c.root.Glob(c.class.folder + "/" + c.class.prefix + "*") {
		if c.fits(r, folder) {
			fit = append(fit, folder)
		}
		if name := r.Text(filepath.Join(folder, "name")); name != "" {
			others = append(others, name)
		}
	}
	switch len(fit) {
	case 0:
		return "", c.absent(others)
	case 1:
		return fit[0], nil
	}
	for i, folder := range fit {
		if fit[i] = c.class.place(folder); fit[i] == "" {
			fit[i] = filepath.Base(folder)
		}
	}
	return "", device.Faultf(device.Invalid, "%d %s devices match; add \"at:\" with one of: %s", len(fit), c.class.name, listed(fit))
}

// Open finds the device and lists its channels; it reads no value. A missing device is an
// Offline fault.
func (c *Selector) Open(context.Context) (device.Device, error) {
	w := *c
	s := &sensor{
		find: func(r *reader) (string, error) { return w.pick(r) },
		same: func(r *reader, folder string) bool { return w.fits(r, folder) },
	}
	folder, err := s.find(&s.reader)
	if err != nil {
		if w.class.name == iio.name && lacksIIO(string(w.root)) {
			return nil, device.Faultf(device.Offline, "this system's kernel has no IIO (nor has the SD-card image), which the part needs; use Raspberry Pi OS, or one of agentsite's own drivers")
		}
		return nil, err
	}
	model := s.reader.Text(filepath.Join(folder, "name"))
	if w.Name == "" {
		w.Name = model // the number can become that of another chip
	}
	if err := w.class.add(s, folder, model); err != nil {
		return nil, err
	}
	return s.open(model, folder)
}

// absent returns the fault for a missing device.
func (c *Selector) absent(others []string) error {
	what := cmp.Or(c.Name, c.Device, c.place())
	if c.Bind != nil {
		return device.Faultf(device.Offline, "the kernel has no %s device %s; if it is wired up, run as root: agentsite prepare, or %s", c.class.name, what, c.Bind.line())
	}
	return device.Faultf(device.Offline, "the kernel has no %s device %s (it has %s); if it is wired up, add \"bind:\" and run as root: agentsite prepare", c.class.name, what, listed(others))
}
