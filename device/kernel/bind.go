package kernel

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// Bind is the bus and address of a chip and its kernel driver's name. Only the superuser
// can bind the two; a fault has the command.
type Bind struct {
	Bus     string `json:"bus" jsonschema:"the I2C bus that the chip is wired to, such as i2c-1"`
	Address int    `json:"address" jsonschema:"the chip's address, such as 0x76"`
	Chip    string `json:"chip" jsonschema:"the chip as its kernel driver names it, such as bme280"`
}

var (
	busName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^i2c-([0-9]{1,4})$`) })
	chipName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,18}$`) }) // I2C_NAME_SIZE is 20
)

// Validate is strict because the owner pastes the line into a root shell.
func (b *Bind) Validate() error {
	switch {
	case b == nil:
		return nil
	case !busName().MatchString(b.Bus):
		return device.Faultf(device.Invalid, "bind: bus: %q is not an I2C bus; write it like i2c-1", printable(b.Bus))
	case b.Address < 0x03 || b.Address > 0x77:
		return device.Faultf(device.Invalid, "bind: address: %#x is not an address of I2C; it has 0x03 to 0x77", b.Address)
	case !chipName().MatchString(b.Chip):
		return device.Faultf(device.Invalid, "bind: chip: %q is not the name of a chip; write it as its kernel driver does, such as bme280", printable(b.Chip))
	}
	return nil
}

// place returns the kernel's name of the chip's place on the bus: 1-0076.
func (b *Bind) place() string {
	return fmt.Sprintf("%s-%04x", strings.TrimPrefix(b.Bus, "i2c-"), b.Address)
}

// line returns the command that binds the chip to its driver (Documentation/i2c/instantiating-devices.rst).
func (b *Bind) line() string {
	return fmt.Sprintf("echo %s %#02x > /sys/bus/i2c/devices/%s/new_device", b.Chip, b.Address, b.Bus)
}

// which selects one of the kernel's devices: by the kernel's own number, by its name, by
// its place on a bus.
type which struct {
	kind     string // for messages: "iio", "hwmon"
	numbered string // what a number begins with: "iio:device"
	number   string // iio:device0; it may be another's after the next start
	name     string
	at       string
	bind     *Bind
}

func (w which) validate(numbered *regexp.Regexp, example string) error {
	if err := w.bind.Validate(); err != nil {
		return err
	}
	switch {
	case w.name == "" && w.number == "" && w.at == "" && w.bind == nil:
		return device.Faultf(device.Invalid, "which device is it? write its name, such as \"name: %s\"", example)
	case w.number != "" && !numbered.MatchString(w.number):
		return device.Faultf(device.Invalid, "device: %q is not the kernel's name of such a device, or use name", printable(w.number))
	}
	if w.name != "" {
		if err := plain("name", w.name); err != nil {
			return err
		}
	}
	if w.at != "" {
		return plain("at", w.at)
	}
	return nil
}

// place returns the place that the device must have, or "" for any.
func (w which) place() string {
	if w.at == "" && w.bind != nil {
		return w.bind.place()
	}
	return w.at
}

// fits reports whether the folder is the device's. at finds a folder's place.
func (w which) fits(r *reader, folder string, at func(string) string) bool {
	if w.number != "" && filepath.Base(folder) != w.number {
		return false
	}
	name := r.Text(filepath.Join(folder, "name"))
	if name == "" || w.name != "" && name != w.name && r.Text(filepath.Join(folder, "label")) != w.name {
		return false
	}
	return w.place() == "" || at(folder) == w.place()
}

// pick returns the one folder that fits.
func (w which) pick(r *reader, folders []string, at func(string) string) (string, error) {
	var fit, others []string
	for _, folder := range folders {
		if w.fits(r, folder, at) {
			fit = append(fit, folder)
		}
		if name := r.Text(filepath.Join(folder, "name")); name != "" {
			others = append(others, name)
		}
	}
	switch len(fit) {
	case 0:
		return "", w.absent(others)
	case 1:
		return fit[0], nil
	}
	for i, folder := range fit {
		if fit[i] = at(folder); fit[i] == "" {
			fit[i] = filepath.Base(folder)
		}
	}
	return "", device.Faultf(device.Invalid, "%d %s devices fit; add \"at:\" with the place of one of them: %s", len(fit), w.kind, listed(fit))
}

// open finds the device among the folders by their place, and calls add to make its
// channels.
func (w which) open(root sysfs.Root, folders string, place func(folder string) string, add func(s *sensor, folder, model string) error) (device.Device, error) {
	s := &sensor{
		find: func(r *reader) (string, error) { return w.pick(r, root.Glob(folders+"/"+w.numbered+"*"), place) },
		same: func(r *reader, folder string) bool { return w.fits(r, folder, place) },
	}
	folder, err := s.find(&s.reader)
	if err != nil {
		if w.kind == "iio" && lacksIIO(string(root)) {
			return nil, device.Faultf(device.Offline, "this system's kernel has no IIO (that of the SD-card image has none), so that it drives no such part; use Raspberry Pi OS, or a driver of agentsite's own")
		}
		return nil, err
	}
	model := s.reader.Text(filepath.Join(folder, "name"))
	if w.name == "" {
		w.name = model // a number may become another chip's
	}
	if err := add(s, folder, model); err != nil {
		return nil, err
	}
	return s.open(model, folder)
}

// absent is the fault when no folder fits.
func (w which) absent(others []string) error {
	what := w.name
	for _, other := range []string{w.number, w.place()} {
		if what == "" {
			what = other
		}
	}
	if w.bind != nil {
		return device.Faultf(device.Offline, "the kernel has no %s device %s; if it is wired up, run as root: agentsite prepare, or %s", w.kind, what, w.bind.line())
	}
	return device.Faultf(device.Offline, "the kernel has no %s device %s (it has %s); if it is wired up, bind it to its driver: add \"bind:\" and start again to see the line", w.kind, what, listed(others))
}
