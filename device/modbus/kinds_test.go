package modbus

import (
	"bytes"
	"encoding/binary"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// TestSafeWithoutWatchdog: a watchdog that cannot be written keeps no output from safe.
func TestSafeWithoutWatchdog(t *testing.T) {
	f := pumpFake()
	c := pump(configOf(board.New()))
	c.Address = f.serveTCP(t)
	c.Watchdog = &watchdogConfig{Place: Place{Holding: ptr(uint16(7))}, Value: 9}
	d := opened(t, c)
	if err := d.Apply(t.Context(), "pump", device.Bool(true)); err != nil {
		t.Fatal(err)
	}
	f.set(func() {
		f.alter = func(m, out []byte) []byte {
			if m[0] == writeHolding && m[2] == 7 {
				return []byte{m[0] | isException, 4}
			}
			return out
		}
	})
	d.mu.Lock()
	d.fed = time.Time{}
	d.mu.Unlock()
	if _, err := d.Sample(t.Context()); err == nil {
		t.Error("the watchdog's fault is not told")
	}
	if err := d.Apply(t.Context(), "pump", device.Bool(false)); err != nil {
		t.Error(err)
	}
}

// TestKinds reads and writes each kind of place.
func TestKinds(t *testing.T) {
	f := newFake()
	for address, v := range []uint16{0x8000, 250, 0xFFFE, 2, 0b100, 1, 0, 0, 7} {
		f.holdings[uint16(address)] = v
	}
	c := configOf(board.New())
	c.Address, c.Gap = f.serveTCP(t), 8
	at := func(a uint16) Place { return Place{Holding: &a} }
	wide := driver.Quantity{Range: device.Range{Min: -1e6, Max: 1e6}}
	c.Inputs = map[string]inputConfig{
		"unknown": {Place: at(0), Unknown: ptr(uint64(0x8000)), InputPoint: driver.InputPoint{Quantity: wide}},
		"scaled":  {Place: at(1), Exponent: ptr(at(2)), InputPoint: driver.InputPoint{Quantity: wide}},
		"unset":   {Place: at(1), Exponent: ptr(at(0)), InputPoint: driver.InputPoint{Quantity: wide}},
		"phase":   {Place: at(3), InputPoint: driver.InputPoint{Values: []string{"off", "on", "fault"}}},
		"odd":     {Place: at(8), InputPoint: driver.InputPoint{Values: []string{"off", "on"}}},
		"bit":     {Place: at(4), Bit: ptr(2), InputPoint: driver.InputPoint{State: true}},
		"flag":    {Place: at(5), InputPoint: driver.InputPoint{State: true}},
		"coil":    {Place: Place{Coil: ptr(uint16(1))}},
		"missing": {Place: Place{Input: ptr(uint16(500))}, InputPoint: driver.InputPoint{Quantity: wide}},
	}
	c.Outputs = map[string]outputConfig{
		"wide": {Place: at(6), Format: Format{"float32", "CDAB"}, OutputPoint: driver.OutputPoint{
			Quantity: driver.Quantity{Range: device.Range{Min: 0, Max: 100}}, Safe: device.Number(0)}},
		"run": {Place: at(20), On: ptr(uint16(0x0400)), Off: ptr(uint16(0x0200)), ReadBack: ptr(at(21)), Multiple: true,
			OutputPoint: driver.OutputPoint{Safe: device.Bool(false)}},
	}
	f.coils[1], f.holdings[20], f.holdings[21] = true, 0x0200, 0x0200
	f.alter = func(m, out []byte) []byte {
		if m[0] == writeHoldings && m[2] == 20 {
			f.holdings[21] = f.holdings[20] // the device says what it does
		}
		if m[0] == writeHolding {
			return []byte{m[0] | isException, 1}
		}
		return out
	}
	d := opened(t, c)
	got := readings(t, d)
	for name, want := range map[string]device.Value{
		"scaled": device.Number(2.5), "phase": device.Text("fault"), "bit": device.Bool(true), "flag": device.Bool(true),
		"coil": device.Bool(true), "run": device.Bool(false), "wide": device.Number(0),
		"unknown": {}, "unset": {}, "odd": {}, "missing": {},
	} {
		if r := got[name]; r.Value != want || (r.Quality == device.Good) == want.IsZero() {
			t.Errorf("%s: %v, want %v", name, r, want)
		}
	}
	for name, v := range map[string]device.Value{"wide": device.Number(12.345), "run": device.Bool(true)} {
		if err := d.Apply(t.Context(), name, v); err != nil {
			t.Error(err)
		}
		if got := readings(t, d)[name]; got.Value != v {
			t.Errorf("%s: %v, want %v", name, got, v)
		}
	}
	if f.holding(21) != 0x0400 {
		t.Errorf("%#x", f.holding(21))
	}
}

// TestGateway: a unit that is missing behind a gateway does not delay the others, and a host that is gone is a
// fault soon.
func TestGateway(t *testing.T) {
	f := pumpFake()
	c := pump(configOf(board.New()))
	c.Address, c.Outputs, c.Timeout = f.serveTCP(t), nil, 100*time.Millisecond
	d := opened(t, c)
	f.set(func() { f.alter = func(m, _ []byte) []byte { return []byte{m[0] | isException, 11} } })
	if _, err := d.Sample(t.Context()); device.AsFault(err).Kind != device.Offline {
		t.Errorf("%v", err)
	}
	asked, _ := f.count()
	if _, err := d.Sample(t.Context()); device.AsFault(err).Kind != device.Offline {
		t.Errorf("%v", err)
	}
	if now, _ := f.count(); now != asked {
		t.Error("a missing unit is asked again at once")
	}
	gone := pump(configOf(board.New()))
	gone.Address = "127.0.0.1:1" // nobody listens
	begun := time.Now()
	if _, err := driver.Open(t.Context(), gone); device.AsFault(err).Kind != device.Offline || time.Since(begun) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}

// TestChatter: a line on which somebody talks all the time is closed, and tried again later.
func TestChatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pumpFake()
		w := &wires{units: []*fake{f}}
		c := pump(configOf(w.board(t)))
		c.Port, c.Outputs = "/dev/ttyUSB0", nil
		d := opened(t, c)
		f.set(func() { f.wrap = func(frame []byte) []byte { return bytes.Repeat(frame, 4000) } })
		if all, err := d.Sample(t.Context()); device.AsFault(err).Kind != device.Offline {
			t.Fatalf("%v, %v", all, err)
		}
		f.set(func() { f.wrap = nil })
		asked, _ := f.count()
		if _, err := d.Sample(t.Context()); err == nil {
			t.Error("it is asked again at once")
		}
		if now, _ := f.count(); now != asked {
			t.Error("it is asked again at once")
		}
		time.Sleep(5 * time.Second)
		if got := readings(t, d); got["flow"].Value != device.Number(12.3) {
			t.Errorf("%v", got)
		}
	})
}

