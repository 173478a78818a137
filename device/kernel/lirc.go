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

// Lirc is the YAML of the driver "lirc": a receiver of infrared light, such as a
// TSOP38238, and a remote control whose codes the kernel decodes.
type Lirc struct {
	Device    string            `json:"device" jsonschema:"the receiver's file"`
	Keys      map[string]uint32 `json:"keys,omitempty" jsonschema:"the keys of the remote control, each with a name of yours and its code, such as { power: 0x10 }; the point code tells the codes"`
	Protocols []string          `json:"protocols,omitempty" jsonschema:"what the remote control speaks, such as [nec] or [rc-5, rc-6]; agentsite prepare switches it on, the others stay as they are"`

	root sysfs.Root
}

const (
	anyCode  = "code"
	heldKey  = 150 * time.Millisecond // remote controls repeat themselves each 45 to 115 ms
	lircSize = 24
)

var (
	lircName     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/dev/lirc[0-9]{1,3}$`) })
	lircProtocol = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,18}$`) })
)

// Validate finds mistakes without hardware.
func (c *Lirc) Validate() error {
	if !lircName().MatchString(c.Device) {
		return device.Faultf(device.Invalid, "device: %q is no receiver of infrared light; write it like /dev/lirc0", printable(c.Device))
	}
	if len(c.Keys) > mostKeys {
		return device.Faultf(device.Invalid, "keys: %d are too many for one device; name at most %d", len(c.Keys), mostKeys)
	}
	named := make(map[uint32]string)
	for _, name := range slices.Sorted(maps.Keys(c.Keys)) {
		if other, twice := named[c.Keys[name]]; twice {
			return device.Faultf(device.Invalid, "keys: %s and %s have the same code %#x", other, name, c.Keys[name])
		}
		named[c.Keys[name]] = name
		if name == anyCode {
			return device.Faultf(device.Invalid, "keys: %s is the point that tells all codes; choose another name", anyCode)
		}
	}
	for _, p := range c.Protocols {
		if !lircProtocol().MatchString(p) {
			return device.Faultf(device.Invalid, "protocols: %q is none of the kernel's, such as nec, rc-5, rc-6, sony or samsung", printable(p))
		}
	}
	return c.Describe().Validate()
}

// Describe needs no hardware.
func (c *Lirc) Describe() device.Description {
	d := device.Description{Model: "infrared receiver", Points: []device.Point{
		{Name: anyCode, Kind: device.KindEvent, Description: "the code of whichever key is pressed"},
	}}
	for _, name := range slices.Sorted(maps.Keys(c.Keys)) {
		d.Points = append(d.Points, device.Point{Name: name, Kind: device.KindEvent, Description: fmt.Sprintf("true when the key with the code %#x is pressed", c.Keys[name])})
	}
	return d
}

// Open sees whether there is a receiver; it does not yet listen.
func (c *Lirc) Open(context.Context) (device.Device, error) {
	if _, err := os.Stat(c.root.Path(c.Device)); err != nil {
		return nil, device.Faultf(device.Offline, "there is no %s; on a Raspberry Pi add dtoverlay=gpio-ir,gpio_pin=18 to config.txt, with the receiver's line, and start the board again: %w", c.Device, err)
	}
	l := &lirc{config: c, desc: c.Describe(), names: make(map[uint64]string), begin: scancodes}
	for name, code := range c.Keys {
		l.names[uint64(code)] = name
	}
	return l, nil
}

// protocols is the file that says which protocols the receiver decodes
// (Documentation/ABI/testing/sysfs-class-rc).
func (c *Lirc) protocols(t sysfs.Root) string {
	return t.Path("sys/class/lirc", filepath.Base(c.Device), "device/protocols")
}

// Prepare switches the protocols on.
func (c *Lirc) Prepare(p driver.Preparation) (did []string, err error) {
	if err := c.Validate(); err != nil || len(c.Protocols) == 0 {
		return nil, err
	}
	file := c.protocols(sysfs.Root(p.Root))
	var r reader
	known := strings.Fields(r.Text(file))
	if len(known) == 0 {
		return nil, device.Faultf(device.Offline, "there is no receiver at %s; on a Raspberry Pi add dtoverlay=gpio-ir,gpio_pin=18 to config.txt, with the receiver's line, and start the board again", c.Device)
	}
	for _, name := range c.Protocols {
		switch {
		case slices.Contains(known, "["+name+"]"):
			continue
		case !slices.Contains(known, name):
			return did, device.Faultf(device.Invalid, "protocols: %s does not know %s; it has %s", c.Device, name, strings.NewReplacer("[", "", "]", "").Replace(strings.Join(known, ", ")))
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

// lirc listens to one receiver. It holds nothing open but while it is watched.
type lirc struct {
	config *Lirc
	desc   device.Description
	names  map[uint64]string
	begin  func(*os.File) error
}

func (l *lirc) Describe() device.Description { return l.desc }

// Close does nothing: a Watch ends with its context.
func (l *lirc) Close() error { return nil }

// Watch emits each key that is pressed, once for as long as it is held. The kernel
// gives each Watch all of them.
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

// scancode is struct lirc_scancode (include/uapi/linux/lirc.h), without the key that
// the kernel's own table makes of it.
type scancode struct {
	at       time.Duration // by the kernel's clock
	toggle   bool          // changes with each press, where the protocol knows that
	repeat   bool          // the remote control itself says so
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

// holds reports whether s is last going on, and not a key pressed anew. The kernel
// decides in the same way (rc_keydown in drivers/media/rc/rc-main.c).
func (s scancode) holds(last scancode) bool {
	return s.protocol == last.protocol && s.code == last.code && s.toggle == last.toggle && last.at != 0 &&
		(s.repeat || s.at-last.at < heldKey)
}
