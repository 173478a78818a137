package proc

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestWatchHolder: a Watch emits once for each change of a value, and of its holder alone.
func TestWatchHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		if err := r.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		var told []string
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.Watch(ctx, func(now device.Reading) { told = append(told, now.Value.String()+" "+r.Status()[0].Holder) })
		}()
		synctest.Wait()
		want := func(when string, all ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(told, all) {
				t.Errorf("%s: %q, want %q", when, told, all)
			}
			told = nil
		}
		want("at first", "off ")
		move := func() {
			if _, err := r.Move(t.Context(), "ann", relayName, device.Bool(true), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		move()
		want("a move", "on ann")
		move()
		want("a renewal")
		if err := r.TakeOver(t.Context(), "own", relayName); err != nil {
			t.Fatal(err)
		}
		want("taken over", "on own")
		time.Sleep(time.Minute)
		want("over", "off ")
		cancel()
		<-ended
	})
}
