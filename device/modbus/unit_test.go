package modbus

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board"
)

// TestSampleBeforeApply: what was read before an output was moved is not taken for its value after that.
func TestSampleBeforeApply(t *testing.T) {
	f := pumpFake()
	c := pump(configOf(board.New()))
	c.Address, c.Inputs = f.serveTCP(t), nil
	d := opened(t, c)
	begun, answers := d.settings(), make([]answer, len(d.groups))
	for i, g := range d.groups {
		values, err := d.do(t.Context(), g.request(), false)
		answers[i] = answer{values, time.Now(), err}
	}
	read := func() device.Reading {
		for _, p := range d.points {
			if p.Name == "pump" {
				return d.reading(p, answers, begun["pump"])
			}
		}
		return device.Reading{}
	}
	if r := read(); r.Value != device.Bool(false) {
		t.Error(r)
	}
	if err := d.Apply(t.Context(), "pump", device.Bool(true)); err != nil {
		t.Fatal(err)
	}
	if r := read(); r.Value != device.Bool(true) || r.Quality != device.Good {
		t.Errorf("after a confirmed Apply it reads %v", r)
	}
	f.set(func() { f.deaf = true })
	if err := d.Apply(t.Context(), "pump", device.Bool(false)); err == nil {
		t.Error("it is confirmed")
	}
	if r := read(); r.Quality != device.Bad {
		t.Errorf("after one that was not confirmed it reads %v", r)
	}
	f.set(func() { f.deaf = false })
}

// TestOtherDevice: a unit that was silent may be another one when it answers again.
func TestOtherDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pumpFake()
		f.holdings[0] = 42
		w := &wires{units: []*fake{f}}
		c := pump(configOf(w.board(t)))
		c.Port, c.ID = "/dev/ttyUSB0", []idConfig{{Place: Place{Holding: ptr(uint16(0))}, Is: []uint64{42}}}
		d := opened(t, c)
		f.set(func() { f.alter = func(_, _ []byte) []byte { return nil } })
		if _, err := d.Sample(t.Context()); err == nil {
			t.Error("it is silent")
		}
		f.set(func() { f.alter, f.holdings[0] = nil, 43 })
		time.Sleep(time.Minute)
		if all, err := d.Sample(t.Context()); err == nil || device.AsFault(err).Kind != device.Offline {
			t.Errorf("another device is read: %v, %v", all, err)
		}
		if err := d.Apply(t.Context(), "pump", device.Bool(true)); err == nil || device.AsFault(err).Kind != device.Offline {
			t.Errorf("another device is moved: %v", err)
		}
		if _, writes := f.count(); writes != 0 {
			t.Errorf("%d writes", writes)
		}
	})
}
