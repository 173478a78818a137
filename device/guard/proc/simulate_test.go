package proc

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// Simulate keeps what the box was told, and refuses a point that it lacks.
func (b *box) Simulate(_ context.Context, r device.Reading) error {
	if _, ok := b.Describe().Point(r.Point); r.Point != "" && !ok {
		return device.Faultf(device.Invalid, "there is no point %q", r.Point)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, r)
	return nil
}

// TestSimulateThroughTheConnection: a device of the guard's process is told each kind of reading as it was said, and
// its refusal comes back.
func TestSimulateThroughTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		dev := r.Device("box", r.box.Describe()).(Simulated)
		all := []device.Reading{
			{Point: "t", Value: device.Number(-3.5), Quality: device.Good},
			{Point: "button", Value: device.Text("long é"), Quality: device.Good},
			{Point: "relay", Quality: device.Bad, Why: "wire cut"},
			{Point: "relay", Quality: device.Good}, // its fault ends
			{Quality: device.Bad, Why: "unplugged"},
		}
		for i := range all {
			all[i].At = time.Now()
			if err := dev.Simulate(t.Context(), all[i]); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.box.told) != len(all) {
			t.Fatalf("told %+v", r.box.told)
		}
		for i, got := range r.box.told {
			want := all[i]
			if !got.At.Equal(want.At) {
				t.Errorf("at %v, want %v", got.At, want.At)
			}
			got.At = want.At
			if got.Point != want.Point || got.Value != want.Value || got.Quality != want.Quality || got.Why != want.Why {
				t.Errorf("told %+v\nwant %+v", got, want)
			}
		}
		wantFault(t, dev.Simulate(t.Context(), device.Reading{Point: "u", Quality: device.Good}), device.Invalid, "no point")
		other := r.Device("elsewhere", r.box.Describe()).(Simulated)
		wantFault(t, other.Simulate(t.Context(), all[0]), device.Invalid, "is not simulated")
	})
}
