package chip

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board/boardtest"
	"agentsite/device/devicetest"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
)

// registers is a bus with one chip whose registers are read and written from a
// pointer on. A test can answer a transfer itself first.
type registers struct {
	mu     sync.Mutex
	addr   uint16
	mem    [256]byte
	words  map[byte]uint16               // registers of 16 bits, for chips whose pointer counts words
	answer func(w, r []byte) (done bool) // may be nil
	broken error                         // of every transfer
	writes [][]byte
}

func (b *registers) String() string { return "registers" }

func (b *registers) SetSpeed(physic.Frequency) error { return errors.New("no speed here") }

func (b *registers) Tx(addr uint16, w, r []byte) error {
	time.Sleep(100 * time.Microsecond) // who polls without a pause meets its deadline too
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return b.broken
	}
	if addr != b.addr {
		return fmt.Errorf("fake: %w", syscall.ENXIO)
	}
	if len(w) > 0 {
		b.writes = append(b.writes, append([]byte(nil), w...))
	}
	if b.answer != nil && b.answer(w, r) {
		return nil
	}
	switch {
	case len(w) == 0:
	case b.words != nil:
		if len(w) == 3 {
			b.words[w[0]] = uint16(w[1])<<8 | uint16(w[2])
		}
		copy(r, []byte{byte(b.words[w[0]] >> 8), byte(b.words[w[0]])})
	default:
		copy(b.mem[w[0]:], w[1:])
		copy(r, b.mem[w[0]:])
	}
	return nil
}

// breaks sets the error of every transfer; nil mends the bus.
func (b *registers) breaks(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = err
}

// config is a fresh Config of the driver on a board with this bus.
func config(t testing.TB, name string, bus i2c.Bus) driver.Config {
	t.Helper()
	d, ok := driver.Find(Drivers(boardtest.I2C(bus)), name)
	if !ok {
		t.Fatalf("there is no driver %s", name)
	}
	return d.Config()
}

// open opens the driver's device on the bus, with the defaults.
func open(t testing.TB, name string, bus i2c.Bus) device.Device {
	t.Helper()
	dev, err := config(t, name, bus).Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// conforms holds the driver on buses made afresh to the suite that all pass.
func conforms(t *testing.T, name string, bus func() i2c.Bus) {
	suite(t, func(t *testing.T) device.Device { return open(t, name, bus()) })
}

// suite is conforms for a device that its defaults do not describe.
func suite(t *testing.T, open func(t *testing.T) device.Device) {
	t.Run("conformance", func(t *testing.T) { devicetest.Options{FakeClock: true}.Run(t, open) })
}

// wants holds one sample to its values, as far as they are told: nine digits.
func wants(t *testing.T, dev device.Device, want map[string]float64) {
	t.Helper()
	readings, err := dev.(device.Sensor).Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(readings) != len(want) {
		t.Errorf("got %d readings, want %d", len(readings), len(want))
	}
	for _, r := range readings {
		n, ok := want[r.Point]
		if !ok || r.Quality != device.Good || r.Value.Number() != device.Tidy(n) {
			t.Errorf("%s = %v (%s %s), want %v", r.Point, r.Value, r.Quality, r.Why, n)
		}
	}
}

// fails holds Sample to a fault of this kind.
func fails(t *testing.T, dev device.Device, kind device.FaultKind) {
	t.Helper()
	_, err := dev.(device.Sensor).Sample(t.Context())
	var fault *device.Fault
	if !errors.As(err, &fault) || fault.Kind != kind {
		t.Errorf("got %v, want a fault %s", err, kind)
	}
}

// recovers breaks the bus of an open device, holds it to Offline and to the same
// values once the bus is mended.
func recovers(t *testing.T, dev device.Device, bus *registers, want map[string]float64) {
	t.Helper()
	for _, errno := range []syscall.Errno{syscall.ENXIO, syscall.EIO, syscall.ETIMEDOUT, syscall.ENODEV} {
		bus.breaks(fmt.Errorf("sysfs-i2c: %v", errno)) // as periph tells it
		fails(t, dev, device.Offline)
		bus.breaks(nil)
		wants(t, dev, want)
	}
}

// decodes feeds the driver random registers: no panic, and a number that is
// reported as good is finite and within the point's range.
func decodes(f *testing.F, name string, make func(seed []byte) i2c.Bus) {
	decodesAll(f, fuzzed{name, make})
}

// fuzzed is a driver and the bus of a chip with random registers.
type fuzzed struct {
	name string
	make func(seed []byte) i2c.Bus
}

// decodesAll is decodes for several small drivers, which all get each seed.
func decodesAll(f *testing.F, chips ...fuzzed) {
	f.Add([]byte{})
	f.Add([]byte{0xFF, 0x80, 0x00, 0x7F})
	f.Fuzz(func(t *testing.T, seed []byte) {
		synctest.Test(t, func(t *testing.T) { // the chips' waits take no time
			for _, c := range chips {
				decodesOne(t, config(t, c.name, c.make(seed)))
			}
		})
	})
}

func decodesOne(t *testing.T, c driver.Config) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // periph's BME280 asks a busy chip for ever
	defer cancel()
	dev, err := driver.Open(ctx, c)
	if err != nil {
		return
	}
	defer dev.Close()
	readings, err := dev.(device.Sensor).Sample(ctx)
	if err != nil {
		return
	}
	for _, r := range readings {
		p, ok := dev.Describe().Point(r.Point)
		if !ok {
			t.Errorf("%s is not described", r.Point)
		}
		if r.Quality == device.Good && r.Value.Type() == device.TypeNumber && (!r.Value.Finite() || p.Range != (device.Range{}) && !p.Range.Contains(r.Value.Number())) {
			t.Errorf("%s = %v is reported as good", r.Point, r.Value)
		}
	}
}

// measured opens the driver on the bus and checks its values, the refusal of everything while the
// bus is broken, and the same values afterwards. Then, on new buses, it runs the suite that all
// drivers pass. The chip's waits take no time.
func measured(t *testing.T, name string, bus func() *registers, want map[string]float64) {
	t.Run("recovers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := bus()
			recovers(t, open(t, name, b), b, want)
		})
	})
	conforms(t, name, func() i2c.Bus { return bus() })
}

// refused holds Open to a fault of this kind that has these words.
func refused(t *testing.T, c driver.Config, kind device.FaultKind, says string) {
	t.Helper()
	_, err := driver.Open(t.Context(), c)
	if fault := device.AsFault(errors.Join(err)); err == nil || fault.Kind != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want a fault %s with %q", err, kind, says)
	}
}

// lacks holds one sample to a fault of each point for which words are given, and
// to its number for each other.
func lacks(t *testing.T, dev device.Device, why map[string]string) {
	t.Helper()
	readings, err := dev.(device.Sensor).Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readings {
		says, bad := why[r.Point]
		if bad != (r.Quality == device.Bad) || !strings.Contains(r.Why, says) {
			t.Errorf("%s = %v (%s %q), want a fault: %v, with %q", r.Point, r.Value, r.Quality, r.Why, bad, says)
		}
	}
}