// TestTwoMasters: the answer to another master's request is never that to ours, whenever ours comes.
func TestTwoMasters(t *testing.T) {
	frame := func(b ...byte) []byte { return binary.LittleEndian.AppendUint16(b, checksum(b)) }
	good := 0
	for wait := time.Duration(0); wait < 400*time.Millisecond; wait += 3 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			f := pumpFake()
			f.delay = func() time.Duration { return 30 * time.Millisecond }
			w := &wires{units: []*fake{f}, extra: make(chan []byte, 10)}
			c := pump(configOf(w.board(t)))
			c.Port, c.Outputs = "/dev/ttyUSB0", nil
			d := opened(t, c)
			var saying sync.WaitGroup
			saying.Go(func() {
				w.extra <- frame(1, readInputs, 0, 99, 0, 1)
				time.Sleep(60 * time.Millisecond)
				w.extra <- frame(1, readInputs, 2, 1, 0xC2) // 450, which would be 45 l/min
			})
			defer saying.Wait()
			time.Sleep(wait)
			all, err := d.Sample(t.Context())
			if err != nil {
				return
			}
			if good++; all[0].Value != device.Number(12.3) {
				t.Errorf("after %v it reads %v", wait, all[0])
			}
		})
	}
	if good < 100 {
		t.Errorf("only %d of 134 were read", good)
	}
}
