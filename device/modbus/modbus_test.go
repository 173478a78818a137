package modbus

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/devicetest"
	"agentsite/device/driver"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestContract holds the driver to the contract of devices, over TCP and on a serial line.
func TestContract(t *testing.T) {
	var f *fake
	level := func(point string) device.Value {
		f.mu.Lock()
		defer f.mu.Unlock()
		if point == "pump" {
			return device.Bool(f.coils[3])
		}
		return device.Number(float64(f.holdings[100]) / 10)
	}
	t.Run("tcp", func(t *testing.T) {
		devicetest.Options{Level: level}.Run(t, func(t *testing.T) device.Device {
			f = pumpFake()
			c := pump(configOf(board.New()))
			c.Address = f.serveTCP(t)
			return opened(t, c)
		})
	})
	t.Run("rtu", func(t *testing.T) {
		devicetest.Options{Level: level, FakeClock: true}.Run(t, func(t *testing.T) device.Device {
			f = pumpFake()
			w := &wires{units: []*fake{f}}
			c := pump(configOf(w.board(t)))
			c.Port = "/dev/ttyUSB0"
			return opened(t, c)
		})
	})
}

// TestApply moves outputs, and reads them back as they were set.
func TestApply(t *testing.T) {
	f := pumpFake()
	c := pump(configOf(board.New()))
	c.Address = f.serveTCP(t)
	d := opened(t, c)
	if err := d.Apply(t.Context(), "speed", device.Number(33.33)); err != nil {
		t.Fatal(err)
	}
	got := readings(t, d)
	if got["speed"].Value != device.Number(33.33) || f.holding(100) != 333 || got["flow"].Value != device.Number(12.3) {
		t.Errorf("%v, and the register has %d", got, f.holding(100))
	}
	f.set(func() { f.holdings[100] = 120 }) // somebody turns the knob
	if got := readings(t, d); got["speed"].Value != device.Number(12) {
		t.Errorf("another master set 12 Hz: %v", got["speed"])
	}
	f.set(func() { f.holdings[100] = 9999 })
	if got := readings(t, d); got["speed"].Quality != device.Bad || got["flow"].Quality != device.Good {
		t.Errorf("a value outside the range is believed: %v", got)
	}
	f.set(func() {
		f.alter = func(m, out []byte) []byte { // it confirms, and does nothing
			if m[0] == writeCoil {
				f.coils[3] = false
			}
			return out
		}
	})
	if err := d.Apply(t.Context(), "pump", device.Bool(true)); device.AsFault(err).Kind != device.Offline {
		t.Errorf("a write without effect is confirmed: %v", err)
	}
	f.set(func() { f.alter = func(m, _ []byte) []byte { return []byte{m[0] | isException, 4} } })
	if err := d.Apply(t.Context(), "pump", device.Bool(true)); device.AsFault(err).Kind != device.Offline {
		t.Errorf("a refused write is confirmed: %v", err)
	}
	f.set(func() { f.alter = nil })
}

// TestNothingIsWrittenLate freezes the peer in a write: when it comes back, no later command reaches it.
func TestNothingIsWrittenLate(t *testing.T) {
	f := pumpFake()
	c := pump(configOf(board.New()))
	c.Address, c.Timeout = f.serveTCP(t), 100*time.Millisecond
	d := opened(t, c)
	f.set(func() { f.alter = func(_, _ []byte) []byte { return nil } })
	if err := d.Apply(t.Context(), "pump", device.Bool(true)); device.AsFault(err).Kind != device.Offline {
		t.Errorf("nobody confirmed it: %v", err)
	}
	_, writes := f.count()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // less than an answer may take
	defer cancel()
	if err := d.Apply(ctx, "pump", device.Bool(true)); err == nil {
		t.Error("it was confirmed")
	}
	if _, now := f.count(); now != writes {
		t.Error("a write began whose answer could not come in time")
	}
	f.set(func() { f.alter = nil })
	for d.Apply(t.Context(), "pump", device.Bool(false)) != nil { // the connection has a pause
		time.Sleep(10 * time.Millisecond)
	}
	f.set(func() {
		if f.coils[3] {
			t.Error("the pump is on")
		}
	})
}

