package kernel

import (
	"path/filepath"
	"regexp"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// selector selects one of the kernel's devices: by the kernel's own number, by its name, by
// its place on a bus.
type selector struct {
	kind     string // for messages: "iio", "hwmon"
	numbered string // what a number begins with: "iio:device"
	number   string // iio:device0; it may be another's after the next start
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
func (w selector) place() string {
	if w.at == "" && w.bind != nil {
		return w.bind.place()
	}
	return w.at
}

// fits reports whether the folder is the device's. at finds a folder's place.
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

// pick returns the one folder that fits.
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
	return "", device.Faultf(device.Invalid, "%d %s devices fit; add \"at:\" with the place of one of them: %s", len(fit), w.kind, listed(fit))
}

// open finds the device among the folders by their place, and calls add to make its
// channels.
func (w selector) open(root sysfs.Root, folders string, place func(folder string) string, add func(s *sensor, folder, model string) error) (device.Device, error) {
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
	return device.Faultf(device.Offline, "the kernel has no %s device %s (it has %s); if it is wired up, bind it to its driver: add \"bind:\" and start again to see the line", w.kind, what, listed(others))
}
