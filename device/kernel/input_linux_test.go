package kernel

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/devicetest"
	"agentsite/device/sysfs"
)

// queue replaces the device's file by a named pipe, and returns the kernel's end.
func queue(t *testing.T, root sysfs.Root, name string) *os.File {
	t.Helper()
	path := root.Path("dev/input", name)
	os.Remove(path)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func send(t *testing.T, f *os.File, typ, code uint16, value int32) {
	t.Helper()
	if _, err := f.Write(append(make([]byte, timeval), rawEvent(typ, code, value)...)); err != nil {
		t.Fatal(err)
	}
}

func TestInputConformance(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Device {
		root := gpioKeys.write(t)
		f := queue(t, root, "event0")
		dev, err := (&Input{Name: "gpio-keys", root: root}).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		send(t, f, evKey, 28, 1)
		send(t, f, evSyn, 0, 0)
		send(t, f, evKey, 28, 0)
		return dev
	})
}

func TestWatch(t *testing.T) {
	root := gpioKeys.with(in("sys/class/input/event0/device/", files{"capabilities/rel": "1"})).write(t)
	f := queue(t, root, "event0")
	dev := open(t, &Input{Name: "gpio-keys", Keys: []string{"enter", "rel_x"}, root: root})
	send(t, f, evKey, 28, 1)
	send(t, f, evKey, 28, 2) // held down
	send(t, f, evKey, 30, 1) // not configured
	send(t, f, evKey, 28, 0)
	send(t, f, evRel, 0, -1)
	send(t, f, evSyn, synDropped, 0)
	half := append(make([]byte, timeval), rawEvent(evRel, 0, 2)...)
	f.Write(half[:5])
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var got []string
	err := dev.(device.Watcher).Watch(ctx, func(r device.Reading) {
		got = append(got, r.Point+" "+r.Value.String()+" "+string(r.Quality))
		if len(got) == 5 {
			f.Write(half[5:])
		}
		if len(got) == 6 {
			cancel()
		}
	})
	want := []string{"enter on good", "enter off good", "rel_x -1 good", "enter - fault", "rel_x - fault", "rel_x 2 good"}
	if !errors.Is(err, context.Canceled) || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", err, got, want)
	}
}

// TestInputUnplugged: the device is unplugged during a Watch, and returns with another
// number.
func TestInputUnplugged(t *testing.T) {
	root := gpioKeys.write(t)
	f := queue(t, root, "event0")
	dev := open(t, &Input{Name: "gpio-keys", root: root}).(device.Watcher)
	send(t, f, evKey, 28, 1)
	err := dev.Watch(t.Context(), func(device.Reading) { f.Close() }) // closes the last writer, so that the reader gets EOF
	offline(t, err, "gpio-keys")
	rename(t, root, "sys/class/input/event0", "sys/class/input/event5")
	f = queue(t, root, "event5")
	send(t, f, evKey, 28, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := dev.Watch(ctx, func(device.Reading) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	os.Remove(root.Path("sys/class/input/event5/device/name"))
	offline(t, dev.Watch(t.Context(), nil), "gpio-keys")
}