// TestStrangeAnswers: no answer that is wrong in any way becomes a value.
func TestStrangeAnswers(t *testing.T) {
	for name, alter := range map[string]func(m, out []byte) []byte{
		"another function": func(m, out []byte) []byte { return append([]byte{readHoldings}, out[1:]...) },
		"shorter":          func(m, out []byte) []byte { return out[:len(out)-1] },
		"longer":           func(m, out []byte) []byte { return append(slices.Clone(out), 0, 0) },
		"a wrong count":    func(m, out []byte) []byte { return append([]byte{out[0], out[1] + 2}, out[2:]...) },
		"empty":            func(m, out []byte) []byte { return []byte{} },
		"a long exception": func(m, out []byte) []byte { return []byte{m[0] | isException, 2, 2} },
	} {
		t.Run(name, func(t *testing.T) {
			f := pumpFake()
			c := pump(configOf(board.New()))
			c.Outputs = nil
			c.Address, c.Timeout = f.serveTCP(t), 100*time.Millisecond
			d := opened(t, c)
			f.set(func() { f.alter = alter })
			if all, err := d.Sample(t.Context()); device.AsFault(err).Kind != device.Offline {
				t.Errorf("%v, %v", all, err)
			}
		})
		t.Run(name+" on a serial line", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := pumpFake()
				w := &wires{units: []*fake{f}}
				c := pump(configOf(w.board(t)))
				c.Port, c.Outputs = "/dev/ttyUSB0", nil
				d := opened(t, c)
				f.set(func() { f.alter = alter })
				if all, err := d.Sample(t.Context()); device.AsFault(err).Kind != device.Offline {
					t.Errorf("%v, %v", all, err)
				}
			})
		})
	}
}

// TestDamagedFrames: a damaged answer is asked for again, and never believed.
func TestDamagedFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pumpFake()
		w := &wires{units: []*fake{f}}
		c := pump(configOf(w.board(t)))
		c.Port, c.Outputs = "/dev/ttyUSB0", nil
		d := opened(t, c)
		damaged := func(times int) {
			f.set(func() {
				f.wrap = func(frame []byte) []byte {
					if times--; times >= 0 {
						frame[4] ^= 0x10
					}
					return frame
				}
			})
		}
		damaged(1)
		if got := readings(t, d); got["flow"].Value != device.Number(12.3) {
			t.Errorf("one damaged answer: %v", got)
		}
		damaged(2)
		if all, err := d.Sample(t.Context()); err == nil {
			t.Errorf("two damaged answers: %v", all)
		}
		f.set(func() { f.wrap = func(frame []byte) []byte { return append([]byte{0x00}, append(frame, 0xFF)...) } })
		if got := readings(t, d); got["flow"].Value != device.Number(12.3) {
			t.Errorf("glitches around an answer: %v", got)
		}
		// another master's frame, and what seems to be the answer
		f.set(func() {
			f.wrap = func(frame []byte) []byte {
				return append([]byte{1, 4, 0, 99, 0, 1, 0x12, 0x34}, frame...)
			}
		})
		if all, err := d.Sample(t.Context()); err == nil {
			t.Errorf("two masters: %v", all)
		}
		f.set(func() { f.wrap = nil })
	})
}

