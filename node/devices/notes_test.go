package devices

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/node/history"
)

// TestHolderOfReading: the history has each value with the holder that it had then, although the lease
// changes before the reading is recorded.
func TestHolderOfReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, twoParts)
		defer r.end()
		const lamp = "lamp/on"
		past := history.New(map[string]device.Point{lamp: {Kind: device.KindSwitch}})
		begun := time.Now()
		var late []device.Reading
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.Outputs.Watch(ctx, func(now device.Reading) {
				if now.Point == lamp {
					late = append(late, now)
				}
			})
		}()
		synctest.Wait()
		if _, err := r.Outputs.Move(t.Context(), "ann", lamp, device.Bool(true), time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := r.Outputs.TakeOver(t.Context(), "own", lamp); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // the lease is over
		cancel()
		<-ended
		for _, reading := range late {
			past.Record(reading)
		}
		var holders []string
		var causes []bool
		past.Changes(lamp, begun, time.Now(), func(c device.Change) bool {
			holders, causes = append(holders, c.Holder), append(causes, c.Cause != "")
			return true
		})
		if !slices.Equal(holders, []string{"", "ann", "own", ""}) || !slices.Equal(causes, []bool{true, false, false, true}) {
			t.Errorf("holders %q, causes %v", holders, causes)
		}
	})
}
