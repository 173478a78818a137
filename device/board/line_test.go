package board

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

func levels(c *FakeChip, offset int) string {
	s := ""
	for _, change := range c.Changes(offset) {
		s += fmt.Sprint(bit(change.Level))
	}
	return s
}

// TestOutputBegins is the reason for this room's own lines: a relay that is on with a
// low level must not see one for a moment.
func TestOutputBegins(t *testing.T) {
	for _, tc := range []struct {
		name    string
		options OutputOptions
		before  bool
		want    string // the levels at the pin until it is closed
	}{
		{"low", OutputOptions{}, false, ""},
		{"high", OutputOptions{Initial: true, Safe: true}, false, "1"},
		{"off, active low, pulled up", OutputOptions{ActiveLow: true}, true, ""},
		{"on, active low, pulled up", OutputOptions{ActiveLow: true, Initial: true}, true, "01"},
		{"on, to be left off", OutputOptions{Initial: true}, false, "10"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			chip := NewFakeChip("gpiochip0", "x", "a")
			chip.pins[0].level = tc.before
			line, err := FakeLines(chip).Output("a", tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if on, err := line.Get(); err != nil || on != tc.options.Initial || !chip.Driven(0) {
				t.Errorf("it begins %v, %v", on, err)
			}
			for range 2 {
				if err := line.Close(); err != nil {
					t.Error(err)
				}
			}
			if got := levels(chip, 0); got != tc.want || chip.Driven(0) {
				t.Errorf("the pin went %q, want %q", got, tc.want)
			}
			faulted(t, line.Set(true), device.Offline, "its device is closed")
			_, err = line.Get()
			faulted(t, err, device.Offline, "its device is closed")
		})
	}
}

func TestReleased(t *testing.T) {
	keeps, forgets := FakeHeader(), FakeHeader()
	forgets.Forget()
	for _, chip := range []*FakeChip{keeps, forgets} {
		line, err := FakeLines(chip).Output("GPIO17", OutputOptions{Initial: true, Safe: true})
		if err != nil {
			t.Fatal(err)
		}
		line.Close()
	}
	if !keeps.Level(17) || forgets.Level(17) {
		t.Error("a released line: kept", keeps.Level(17), "and returned to input", forgets.Level(17))
	}
}

