package kernel

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"testing"

	"agentsite/device"
)

// gpioKeys has enter (28), power (116) and the switch lid (0); knob turns rel_x.
var (
	gpioKeys = in("sys/class/input/event0/device/", files{"name": "gpio-keys\n", "capabilities/key": words, "capabilities/sw": "1\n", "capabilities/rel": "0\n"}).with(files{"dev/input/event0": ""})
	knob     = in("sys/class/input/event1/device/", files{"name": "rotary@17\n", "capabilities/key": "0\n", "capabilities/rel": "1\n"}).with(files{"dev/input/event1": ""})
)

// words are the bits 28 and 116 in words of this machine's size.
var words = map[int]string{32: "100000 0 0 10000000\n", 64: "10000000000000 10000000\n"}[bits.UintSize]

// manyKeys are the bits 1 to 127.
var manyKeys = map[int]string{32: "ffffffff ffffffff ffffffff fffffffe\n", 64: "ffffffffffffffff fffffffffffffffe\n"}[bits.UintSize]

func TestBitmap(t *testing.T) {
	for _, tt := range []struct {
		text string
		size int
		want []uint16
	}{
		{"0\n", 64, nil},
		{"1", 64, []uint16{0}},
		{"10000000000000 10000000", 64, []uint16{28, 116}},
		{"100000 0 0 10000000", 32, []uint16{28, 116}},
		{"100000 0 0 10000000 x", 32, nil},
		{"8000000000000000 0 0 0 0 0 0 0 0 0 0 1", 64, []uint16{0, 767}},
		{"1 0 0 0 0 0 0 0 0 0 0 0 1", 64, []uint16{0}}, // beyond the last code
		{"fffffffffffffffff", 64, nil},
	} {
		if got := bitmap(tt.text, tt.size); !slices.Equal(got, tt.want) {
			t.Errorf("%q of %d bits: %v, want %v", tt.text, tt.size, got, tt.want)
		}
	}
}

func TestDecodeBothLayouts(t *testing.T) {
	for _, size := range []int{8, 16} {
		b := append(bytes.Repeat([]byte{0xaa}, size), rawEvent(evRel, 7, -3)...)
		if got := decode(b, size); got != (event{code{evRel, 7}, -3}) {
			t.Errorf("behind %d bytes: %+v", size, got)
		}
	}
}

// rawEvent is an event without its time.
func rawEvent(typ, code uint16, value int32) []byte {
	b := binary.NativeEndian.AppendUint16(nil, typ)
	b = binary.NativeEndian.AppendUint16(b, code)
	return binary.NativeEndian.AppendUint32(b, uint32(value))
}

func TestNamesAreNames(t *testing.T) {
	for _, typ := range []uint16{evKey, evRel, evSw} {
		seen := map[string]bool{}
		for n := range uint16(0x300) {
			name := code{typ, n}.name()
			if err := device.CheckName(name); err != nil || seen[name] {
				t.Errorf("code %d of type %d is %q: %v", n, typ, name, err)
			}
			seen[name] = true
		}
	}
}

func TestInputPoints(t *testing.T) {
	root := gpioKeys.with(knob, in("sys/class/input/event2/device/", files{"name": "keyboard\n", "capabilities/key": manyKeys}), files{"dev/input/event2": "", "dev/input/by-path/knob": "->../event1"}).write(t)
	names := func(c *Input) (all []string) {
		c.root = root
		for _, p := range open(t, c).Describe().Points {
			all = append(all, p.Name)
		}
		return all
	}
	if got := names(&Input{Name: "gpio-keys"}); !slices.Equal(got, []string{"enter", "power", "sw_lid"}) {
		t.Error(got)
	}
	if got := names(&Input{Name: "gpio-keys", Keys: []string{"enter"}}); !slices.Equal(got, []string{"enter"}) {
		t.Error(got)
	}
	if got := names(&Input{Device: "/dev/input/by-path/knob"}); !slices.Equal(got, []string{"rel_x"}) {
		t.Error(got)
	}
	_, err := (&Input{Name: "keyboard", root: root}).Open(t.Context())
	faulted(t, err, device.Invalid, "keys: [")
	_, err = (&Input{Name: "gpio-keys", Keys: []string{"q"}, root: root}).Open(t.Context())
	faulted(t, err, device.Invalid, "enter, ")
	_, err = (&Input{Name: "mouse", root: root}).Open(t.Context())
	offline(t, err, "gpio-keys, rotary@17, keyboard")
	twice := knob.with(in("sys/class/input/event3/device/", files{"name": "rotary@17"})).write(t)
	_, err = (&Input{Name: "rotary@17", root: twice}).Open(t.Context())
	faulted(t, err, device.Invalid, "event1, event3")
}
