package kernel

import (
	"path/filepath"
	"regexp"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// selector selects one of the kernel's devices by the kernel's number, by name or by bus and
// address.
type selector struct {
	kind     string // for messages: "iio", "hwmon"
	numbered string // prefix of a number: "iio:device"
	number   string // iio:device0; it can change at each boot
	name     string
	at       string
	bind     *Bind
}

func (w selector) validate(numbered *regexp.Regexp, example string) error {
	if err := w.bind.Validate(); err != nil {
		return err
	}
	switch {
	case w.name == "" && w.number == "" && w.at == "" && w.bind == nil:
		return device.Faultf(device.Invalid, "no device selected; write its name, such as \"name: %s\"", example)
	case w.number != "" && !numbered.MatchString(w.number):
		return device.Faultf(device.Invalid, "device: %q is not the kernel's number of a device; write it like %s0, or use name", printable(w.number), w.numbered)
	}
	if w.name != "" {
		if err := checkFileName("name", w.name); err != nil {
			return err
		}
	}
	if w.at != "" {
		return checkFileName("at", w.at)
	}
	return nil
}

// place returns the required bus and address, or "" for any.
func (w selector) place() string {
	if w.at == "" && w.bind != nil {
		return w.bind.place()
	}
	return w.at
}

// fits reports whether the folder is the device's. at returns a folder's place.
func (w selector) fits(r *reader, folder string, at func(string) string) bool {
	if w.number != "" && filepath.Base(folder) != w.number {
		return false
	}
	name := r.Text(filepath.Join(folder, "name"))
	if name == "" || w.name != "" && name != w.name && r.Text(filepath.Join(folder, "label")) != w.name {
		return false
	}
	return w.place() == "" || at(folder) == w.place()
}

// pick returns the folder that fits. Several are a fault.
func (w selector) pick(r *reader, folders []string, at func(string) string) (string, error) {
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
	return "", device.Faultf(device.Invalid, "%d %s devices match; add \"at:\" with one of: %s", len(fit), w.kind, listed(fit))
}

// open finds the device among the folders, and calls add to add its channels.
func (w selector) open(root sysfs.Root, folders string, place func(folder string) string, add func(s *sensor, folder, model string) error) (device.Device, error) {
	s := &sensor{
		find: func(r *reader) (string, error) { return w.pick(r, root.Glob(folders+"/"+w.numbered+"*"), place) },
		same: func(r *reader, folder string) bool { return w.fits(r, folder, place) },
	}
	folder, err := s.find(&s.reader)
	if err != nil {
		if w.kind == "iio" && lacksIIO(string(root)) {
			return nil, device.Faultf(device.Offline, "this system's kernel has no IIO (nor has the SD-card image), which the part needs; use Raspberry Pi OS, or one of agentsite's own drivers")
		}
		return nil, err
	}
	model := s.reader.Text(filepath.Join(folder, "name"))
	if w.name == "" {
		w.name = model // the number can become that of another chip
	}
	if err := add(s, folder, model); err != nil {
		return nil, err
	}
	return s.open(model, folder)
}

// absent returns the fault for a missing device.
func (w selector) absent(others []string) error {
	what := w.name
	for _, other := range []string{w.number, w.place()} {
		if what == "" {
			what = other
		}
	}
	if w.bind != nil {
		return device.Faultf(device.Offline, "the kernel has no %s device %s; if it is wired up, run as root: agentsite prepare, or %s", w.kind, what, w.bind.line())
	}
	return device.Faultf(device.Offline, "the kernel has no %s device %s (it has %s); if it is wired up, add \"bind:\" and run as root: agentsite prepare", w.kind, what, listed(others))
}