func TestLineFaults(t *testing.T) {
	chip := FakeHeader()
	b := FakeLines(chip)
	chip.Take(4, "w1")
	_, err := b.Input("GPIO4", InputOptions{})
	faulted(t, err, device.Busy, `GPIO4 is in use by "w1"`)
	chip.Take(4, "")
	line, err := b.Output("GPIO4", OutputOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Output("GPIO4", OutputOptions{})
	faulted(t, err, device.Busy, "agentsite")
	for errno, want := range map[error]device.FaultKind{
		syscall.EIO: device.Offline, syscall.EACCES: device.Denied, syscall.EBUSY: device.Busy,
		syscall.ENODEV: device.Offline, syscall.EINVAL: device.Invalid,
	} {
		chip.Fail(4, errno)
		faulted(t, line.Set(true), want, "GPIO4")
		if err := line.Set(true); !errors.Is(err, errno) {
			t.Errorf("%v has lost its cause %v", err, errno)
		}
		chip.Fail(5, errno)
		_, err = b.Output("GPIO5", OutputOptions{})
		faulted(t, err, want, "GPIO5")
	}
	faulted(t, line.Set(true), device.AsFault(fault("GPIO4", chip.pins[4].fail)).Kind, "GPIO4")
	faulted(t, fault("GPIO4", &os.PathError{Op: "open", Path: "/dev/gpiochip0", Err: syscall.EACCES}), device.Denied, "the group gpio")
}

func TestInput(t *testing.T) {
	chip := FakeHeader()
	b := FakeLines(chip)
	for _, tc := range []struct {
		options InputOptions
		want    bool
	}{{InputOptions{Pull: PullUp}, true}, {InputOptions{Pull: PullDown}, false}, {InputOptions{Pull: PullUp, ActiveLow: true}, false}} {
		line, err := b.Input("GPIO17", tc.options)
		if err != nil {
			t.Fatal(err)
		}
		if on, err := line.Get(); on != tc.want || err != nil {
			t.Errorf("%+v: %v, %v", tc.options, on, err)
		}
		if line.Set(true) == nil {
			t.Error("an input was driven")
		}
		line.Close()
	}
}

func watching(t *testing.T, line *Line, ctx context.Context) (chan Edge, chan error) {
	t.Helper()
	edges, ended := make(chan Edge, 200), make(chan error, 1)
	go func() { ended <- line.Watch(ctx, time.Now(), func(e Edge) { edges <- e }) }()
	synctest.Wait()
	return edges, ended
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := FakeHeader()
		chip.Drive(17, true)
		line, err := FakeLines(chip).Input("GPIO17", InputOptions{Edges: true, ActiveLow: true, Debounce: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		chip.Drive(17, false) // nobody watches yet
		time.Sleep(time.Second)
		chip.Drive(17, true)
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		edges, ended := watching(t, line, ctx)
		begun := time.Now()
		for range 5 { // it bounces
			chip.Drive(17, false)
			time.Sleep(5 * time.Millisecond)
			chip.Drive(17, true)
			time.Sleep(5 * time.Millisecond)
		}
		if on, _ := line.Get(); on {
			t.Error("a bounce is read as a level")
		}
		chip.Drive(17, false)
		time.Sleep(time.Second)
		e := <-edges
		if !e.Active || e.Lost || e.At.Sub(begun) != 70*time.Millisecond || len(edges) != 0 {
			t.Errorf("%+v after %v, and %d more", e, e.At.Sub(begun), len(edges))
		}
		if on, _ := line.Get(); !on {
			t.Error("a lasting level is not read")
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		// Closed, and unplugged.
		_, ended = watching(t, line, t.Context())
		line.Close()
		faulted(t, <-ended, device.Offline, "its device is closed")
		again, err := FakeLines(chip).Input("GPIO17", InputOptions{Edges: true})
		if err != nil {
			t.Fatal(err)
		}
		_, ended = watching(t, again, t.Context())
		chip.Unplug()
		faulted(t, <-ended, device.Offline, "plug it in again")
		_, err = FakeLines(chip).Input("GPIO17", InputOptions{Edges: true})
		faulted(t, err, device.Offline, "no GPIO chip")
	})
}

func TestWatchLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := FakeHeader()
		line, err := FakeLines(chip).Input("GPIO17", InputOptions{Edges: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		slow, seen := make(chan struct{}), make(chan Edge, 200)
		go line.Watch(ctx, time.Now(), func(e Edge) { <-slow; seen <- e })
		synctest.Wait()
		chip.Drive(17, true)
		synctest.Wait()
		for i := range 100 {
			chip.Drive(17, i%2 == 1)
		}
		close(slow)
		synctest.Wait()
		cancel()
		first, second := <-seen, <-seen
		if first.Lost || !second.Lost || len(seen) != 63 {
			t.Errorf("%+v, %+v, and %d more", first, second, len(seen))
		}
	})
}

// mute is a chip without interrupts.
type mute struct{ chips }

func (m mute) request(chip string, offsets []int, s setup) (lines, error) {
	if s.edges || s.debounce > 0 {
		return nil, syscall.ENODEV
	}
	return m.chips.request(chip, offsets, s)
}

func TestMuteChip(t *testing.T) {
	chip := FakeHeader()
	chip.Drive(17, true)
	b := FakeLines(chip)
	b.chips = mute{b.chips}
	line, err := b.Input("GPIO17", InputOptions{Edges: true, Debounce: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if on, err := line.Get(); !on || err != nil {
		t.Error(on, err)
	}
	faulted(t, line.Watch(t.Context(), time.Now(), nil), device.Offline, "only read from time to time")
}