// TestLateAnswer: an answer that comes after its time is never that to another request, however long the unit
// takes, and whenever it begins to be slow, also where it knows no function 8.
func TestLateAnswer(t *testing.T) {
	places := map[string]uint16{"a": 0, "b": 50, "c": 100}
	for slow := 100 * time.Millisecond; slow < 6*time.Second; slow += 70 * time.Millisecond {
		for from := range 4 {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				if from%2 == 1 {
					f.alter = func(m, out []byte) []byte {
						if m[0] == diagnostics {
							return nil
						}
						return out
					}
				}
				asked := 0
				f.delay = func() time.Duration {
					if asked++; asked < from+4 || asked > from+10 {
						return 0
					}
					return slow
				}
				w := &wires{units: []*fake{f}}
				c := configOf(w.board(t))
				c.Port, c.Inputs = "/dev/ttyUSB0", make(map[string]inputConfig)
				for name, address := range places {
					f.inputs[address] = address
					c.Inputs[name] = inputConfig{Place: Place{Input: ptr(address)},
						InputPoint: driver.InputPoint{Quantity: driver.Quantity{Range: device.Range{Min: 0, Max: 1000}}}}
				}
				d := opened(t, c)
				var err error
				for i := range 80 {
					var all []device.Reading
					all, err = d.Sample(t.Context())
					for _, r := range all {
						if r.Quality == device.Good && r.Value != device.Number(float64(places[r.Point])) {
							t.Fatalf("with %v from the %dth request %s reads %v", slow, from+4, r.Point, r.Value)
						}
					}
					time.Sleep(time.Second)
					if i > 60 {
						time.Sleep(90 * time.Second)
					}
				}
				if err != nil {
					t.Errorf("with %v it does not come back: %v", slow, err)
				}
			})
		}
	}
}

// TestSilentUnit: a silent unit is asked ever less often, does not delay another beyond its own time, and is
// found again.
func TestSilentUnit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alive, dead := pumpFake(), pumpFake()
		dead.id = 2
		w := &wires{units: []*fake{alive, dead}}
		b := w.board(t)
		d := Drivers(b)[0]
		open := func(id int) *unitDevice {
			c := pump(d.Config().(*config))
			c.Port, c.UnitID, c.Outputs = "/dev/ttyUSB0", id, nil
			return opened(t, c)
		}
		first, second := open(1), open(2)
		dead.set(func() { dead.alter = func(_, _ []byte) []byte { return nil } })
		begun, _ := dead.count()
		for range 300 {
			if _, err := second.Sample(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("it is silent: %v", err)
			}
			start := time.Now()
			if got := readings(t, first); got["flow"].Value != device.Number(12.3) || time.Since(start) > 600*time.Millisecond {
				t.Fatalf("%v after %v", got, time.Since(start))
			}
			time.Sleep(time.Second)
		}
		if asked, _ := dead.count(); asked-begun < 5 || asked-begun > 14 {
			t.Errorf("in five minutes it was asked %d times", asked-begun)
		}
		dead.set(func() { dead.alter = nil })
		time.Sleep(90 * time.Second)
		if got := readings(t, second); got["flow"].Value != device.Number(12.3) {
			t.Errorf("it is back: %v", got)
		}
	})
}

// TestSilentOutputs: the outputs of a unit follow in time, however many other units with outputs are silent.
func TestSilentOutputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alive := pumpFake()
		w := &wires{units: []*fake{alive}}
		for id := 2; id <= 9; id++ {
			u := pumpFake()
			u.id = byte(id)
			w.units = append(w.units, u)
		}
		d := Drivers(w.board(t))[0]
		all := make([]*unitDevice, len(w.units))
		for i, u := range w.units {
			c := pump(d.Config().(*config))
			c.Port, c.UnitID = "/dev/ttyUSB0", int(u.id)
			all[i] = opened(t, c)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var guarding sync.WaitGroup
		for i, u := range w.units[1:] {
			u.set(func() { u.alter = func(_, _ []byte) []byte { return nil } })
			guarding.Go(func() {
				for ctx.Err() == nil { // as the guard tries again
					try, end := context.WithTimeout(ctx, 2*time.Second)
					if err := all[i+1].Apply(try, "pump", device.Bool(false)); err == nil {
						t.Error("a silent unit has confirmed")
					}
					end()
					device.Sleep(ctx, time.Second)
				}
			})
		}
		for i := range 60 {
			time.Sleep(time.Second)
			try, end := context.WithTimeout(ctx, 2*time.Second)
			if err := all[0].Apply(try, "pump", device.Bool(i%2 == 0)); err != nil {
				t.Errorf("after %d s: %v", i, err)
			}
			end()
		}
		cancel()
		guarding.Wait()
	})
}

