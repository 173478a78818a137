package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// edges is a device that speaks up.
type edges struct {
	device.Device
	watch func(context.Context, func(device.Reading)) error
}

func (e *edges) Describe() device.Description {
	return device.Description{Points: []device.Point{
		{Name: "button", Kind: device.KindEvent},
		{Name: "output", Kind: device.KindSwitch, Safe: device.Bool(false)},
	}}
}

func (e *edges) Watch(ctx context.Context, emit func(device.Reading)) error {
	return e.watch(ctx, emit)
}

func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		start := time.Now()
		var at []time.Duration
		e := &edges{watch: func(ctx context.Context, emit func(device.Reading)) error {
			at = append(at, time.Since(start))
			emit(good("button", device.Bool(true)))
			if len(at) == 10 {
				time.Sleep(time.Hour) // well for long
			}
			return errors.New("broken")
		}}
		guard := &edges{watch: func(ctx context.Context, emit func(device.Reading)) error {
			emit(good("d/relay", device.Bool(true)))
			<-ctx.Done()
			return ctx.Err()
		}}
		stop := sampling(t, h, []Source{{"d", e, time.Second, nil, 0}}, guard)
		time.Sleep(2 * time.Hour)
		stop()
		var pauses []time.Duration
		for i := range 9 {
			pauses = append(pauses, (at[i+1]-at[i])/time.Second)
		}
		if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}; !slices.Equal(pauses, want) {
			t.Errorf("pauses of %v s, want %v", pauses, want)
		}
		if got := at[10] - at[9]; got != time.Hour+watchRetry {
			t.Errorf("after an hour of good health it paused for %v", got-time.Hour)
		}
		if r, ok := h.Latest("d/relay"); !ok || r.Quality != device.Good || r.Value != device.Bool(true) {
			t.Errorf("%+v", r)
		}
	})
}

// TestBrokenWatch: points that are only watched are faults while the watch is broken. Readings of
// outputs and of points that are not described are dropped.
func TestBrokenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		tries := 0
		e := &edges{watch: func(ctx context.Context, emit func(device.Reading)) error {
			if tries++; tries == 1 {
				emit(good("button", device.Bool(true)))
				emit(good("output", device.Bool(true)))
				emit(good("elsewhere", device.Bool(true)))
				return errors.New("unplugged")
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		stop := sampling(t, h, []Source{{"d", e, time.Second, nil, 0}})
		time.Sleep(watchRetry / 2)
		if r, _ := h.Latest("d/button"); r.Quality != device.Bad || r.Why != "unplugged" || !r.Value.IsZero() {
			t.Errorf("%+v", r)
		}
		for _, p := range []string{"d/output", "d/elsewhere"} {
			if r, ok := h.Latest(p); ok {
				t.Errorf("%s reads %+v", p, r)
			}
		}
		time.Sleep(time.Minute)
		stop()
		if tries != 2 {
			t.Errorf("it was watched %d times", tries)
		}
	})
}

// TestDeafWatch: readings of a driver whose watch does not end with its context are dropped. They
// would be taken for those of the device that has its name now.
func TestDeafWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		e := &edges{watch: func(_ context.Context, emit func(device.Reading)) error {
			emit(good("button", device.Bool(true)))
			time.Sleep(time.Minute) // deaf to ctx
			emit(good("button", device.Bool(false)))
			return nil
		}}
		stop := sampling(t, h, []Source{{"d", e, time.Second, nil, 0}})
		time.Sleep(time.Second)
		stop()
		h.Forget("d/button")
		time.Sleep(time.Hour)
		if r, ok := h.Latest("d/button"); ok {
			t.Errorf("%+v", r)
		}
	})
}
