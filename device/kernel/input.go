package kernel

import (
	"context"
	"encoding/binary"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// Input is the YAML of the driver "input".
type Input struct {
	Name   string   `json:"name,omitempty" jsonschema:"the device as the kernel names it in /proc/bus/input/devices, such as gpio-keys"`
	Device string   `json:"device,omitempty" jsonschema:"its file, such as /dev/input/by-path/platform-button@11-event, instead of name"`
	Keys   []string `json:"keys,omitempty" jsonschema:"the keys, switches and axes to watch, such as [enter, rel_x]; default: all"`

	root sysfs.Root
}

const (
	inputDevices = "sys/class/input"
	maxKeys      = 32 // points of one device; a keyboard has many more keys
)

// Validate finds mistakes without hardware.
func (c *Input) Validate() error {
	switch {
	case (c.Name == "") == (c.Device == ""):
		return device.Faultf(device.Invalid, "no device selected; write its name, such as \"name: gpio-keys\", or its file as device")
	case c.Device != "" && (!strings.HasPrefix(c.Device, "/dev/input/") || strings.Contains(c.Device, "..")):
		return device.Faultf(device.Invalid, "device: %q is not below /dev/input/", printable(c.Device))
	case len(c.Keys) > maxKeys:
		return device.Faultf(device.Invalid, "keys: %d are too many for one device; name at most %d", len(c.Keys), maxKeys)
	case len(c.Name) > 80 || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' }):
		return device.Faultf(device.Invalid, "name: %q is not the name of an input device", printable(c.Name))
	}
	return nil
}

// Open finds the device and lists its keys; it reads no event. A missing device is an
// Offline fault.
func (c *Input) Open(context.Context) (device.Device, error) {
	r := new(reader)
	event, err := c.find(r)
	if err != nil {
		return nil, err
	}
	folder := c.root.Path(inputDevices, event, "device")
	in := &input{config: c, points: make(map[code]string)}
	in.desc.Model = printable(r.Text(filepath.Join(folder, "name")))
	all := offered(r, folder)
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = k.name()
		if len(c.Keys) == 0 || slices.Contains(c.Keys, names[i]) {
			in.points[k] = names[i]
			in.desc.Points = append(in.desc.Points, device.Point{Name: names[i], Kind: device.KindEvent, Description: k.doc()})
		}
	}
	for _, want := range c.Keys {
		if !slices.Contains(names, want) {
			return nil, device.Faultf(device.Invalid, "keys: this device has no %q; it has %s", printable(want), listed(names))
		}
	}
	switch n := len(in.desc.Points); {
	case n == 0:
		return nil, device.Faultf(device.Offline, "%s has no key, switch or relative axis; select another device", in.desc.Model)
	case n > maxKeys:
		return nil, device.Faultf(device.Invalid, "%s has %d keys; name those to watch, such as \"keys: [%s, %s]\"", in.desc.Model, n, names[0], names[1])
	}
	return in, nil
}

// find returns the name of the device's file below /dev/input, such as event0.
func (c *Input) find(r *reader) (string, error) {
	if c.Device != "" {
		real, err := filepath.EvalSymlinks(c.root.Path(c.Device))
		if err != nil {
			return "", device.Faultf(device.Offline, "no %s; plug the device in, or correct its name: %w", c.Device, err)
		}
		return filepath.Base(real), nil
	}
	var fit, others []string
	for _, folder := range c.root.Glob(inputDevices + "/event*") {
		name := r.Text(filepath.Join(folder, "device", "name"))
		if name == c.Name {
			fit = append(fit, filepath.Base(folder))
		}
		others = append(others, name)
	}
	switch len(fit) {
	case 1:
		return fit[0], nil
	case 0:
		return "", device.Faultf(device.Offline, "the kernel has no input device %q (it has %s); plug it in, or for a button add an overlay such as dtoverlay=gpio-key", printable(c.Name), listed(others))
	}
	return "", device.Faultf(device.Invalid, "%d input devices are called %q: %s; write \"device:\" with one of the files below /dev/input/by-path instead", len(fit), printable(c.Name), listed(fit))
}

// input is one input device. Its file is open only during a Watch.
type input struct {
	config *Input
	desc   device.Description
	points map[code]string
}

func (in *input) Describe() device.Description { return in.desc }

