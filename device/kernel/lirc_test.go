package kernel

import (
	"encoding/binary"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

var receiver = files{"dev/lirc0": "", "sys/class/lirc/lirc0/device/protocols": "rc-5 nec [rc-6] sony lirc\n"}

// frame is one struct lirc_scancode.
func frame(ms, flags, protocol int, code uint64) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(ms)*1e6)
	b = binary.NativeEndian.AppendUint16(b, uint16(flags))
	b = binary.NativeEndian.AppendUint16(b, uint16(protocol))
	b = binary.NativeEndian.AppendUint32(b, 116) // the key code of the kernel's table
	return binary.NativeEndian.AppendUint64(b, code)
}

func TestScancodes(t *testing.T) {
	const nec, rc5, sony = 9, 2, 6
	for _, tt := range []struct {
		name        string
		first, next []byte
		held        bool
	}{
		{"another key", frame(100, 0, nec, 1), frame(210, 0, nec, 2), false},
		{"NEC, held", frame(100, 0, nec, 1), frame(500, 2, nec, 1), true},
		{"NEC, pressed again", frame(100, 0, nec, 1), frame(400, 0, nec, 1), false},
		{"RC-5, held", frame(100, 1, rc5, 1), frame(214, 1, rc5, 1), true},
		{"RC-5, pressed again", frame(100, 1, rc5, 1), frame(214, 0, rc5, 1), false},
		{"Sony says it three times", frame(100, 0, sony, 1), frame(145, 0, sony, 1), true},
		{"another remote control", frame(100, 0, sony, 1), frame(145, 0, nec, 1), false},
		{"a repeat of what was not seen", make([]byte, lircSize), frame(100, 2, 0, 0), false},
	} {
		if got := decodeScancode(tt.next).holds(decodeScancode(tt.first)); got != tt.held {
			t.Errorf("%s: held is %v", tt.name, got)
		}
	}
	if got := decodeScancode(frame(3, 1, rc5, 0x1234)); got != (scancode{at: 3 * time.Millisecond, toggle: true, protocol: rc5, code: 0x1234}) {
		t.Errorf("%+v", got)
	}
}

func TestLircPrepare(t *testing.T) {
	root := receiver.write(t)
	const file = "sys/class/lirc/lirc0/device/protocols"
	c := &Lirc{Device: "/dev/lirc0", Protocols: []string{"rc-6", "nec"}}
	for _, ask := range []bool{true, false} {
		did, err := c.Prepare(driver.Preparation{Root: string(root), Ask: ask})
		if err != nil || len(did) != 1 || did[0] != "decode nec at /dev/lirc0" {
			t.Errorf("%v, %v", did, err)
		}
		if asked := root.Text(file) != "+nec"; asked != ask {
			t.Errorf("asked %v: the kernel got %q", ask, root.Text(file))
		}
	}
	setFile(t, root, file, "[nec] [rc-6]\n")
	if did, err := c.Prepare(driver.Preparation{Root: string(root)}); err != nil || did != nil {
		t.Errorf("%v, %v", did, err)
	}
	c.Protocols = []string{"morse"}
	_, err := c.Prepare(driver.Preparation{Root: string(root)})
	faulted(t, err, device.Invalid, "nec, rc-6")
	_, err = c.Prepare(driver.Preparation{Root: t.TempDir()})
	offline(t, err, "dtoverlay=gpio-ir")
}

func TestLircMistakes(t *testing.T) {
	for says, c := range map[string]*Lirc{
		"like /dev/lirc0":  {Device: "/dev/video0"},
		"same code 0x10":   {Device: "/dev/lirc0", Keys: map[string]uint32{"on": 0x10, "off": 0x10}},
		"code is the name": {Device: "/dev/lirc0", Keys: map[string]uint32{"code": 1}},
		"not a name":       {Device: "/dev/lirc0", Keys: map[string]uint32{"Power!": 1}},
		"such as nec":      {Device: "/dev/lirc0", Protocols: []string{"+nec\n"}},
	} {
		faulted(t, c.Validate(), device.Invalid, says)
	}
	_, err := (&Lirc{Device: "/dev/lirc0", root: files{"dev/x": ""}.write(t)}).Open(t.Context())
	offline(t, err, "dtoverlay=gpio-ir")
}
