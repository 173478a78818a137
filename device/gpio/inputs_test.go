package gpio

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board/boardtest"
)

func readings(t *testing.T, dev device.Device, ctx context.Context) (chan device.Reading, chan error) {
	t.Helper()
	all, ended := make(chan device.Reading, 200), make(chan error, 1)
	go func() {
		ended <- dev.(device.Watcher).Watch(ctx, func(r device.Reading) { all <- r })
	}()
	synctest.Wait()
	return all, ended
}

func TestButton(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := boardtest.Header()
		dev := open(t, configured(boardtest.Lines(chip))["button"])
		if r := sampled(t, dev); r.Point != "pressed" || r.Value != device.Bool(false) {
			t.Errorf("nobody presses: %+v", r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		all, ended := readings(t, dev, ctx)
		for range 3 { // it bounces
			chip.Drive(17, false)
			time.Sleep(time.Millisecond)
			chip.Drive(17, true)
			time.Sleep(time.Millisecond)
		}
		chip.Drive(17, false)
		time.Sleep(time.Second)
		if r := sampled(t, dev); r.Value != device.Bool(true) {
			t.Errorf("held down: %+v", r)
		}
		chip.Drive(17, true)
		time.Sleep(time.Second)
		for _, want := range []device.Reading{
			{Point: "button", Value: device.Bool(true)}, {Point: "pressed", Value: device.Bool(true)},
			{Point: "button", Value: device.Bool(false)}, {Point: "pressed", Value: device.Bool(false)},
		} {
			if r := <-all; r.Point != want.Point || r.Value != want.Value || r.Quality != device.Good {
				t.Errorf("got %+v, want %+v", r, want)
			}
		}
		if len(all) > 0 {
			t.Errorf("%d more", len(all))
		}
		// Unplugged, the watch ends, so that the node marks it; plugged in again, it
		// goes on.
		chip.Unplug()
		faulted(t, <-ended, device.Offline, "plug it in again")
		_, err := dev.(device.Sensor).Sample(t.Context())
		faulted(t, err, device.Offline, "GPIO17")
		chip.Plug()
		all, _ = readings(t, dev, ctx)
		chip.Drive(17, false)
		time.Sleep(time.Second)
		if r := <-all; r.Value != device.Bool(true) {
			t.Error(r)
		}
	})
}

// TestStopPressedBeforeWatch: a press before the watch of an emergency stop began is emitted while
// it lasts, because the guard may have read the button before it.
func TestStopPressedBeforeWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := boardtest.Header()
		dev := open(t, configured(boardtest.Lines(chip))["stop-button"])
		chip.Drive(17, false) // the wire is closed
		time.Sleep(time.Second)
		if r := sampled(t, dev); r.Value != device.Bool(false) {
			t.Fatalf("nobody presses: %+v", r)
		}
		chip.Drive(17, true)
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		all, ended := readings(t, dev, ctx)
		if len(all) != 1 {
			t.Fatalf("%d readings", len(all))
		}
		if r := <-all; r.Point != "pressed" || r.Value != device.Bool(true) || r.Quality != device.Good {
			t.Errorf("%+v", r)
		}
		chip.Unplug()
		faulted(t, <-ended, device.Offline, "plug it in again")
	})
}

func TestOtherInputs(t *testing.T) {
	for name, want := range map[string]struct {
		high  bool // the level that counts as on
		state string
	}{"gpio-in": {true, "input"}, "motion": {true, "moving"}, "contact": {false, "closed"}, "button": {false, "pressed"}} {
		chip := boardtest.Header()
		dev := open(t, configured(boardtest.Lines(chip))[name])
		for _, on := range []bool{true, false} {
			dev.Close()
			chip.Drive(17, on == want.high)
			dev = open(t, configured(boardtest.Lines(chip))[name])
			if r := sampled(t, dev); r.Point != want.state || r.Value != device.Bool(on) {
				t.Errorf("%s: %+v, want %s %v", name, r, want.state, on)
			}
		}
	}
}

func TestEncoder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := boardtest.Header()
		dev := open(t, configured(boardtest.Lines(chip))["encoder"])
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		all, _ := readings(t, dev, ctx)
		const a, b = 17, 18
		turn := func(lines ...int) {
			for _, l := range lines {
				chip.Drive(l, !chip.Level(l))
				time.Sleep(5 * time.Millisecond)
			}
		}
		want := func(doing string, position float64, events ...float64) {
			t.Helper()
			synctest.Wait()
			for _, e := range events {
				r, p := <-all, <-all
				if r.Point != "turned" || r.Value != device.Number(e) || p.Point != "position" {
					t.Errorf("%s: %+v, %+v", doing, r, p)
				}
			}
			if r := sampled(t, dev); r.Value != device.Number(position) || len(all) > 0 {
				t.Errorf("%s: at %v, want %v; %d more", doing, r.Value, position, len(all))
			}
		}
		want("at rest", 0)
		turn(a, b, a, b, a, b, a, b)
		want("two steps", 2, 1, 1)
		turn(b, a, b, a)
		want("one back", 1, -1)
		turn(a, a, a, a)
		want("trembling", 1)
		turn(b, a, b, a, b, a, b, a)
		want("two back", -1, -1, -1)
		// Too fast for whoever reads.
		for range 200 {
			chip.Drive(a, !chip.Level(a))
			time.Sleep(time.Microsecond)
		}
		time.Sleep(time.Second)
		want("a bouncing contact", -1)
	})
}