// TestUrgent: a write overtakes the reads that wait for the line.
func TestUrgent(t *testing.T) {
	var q queue
	if err := q.lock(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	order := make(chan string, 3)
	wait := func(name string, urgent bool, before int) {
		go func() {
			q.lock(context.Background(), urgent)
			order <- name
			q.unlock()
		}()
		for waiting := 0; waiting < before; {
			q.mu.Lock()
			waiting = len(q.waiting)
			q.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	}
	wait("read", false, 1)
	wait("another read", false, 2)
	wait("write", true, 3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := q.lock(ctx, true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	q.unlock()
	for _, want := range []string{"write", "read", "another read"} {
		if got := <-order; got != want {
			t.Errorf("%s comes instead of %s", got, want)
		}
	}
}

// TestLostLink: every point has a fault, and comes back.
func TestLostLink(t *testing.T) {
	f := pumpFake()
	c := pump(configOf(board.New()))
	c.Address = f.serveTCP(t)
	d := opened(t, c)
	f.cut() // the device was restarted: the next request finds it again
	if got := readings(t, d); got["flow"].Value != device.Number(12.3) {
		t.Errorf("%v", got)
	}
	if err := d.Apply(t.Context(), "pump", device.Bool(true)); err != nil {
		t.Error(err)
	}
}

// TestFlood: a peer that sends without being asked loses its connection.
func TestFlood(t *testing.T) {
	f := pumpFake()
	c := pump(configOf(board.New()))
	c.Address, c.Outputs = f.serveTCP(t), nil
	d := opened(t, c)
	f.set(func() {
		f.wrap = func(frame []byte) []byte {
			old := slices.Clone(frame)
			old[0] ^= 0x80
			return slices.Concat(slices.Repeat(old, 1000), frame)
		}
	})
	if all, err := d.Sample(t.Context()); device.AsFault(err).Kind != device.Offline {
		t.Errorf("%v, %v", all, err)
	}
	asked, _ := f.count()
	if _, err := d.Sample(t.Context()); err == nil {
		t.Error("it is asked again at once")
	}
	if now, _ := f.count(); now != asked {
		t.Error("it is asked again at once")
	}
}

// TestID refuses another device at the address.
func TestID(t *testing.T) {
	f := pumpFake()
	f.holdings[0] = 42
	c := pump(configOf(board.New()))
	c.Address = f.serveTCP(t)
	c.ID = []idConfig{{Place: Place{Holding: ptr(uint16(0))}, Is: []uint64{42}}}
	d := opened(t, c)
	f.set(func() { f.holdings[0] = 43 })
	f.cut()
	readings(t, d) // a new connection alone is no reason
	c2 := pump(configOf(board.New()))
	c2.Address, c2.ID = c.Address, c.ID
	if _, err := driver.Open(t.Context(), c2); device.AsFault(err).Kind != device.Offline {
		t.Errorf("another device: %v", err)
	}
}

// TestWatchdog is fed while an output is away from safe, by the guard's reads.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pumpFake()
		w := &wires{units: []*fake{f}}
		c := pump(configOf(w.board(t)))
		c.Port = "/dev/ttyUSB0"
		c.Watchdog = &watchdogConfig{Place: Place{Holding: ptr(uint16(7))}, Value: 9, Every: 2 * time.Second}
		d := opened(t, c)
		fed := 0
		f.set(func() {
			f.alter = func(m, out []byte) []byte {
				if m[0] == writeHolding && m[2] == 7 {
					fed++
				}
				return out
			}
		})
		count := func() (n int) {
			f.set(func() { n = fed })
			return n
		}
		readings(t, d)
		if count() != 0 {
			t.Error("all is safe")
		}
		if err := d.Apply(t.Context(), "pump", device.Bool(true)); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			time.Sleep(time.Second)
			readings(t, d)
		}
		if n := count(); n < 5 || n > 7 {
			t.Errorf("in ten seconds it was fed %d times", n)
		}
		if err := d.Apply(t.Context(), "pump", device.Bool(false)); err != nil {
			t.Fatal(err)
		}
		before := count()
		time.Sleep(5 * time.Second)
		readings(t, d)
		if count() != before {
			t.Error("all is safe again")
		}
	})
}
