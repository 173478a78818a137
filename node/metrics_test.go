package node

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
)

// TestSamples: a sample has the time of the last good reading, also while its point cannot be read, and
// what is counted is told to nobody who may not read all.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := newHub()
		n := New(Parts{Hub: hub})
		d := device.Description{Model: "x", Points: []device.Point{{Name: "b", Kind: device.KindMeasurement, Unit: "Cel"}}}
		err := n.Replace(Site{Devices: []Device{{Name: "a", Description: d, Busy: device.NewMutex()}}})
		if err != nil {
			t.Fatal(err)
		}
		sample := func() Sample {
			all, err := n.Samples(t.Context(), LocalOwner)
			if err != nil || len(all) != 1 || all[0].Address != "a/b" {
				t.Fatalf("%+v, %v", all, err)
			}
			return all[0]
		}
		if s := sample(); !s.Good.IsZero() || s.Quality != device.Stale || !s.Value.IsZero() {
			t.Errorf("before the first: %+v", s)
		}
		read := time.Now()
		hub.put(good("a/b", device.Number(21)), time.Second)
		time.Sleep(time.Minute)
		if s := sample(); !s.Good.Equal(read) || s.Quality != device.Stale {
			t.Errorf("stale: %+v", s)
		}
		hub.put(device.Reading{Point: "a/b", Quality: device.Bad, At: time.Now()}, time.Second)
		if s := sample(); !s.Good.Equal(read) || s.Quality != device.Bad || !s.Value.IsZero() {
			t.Errorf("a fault: %+v", s)
		}
		hub.put(good("a/b", device.Number(22)), 0)
		if s := sample(); !s.Good.IsZero() || s.Quality != device.Good {
			t.Errorf("not read at an interval: %+v", s)
		}
		if c, err := n.Counts(LocalOwner); err != nil || c.Calls[agents.OpRead] != 4 {
			t.Errorf("%+v, %v", c, err)
		}
		if c, err := n.Counts(local(principal.Token, "", false)); err == nil || c != (Counts{}) {
			t.Errorf("nobody: %+v, %v", c, err)
		}
	})
}
