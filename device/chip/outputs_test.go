package chip

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
	"agentsite/device/devicetest"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
)

// partBus is a bus with a chip that a test plays: it answers to Tx of its address.
type partBus struct {
	mu     sync.Mutex
	tx     func(w, r []byte)
	broken error                // of every transfer
	fails  func(w []byte) error // may be nil
	writes [][]byte
}

func (b *partBus) String() string { return "part" }

func (b *partBus) SetSpeed(physic.Frequency) error { return errors.New("no speed here") }

func (b *partBus) Tx(_ uint16, w, r []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return b.broken
	}
	if b.fails != nil {
		if err := b.fails(w); err != nil {
			return err
		}
	}
	if len(w) > 1 || len(r) == 0 {
		b.writes = append(b.writes, append([]byte(nil), w...))
	}
	b.tx(w, r)
	return nil
}

// locked runs f while no transfer does.
func (b *partBus) locked(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// opened opens a configuration that is right.
func opened(t testing.TB, c driver.Config) device.Device {
	t.Helper()
	if v, ok := c.(driver.Validator); ok {
		if err := v.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	dev, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// onBus is the driver's Config of type C on a board with this bus, made complete.
func onBus[C driver.Config](t testing.TB, name string, bus i2c.Bus, fill func(C)) C {
	t.Helper()
	c := config(t, name, bus).(C)
	fill(c)
	return c
}

func apply(t testing.TB, dev device.Device, point string, v device.Value) {
	t.Helper()
	if err := dev.(device.Actuator).Apply(t.Context(), point, v); err != nil {
		t.Fatalf("Apply(%s, %v): %v", point, v, err)
	}
}

// reads holds one sample to these values, as people write them; "" is a fault.
func reads(t testing.TB, dev device.Device, want map[string]string) {
	t.Helper()
	readings, err := dev.(device.Sensor).Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(readings) != len(want) {
		t.Errorf("got %d readings, want %d", len(readings), len(want))
	}
	for _, r := range readings {
		got := r.Value.String()
		if r.Quality != device.Good {
			got = ""
		}
		if w, ok := want[r.Point]; !ok || got != w {
			t.Errorf("%s reads %q (%s), want %q", r.Point, got, r.Why, w)
		}
	}
}

// faulted holds a call to a fault of this kind that says this.
func faulted(t testing.TB, err error, kind device.FaultKind, says string) {
	t.Helper()
	var fault *device.Fault
	if !errors.As(err, &fault) || fault.Kind != kind || !strings.Contains(fault.Msg, says) {
		t.Errorf("got %v, want a fault %s that says %q", err, kind, says)
	}
}

// believable holds the numbers of one sample that are reported as good to their
// points' ranges.
func believable(t testing.TB, dev device.Device) {
	t.Helper()
	readings, err := dev.(device.Sensor).Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readings {
		if p, ok := dev.Describe().Point(r.Point); !ok || r.Quality == device.Good && p.Range != (device.Range{}) && !p.Range.Contains(r.Value.Number()) {
			t.Errorf("%s = %v is reported as good", r.Point, r.Value)
		}
	}
}

// survives breaks the bus in each way and holds the device to saying so, to be at
// its values afterwards and to move again.
func survives(t *testing.T, dev device.Device, bus *partBus, point string, v device.Value, want map[string]string) {
	t.Helper()
	for _, errno := range []syscall.Errno{syscall.ENXIO, syscall.EIO, syscall.ETIMEDOUT, syscall.ENODEV} {
		bus.locked(func() { bus.broken = fmt.Errorf("sysfs-i2c: %v", errno) })
		fails(t, dev, device.Offline)
		faulted(t, dev.(device.Actuator).Apply(t.Context(), point, v), device.Offline, "i2c-1")
		bus.locked(func() { bus.broken = nil })
		reads(t, dev, want)
	}
}

// witnessed holds a device with outputs to the suite that all pass, with level as
// the witness at the chip opened last.
func witnessed(t *testing.T, open func(t *testing.T) (dev device.Device, level func(point string) device.Value)) {
	t.Run("conformance", func(t *testing.T) {
		var level func(string) device.Value
		devicetest.Options{Level: func(point string) device.Value { return level(point) }}.Run(t, func(t *testing.T) device.Device {
			var dev device.Device
			dev, level = open(t)
			return dev
		})
	})
}

// mistakes holds Validate to a refusal of each, and to words of it.
func mistakes[C driver.Config](t *testing.T, name string, all map[string]func(C)) {
	t.Helper()
	for says, spoil := range all {
		c := config(t, name, nil)
		spoil(c.(C))
		faulted(t, c.(driver.Validator).Validate(), device.Invalid, says)
	}
}

func noBoard() *board.Board { return boardtest.Machine{}.Board() }

// TestOutputsWithFailingTransfers fails each transfer of some moves in turn, before or after
// the chip has taken it. A move with a failed transfer is never reported as done, no failure
// outlasts its move, and then the chip reads what its outputs are.
func TestOutputsWithFailingTransfers(t *testing.T) {
	for _, name := range append(expanders, "pca9685") {
		t.Run(name, func(t *testing.T) {
			for k := range 100 {
				var bus *partBus
				var dev device.Device
				var level func() device.Value // of the output
				output, on, off := "pump", device.Bool(true), device.Bool(false)
				if name == "pca9685" {
					f := newFakePCA9685()
					bus, dev, level = &f.partBus, opened(t, greenhouse(t, f)), func() device.Value { return f.level("lamp") }
					output, on, off = "lamp", device.Number(100), device.Number(0)
				} else {
					f := play(name)
					bus, dev, level = &f.partBus, opened(t, wired(t, name, f)), func() device.Value { return device.Bool(f.pins()&1 == 0) }
				}
				n := 0
				bus.fails = func(w []byte) error {
					if n++; n-1 != k/2 {
						return nil
					}
					if k%2 == 1 {
						bus.tx(w, make([]byte, 64))
					}
					return errors.New("EIO")
				}
				for _, v := range []device.Value{on, off, on} {
					before := n
					err := dev.(device.Actuator).Apply(t.Context(), output, v)
					if failed := before <= k/2 && n > k/2; failed != (err != nil) || err == nil && level() != v {
						t.Errorf("transfer %d failed %v: %v, and the output is at %v, want %v", k/2, failed, err, level(), v)
					}
				}
				bus.fails = nil
				readings, err := dev.(device.Sensor).Sample(t.Context())
				i := slices.IndexFunc(readings, func(r device.Reading) bool { return r.Point == output })
				if err != nil || readings[i].Value != level() {
					t.Errorf("after transfer %d: %v %v, and the output is at %v", k/2, readings, err, level())
				}
			}
		})
	}
}
