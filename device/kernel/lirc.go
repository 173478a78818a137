package kernel

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

// Lirc is the YAML of the driver "lirc": an infrared receiver, such as a TSOP38238, and a
// remote control whose codes the kernel decodes.
type Lirc struct {
	Device    string            `json:"device" jsonschema:"the receiver's file"`
	Keys      map[string]uint32 `json:"keys,omitempty" jsonschema:"the keys of the remote control, each with a name and its code, such as { power: 0x10 }; the point code reports the codes"`
	Protocols []string          `json:"protocols,omitempty" jsonschema:"the protocols of the remote control, such as [nec] or [rc-5, rc-6]; agentsite prepare enables them, and does not change others"`

	root sysfs.Root
}

const (
	anyCode  = "code"
	heldKey  = 150 * time.Millisecond // remote controls repeat a held key each 45 to 115 ms
	lircSize = 24
)

var (
	lircName     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/dev/lirc[0-9]{1,3}$`) })
	lircProtocol = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,18}$`) })
)

// Validate finds mistakes without hardware.
func (c *Lirc) Validate() error {
	if !lircName().MatchString(c.Device) {
		return device.Faultf(device.Invalid, "device: %q is not an infrared receiver; write it like /dev/lirc0", printable(c.Device))
	}
	if len(c.Keys) > maxKeys {
		return device.Faultf(device.Invalid, "keys: %d are too many for one device; name at most %d", len(c.Keys), maxKeys)
	}
	named := make(map[uint32]string)
	for _, name := range slices.Sorted(maps.Keys(c.Keys)) {
		if other, twice := named[c.Keys[name]]; twice {
			return device.Faultf(device.Invalid, "keys: %s and %s have the same code %#x", other, name, c.Keys[name])
		}
		named[c.Keys[name]] = name
		if name == anyCode {
			return device.Faultf(device.Invalid, "keys: %s is the name of the point that reports all codes; choose another name", anyCode)
		}
	}
	for _, p := range c.Protocols {
		if !lircProtocol().MatchString(p) {
			return device.Faultf(device.Invalid, "protocols: %q is not a protocol of the kernel; use one such as nec, rc-5, rc-6, sony or samsung", printable(p))
		}
	}
	return c.Describe().Validate()
}

// Describe needs no hardware.
func (c *Lirc) Describe() device.Description {
	d := device.Description{Model: "infrared receiver", Points: []device.Point{
		{Name: anyCode, Kind: device.KindEvent, Description: "the code of each pressed key"},
	}}
	for _, name := range slices.Sorted(maps.Keys(c.Keys)) {
		d.Points = append(d.Points, device.Point{Name: name, Kind: device.KindEvent, Description: fmt.Sprintf("true when the key with the code %#x is pressed", c.Keys[name])})
	}
	return d
}

// Open checks that the receiver exists; it reads no event.
func (c *Lirc) Open(context.Context) (device.Device, error) {
	if _, err := os.Stat(c.root.Path(c.Device)); err != nil {
		return nil, device.Faultf(device.Offline, "no %s; on a Raspberry Pi add dtoverlay=gpio-ir,gpio_pin=18 to config.txt, with the receiver's line, and reboot: %w", c.Device, err)
	}
	l := &lirc{config: c, desc: c.Describe(), names: make(map[uint64]string), begin: setScancodeMode}
	for name, code := range c.Keys {
		l.names[uint64(code)] = name
	}
	return l, nil
}

// protocols returns the file with the receiver's enabled protocols
// (Documentation/ABI/testing/sysfs-class-rc).
func (c *Lirc) protocols(t sysfs.Root) string {
	return t.Path("sys/class/lirc", filepath.Base(c.Device), "device/protocols")
}

// Prepares returns the protocols to enable.
func (c *Lirc) Prepares() (all []string) {
	for _, name := range c.Protocols {
		all = append(all, fmt.Sprintf("decode %s at %s", name, c.Device))
	}
	return all
}

// Prepare enables the protocols.
func (c *Lirc) Prepare(p driver.Preparation) (did []string, err error) {
	if err := c.Validate(); err != nil || len(c.Protocols) == 0 {
		return nil, err
	}
	file := c.protocols(sysfs.Root(p.Root))
	var r reader
	known := strings.Fields(r.Text(file))
	if len(known) == 0 {
		return nil, device.Faultf(device.Offline, "no receiver at %s; on a Raspberry Pi add dtoverlay=gpio-ir,gpio_pin=18 to config.txt, with the receiver's line, and reboot", c.Device)
	}
	for _, name := range c.Protocols {
		switch {
		case slices.Contains(known, "["+name+"]"):
			continue
		case !slices.Contains(known, name):
			return did, device.Faultf(device.Invalid, "protocols: %s does not support %s; it supports %s", c.Device, name, strings.NewReplacer("[", "", "]", "").Replace(strings.Join(known, ", ")))
		}
		did = append(did, fmt.Sprintf("decode %s at %s", name, c.Device))
		if p.Ask {
			continue
		}
		if err := write(file, "+"+name); err != nil {
			return did, err
		}
	}
	return did, nil
}

// lirc is one receiver. Its file is open only during a Watch.
type lirc struct {
	config *Lirc
	desc   device.Description
	names  map[uint64]string
	begin  func(*os.File) error
}

func (l *lirc) Describe() device.Description { return l.desc }

// Close does nothing: a Watch ends with its context.
func (l *lirc) Close() error { return nil }

// Watch emits each press of a key once, however long the key is held. Each Watch gets all
// presses.
func (l *lirc) Watch(ctx context.Context, emit func(device.Reading)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f := feed{root: l.config.root, path: l.config.Device, group: "video", model: "the receiver at " + l.config.Device, size: lircSize, begin: l.begin}
	var last scancode
	return f.follow(ctx, func(b []byte) {
		now := decodeScancode(b)
		if !now.holds(last) {
			l.emit(now, emit)
		}
		last = now
	})
}

func (l *lirc) emit(s scancode, emit func(device.Reading)) {
	at := time.Now()
	emit(device.Reading{Point: anyCode, Value: device.Number(float64(s.code)), Quality: device.Good, At: at})
	if name, ok := l.names[s.code]; ok {
		emit(device.Reading{Point: name, Value: device.Bool(true), Quality: device.Good, At: at})
	}
}

// scancode is struct lirc_scancode (include/uapi/linux/lirc.h), without the key code of the
// kernel's own table.
type scancode struct {
	at       time.Duration // by the kernel's clock
	toggle   bool          // changes with each press, if the protocol has a toggle bit
	repeat   bool          // the remote control sent a repeat code
	protocol uint16
	code     uint64
}

func decodeScancode(b []byte) scancode {
	flags := binary.NativeEndian.Uint16(b[8:])
	return scancode{
		at:     time.Duration(binary.NativeEndian.Uint64(b)),
		toggle: flags&1 != 0, repeat: flags&2 != 0,
		protocol: binary.NativeEndian.Uint16(b[10:]),
		code:     binary.NativeEndian.Uint64(b[16:]),
	}
}

// holds reports whether s repeats last, and is not a new press. The kernel decides in the
// same way (rc_keydown in drivers/media/rc/rc-main.c).
func (s scancode) holds(last scancode) bool {
	return s.protocol == last.protocol && s.code == last.code && s.toggle == last.toggle && last.at != 0 &&
		(s.repeat || s.at-last.at < heldKey)
}
