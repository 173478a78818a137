package kernel

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/devicetest"
)

// openLirc opens a receiver whose file is a pipe, which has no modes.
func openLirc(t *testing.T) (*os.File, device.Device) {
	root := receiver.write(t)
	f := queue(t, root, "../lirc0")
	dev, err := (&Lirc{Device: "/dev/lirc0", Keys: map[string]uint32{"power": 0x40}, root: root}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev.(*lirc).begin = nil
	return f, dev
}

func TestLirc(t *testing.T) {
	f, dev := openLirc(t)
	for _, b := range [][]byte{
		frame(1000, 0, 9, 0x40), frame(1110, 2, 9, 0x40), frame(1220, 2, 9, 0x40), frame(2000, 0, 9, 0x41), frame(3000, 0, 9, 0x40),
	} {
		f.Write(b[:7])
		f.Write(b[7:])
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var got []string
	err := dev.(device.Watcher).Watch(ctx, func(r device.Reading) {
		if got = append(got, r.Point+" "+r.Value.String()); len(got) == 5 {
			cancel()
		}
	})
	if want := []string{"code 64", "power on", "code 65", "code 64", "power on"}; !errors.Is(err, context.Canceled) || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", err, got, want)
	}
	f.Write(frame(4000, 0, 9, 0x40))
	err = dev.(device.Watcher).Watch(t.Context(), func(device.Reading) { f.Close() }) // closes the last writer, so that the reader gets EOF
	offline(t, err, "/dev/lirc0")
}

// TestLircOfNoReceiver opens a file on which setScancodeMode fails.
func TestLircOfNoReceiver(t *testing.T) {
	_, dev := openLirc(t)
	dev.(*lirc).begin = setScancodeMode
	offline(t, dev.(device.Watcher).Watch(t.Context(), nil), "/dev/lirc0")
}

func TestLircConformance(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Device {
		f, dev := openLirc(t)
		f.Write(frame(1000, 0, 9, 0x40))
		return dev
	})
}