// Close does nothing: a Watch ends with its context.
func (in *input) Close() error { return nil }

// Watch opens the device and emits its events. An unplugged device is an Offline fault; a
// later Watch finds it again. Each Watch gets all events.
func (in *input) Watch(ctx context.Context, emit func(device.Reading)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name, err := in.config.find(new(reader))
	if err != nil {
		return err
	}
	f := feed{root: in.config.root, path: "/dev/input/" + name, group: "input", model: in.desc.Model, size: timeval + 8}
	return f.follow(ctx, func(b []byte) { in.emit(decode(b, timeval), emit) })
}

// feed is a file of /dev from which the kernel's events are read.
type feed struct {
	root  sysfs.Root
	path  string
	group string               // has the permission to read it
	model string               // for messages
	size  int                  // of one event, in bytes
	begin func(*os.File) error // called after opening; may be nil
}

// The types of events that are watched (input-event-codes.h).
const (
	evSyn = 0
	evKey = 1
	evRel = 2
	evSw  = 5

	synDropped = 3 // the kernel's queue was full
	released   = 0
	pressed    = 1
)

// code is a key, a switch or an axis.
type code struct{ typ, code uint16 }

func (c code) name() string {
	names, prefix := keyNames, "key_"
	switch c.typ {
	case evRel:
		names, prefix = relNames, "rel_"
	case evSw:
		names, prefix = switchNames, "sw_"
	}
	name, ok := names[c.code]
	switch {
	case !ok:
		return prefix + strconv.Itoa(int(c.code))
	case c.typ == evKey:
		return name
	}
	return prefix + name
}

func (c code) doc() string {
	switch c.typ {
	case evRel:
		return "signed steps of a turn or movement"
	case evSw:
		return "true when the switch closes, false when it opens"
	}
	return "true when pressed, false when released"
}

// offered reads the device's keys, switches and relative axes.
func offered(r *reader, folder string) (all []code) {
	for _, t := range []struct {
		file string
		typ  uint16
	}{{"key", evKey}, {"sw", evSw}, {"rel", evRel}} {
		for _, n := range bitmap(r.Text(filepath.Join(folder, "capabilities", t.file)), bits.UintSize) {
			all = append(all, code{t.typ, n})
		}
	}
	return all
}

// bitmap parses a bitmap of hexadecimal words of that many bits, the highest word first, and
// returns the numbers of the set bits (input_print_bitmap in drivers/input/input.c).
func bitmap(text string, size int) (set []uint16) {
	const codes = 0x300 // KEY_CNT
	words := strings.Fields(text)
	for i := range words {
		word, err := strconv.ParseUint(words[len(words)-1-i], 16, size)
		if err != nil {
			return nil
		}
		for ; word != 0; word &= word - 1 {
			n := i*size + bits.TrailingZeros64(word)
			if n >= codes {
				return set
			}
			set = append(set, uint16(n))
		}
	}
	return set
}

// event is struct input_event without its time.
type event struct {
	code
	value int32
}

// decode decodes one event after a timeval of that many bytes, in the machine's byte order
// (Documentation/input/input.rst, "Event interface").
func decode(b []byte, timeval int) event {
	b = b[timeval:]
	return event{
		code{binary.NativeEndian.Uint16(b), binary.NativeEndian.Uint16(b[2:])},
		int32(binary.NativeEndian.Uint32(b[4:])),
	}
}

// emit emits the reading of an event. After an overflow of the kernel's queue it emits a
// Bad reading of each point, because a release may be lost.
func (in *input) emit(e event, emit func(device.Reading)) {
	now := time.Now()
	if e.typ == evSyn && e.code.code == synDropped {
		for _, p := range in.desc.Points {
			emit(device.Reading{Point: p.Name, Quality: device.Bad, At: now, Why: "events were lost, because they came too fast"})
		}
		return
	}
	name, ok := in.points[e.code]
	if !ok {
		return
	}
	r := device.Reading{Point: name, Quality: device.Good, At: now}
	switch {
	case e.typ == evRel:
		r.Value = device.Number(float64(e.value))
	case e.value == pressed || e.value == released:
		r.Value = device.Bool(e.value == pressed)
	default:
		return // 2 is the kernel's auto-repeat
	}
	emit(r)
}
