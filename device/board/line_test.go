package board_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
)

func levels(c *boardtest.Chip, offset int) string {
	s := ""
	for _, change := range c.Changes(offset) {
		s += map[bool]string{false: "0", true: "1"}[change.Level]
	}
	return s
}

// TestOutputBegins is the reason for this package's own lines: a relay that is on with a
// low level must not see one for a moment.
func TestOutputBegins(t *testing.T) {
	for _, tc := range []struct {
		name    string
		options board.OutputOptions
		before  bool
		want    string // the levels at the pin until it is closed
	}{
		{"low", board.OutputOptions{}, false, ""},
		{"high", board.OutputOptions{Initial: true, Safe: true}, false, "1"},
		{"off, active low, pulled up", board.OutputOptions{ActiveLow: true}, true, ""},
		{"on, active low, pulled up", board.OutputOptions{ActiveLow: true, Initial: true}, true, "01"},
		{"on, to be left off", board.OutputOptions{Initial: true}, false, "10"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			chip := boardtest.NewChip("gpiochip0", "x", "a")
			chip.Drive(0, tc.before)
			before := len(levels(chip, 0))
			line, err := boardtest.Lines(chip).Output("a", tc.options)
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
			if got := levels(chip, 0)[before:]; got != tc.want || chip.Driven(0) {
				t.Errorf("the pin went %q, want %q", got, tc.want)
			}
			faulted(t, line.Set(true), device.Offline, "is closed")
			_, err = line.Get()
			faulted(t, err, device.Offline, "is closed")
		})
	}
}

func TestReleased(t *testing.T) {
	keeps, forgets := boardtest.Header(), boardtest.Header()
	forgets.Forget()
	for _, chip := range []*boardtest.Chip{keeps, forgets} {
		line, err := boardtest.Lines(chip).Output("GPIO17", board.OutputOptions{Initial: true, Safe: true})
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
	chip := boardtest.Header()
	b := boardtest.Lines(chip)
	chip.Take(4, "w1")
	_, err := b.Input("GPIO4", board.InputOptions{})
	faulted(t, err, device.Busy, `GPIO4 is in use by "w1"`)
	chip.Take(4, "")
	line, err := b.Output("GPIO4", board.OutputOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Output("GPIO4", board.OutputOptions{})
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
		_, err = b.Output("GPIO5", board.OutputOptions{})
		faulted(t, err, want, "GPIO5")
	}
	chip.Fail(4, &os.PathError{Op: "open", Path: "/dev/gpiochip0", Err: syscall.EACCES})
	faulted(t, line.Set(true), device.Denied, "the group gpio")
}

func TestInput(t *testing.T) {
	chip := boardtest.Header()
	b := boardtest.Lines(chip)
	for _, tc := range []struct {
		options board.InputOptions
		want    bool
	}{{board.InputOptions{Pull: board.PullUp}, true}, {board.InputOptions{Pull: board.PullDown}, false}, {board.InputOptions{Pull: board.PullUp, ActiveLow: true}, false}} {
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

func watching(t *testing.T, line *board.Line, ctx context.Context) (chan board.Edge, chan error) {
	t.Helper()
	edges, ended := make(chan board.Edge, 200), make(chan error, 1)
	go func() { ended <- line.Watch(ctx, time.Now(), func(e board.Edge) { edges <- e }) }()
	synctest.Wait()
	return edges, ended
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := boardtest.Header()
		chip.Drive(17, true)
		line, err := boardtest.Lines(chip).Input("GPIO17", board.InputOptions{Edges: true, ActiveLow: true, Debounce: 20 * time.Millisecond})
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
		faulted(t, <-ended, device.Offline, "is closed")
		again, err := boardtest.Lines(chip).Input("GPIO17", board.InputOptions{Edges: true})
		if err != nil {
			t.Fatal(err)
		}
		_, ended = watching(t, again, t.Context())
		chip.Unplug()
		faulted(t, <-ended, device.Offline, "plug it in again")
		_, err = boardtest.Lines(chip).Input("GPIO17", board.InputOptions{Edges: true})
		faulted(t, err, device.Offline, "no GPIO chip")
	})
}

func TestWatchLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := boardtest.Header()
		line, err := boardtest.Lines(chip).Input("GPIO17", board.InputOptions{Edges: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		slow, seen := make(chan struct{}), make(chan board.Edge, 200)
		go line.Watch(ctx, time.Now(), func(e board.Edge) { <-slow; seen <- e })
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
type mute struct{ board.GPIO }

func (m mute) Request(chip string, offsets []int, c board.LineConfig) (board.Lines, error) {
	if c.Edges || c.Debounce > 0 {
		return nil, syscall.ENODEV
	}
	return m.GPIO.Request(chip, offsets, c)
}

func TestMuteChip(t *testing.T) {
	chip := boardtest.Header()
	chip.Drive(17, true)
	b := board.On(board.Machine{GPIO: mute{board.GPIOOf(boardtest.Lines(chip))}})
	line, err := b.Input("GPIO17", board.InputOptions{Edges: true, Debounce: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if on, err := line.Get(); !on || err != nil {
		t.Error(on, err)
	}
	faulted(t, line.Watch(t.Context(), time.Now(), nil), device.Offline, "time to time")
}
