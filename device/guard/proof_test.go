package guard

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestStopProof: a stop is answered with what was written and what was read back since then. An output
// that cannot be read back is not waited for, and one that does not answer only briefly.
func TestStopProof(t *testing.T) {
	for name, tt := range map[string]struct {
		bend     func(m *mirror)
		measured device.Value
		took     time.Duration
	}{
		"read back":      {func(*mirror) {}, off, 0},
		"never read":     {func(m *mirror) { m.blind = true }, device.Value{}, 0},
		"late this time": {func(m *mirror) { m.late = 1 }, device.Value{}, proofTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newMirrors(t)
				defer r.end()
				if name == "never read" {
					r.pump.set(func() { tt.bend(r.pump) })
					r.update(func(Time) error { r.m.outputs[2].blind = true; return nil }) // as of a start without it
				}
				r.move(t, pump, on, time.Minute)
				time.Sleep(3*time.Second + time.Millisecond)
				s := r.is(pump)
				if s.Set != on || s.SetAge < 3*time.Second || name != "never read" && (s.Measured != on || s.MeasuredAge > time.Second) {
					t.Errorf("before: %+v", s)
				}
				r.pump.set(func() { tt.bend(r.pump) })
				began := time.Now()
				if err := r.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
				since(t, began, tt.took)
				s = r.is(pump)
				if s.Goal != off || s.Set != off || s.SetAge > tt.took || s.Measured != tt.measured || s.MeasuredAge != 0 {
					t.Errorf("after: %+v", s)
				}
			})
		})
	}
}

// TestStopProofAtStart: a stop waits for the first read-back of an output, too.
func TestStopProofAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMirrors(t)
		defer r.end()
		r.update(func(Time) error { r.m.outputs[2].measured = device.Value{}; return nil }) // as of a start
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := r.is(pump); s.Measured != off {
			t.Errorf("%+v", s)
		}
	})
}

// TestMeasuredElsewhere: what an output reads is told beside what was written, also where they differ.
func TestMeasuredElsewhere(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", heater, on, time.Minute)
	settle(m, now)
	m.Read(now+time.Second, 0, off, nil)
	if s := m.Status(now+2*time.Second, 0); s.Set != on || s.SetAge != 2*time.Second || s.Measured != off || s.MeasuredAge != time.Second || s.Fault == "" {
		t.Errorf("%+v", s)
	}
}

// TestMeasuredBefore: what was read back before a write that may have moved the output proves nothing.
func TestMeasuredBefore(t *testing.T) {
	m, now := rested()
	m.Read(now, 0, off, nil)
	mustMove(t, m, now, "ann", heater, on, time.Minute)
	m.Driving(0)
	m.Applied(now, 0, on, errors.New("no answer"))
	if s := m.Status(now+time.Second, 0); !s.Measured.IsZero() {
		t.Errorf("%+v", s)
	}
}
