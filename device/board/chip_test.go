package board_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
)

// wiring reads and drives a line from outside, for its test.
type wiring struct {
	level func(t *testing.T) bool
	drive func(t *testing.T, high bool)
}

// TestChipFake and TestChipReal hold a fake chip and a kernel's to the same.
func TestChipFake(t *testing.T) {
	chip := boardtest.Header()
	testChip(t, boardtest.Lines(chip), "GPIO17", &wiring{
		level: func(*testing.T) bool { return chip.Level(17) },
		drive: func(_ *testing.T, high bool) { chip.Drive(17, high) },
	})
}

// TestChipReal takes the line that AGENTSITE_TEST_GPIO names, such as gpiochip1/0,
// with nothing wired to it. AGENTSITE_TEST_GPIO_SIM is its folder where the chip is
// the kernel's gpio-sim, such as /sys/devices/platform/gpio-sim.0/gpiochip1/sim_gpio0.
func TestChipReal(t *testing.T) {
	name := os.Getenv("AGENTSITE_TEST_GPIO")
	if name == "" {
		t.Skip("no GPIO chip to test: set AGENTSITE_TEST_GPIO to a free line such as gpiochip1/0")
	}
	var pin board.Pin
	if err := pin.UnmarshalText([]byte(name)); err != nil {
		t.Fatal(err)
	}
	testChip(t, board.New(), pin, simulator(os.Getenv("AGENTSITE_TEST_GPIO_SIM")))
}

func simulator(folder string) *wiring {
	if folder == "" {
		return nil
	}
	return &wiring{
		level: func(t *testing.T) bool {
			t.Helper()
			text, err := os.ReadFile(filepath.Join(folder, "value"))
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(text)) == "1"
		},
		drive: func(t *testing.T, high bool) {
			t.Helper()
			pull := map[bool]string{true: "pull-up", false: "pull-down"}[high]
			if err := os.WriteFile(filepath.Join(folder, "pull"), []byte(pull), 0); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func testChip(t *testing.T, b *board.Board, pin board.Pin, w *wiring) {
	output := func(t *testing.T, o board.OutputOptions) *board.Line {
		t.Helper()
		line, err := b.Output(pin, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { line.Close() })
		return line
	}
	is := func(t *testing.T, line *board.Line, on, high bool) {
		t.Helper()
		if got, err := line.Get(); err != nil || got != on {
			t.Errorf("it reads %v, %v; want %v", got, err, on)
		}
		if w != nil && w.level(t) != high {
			t.Errorf("the level outside is %v, want %v", !high, high)
		}
	}
	for _, low := range []bool{false, true} {
		t.Run(map[bool]string{false: "output", true: "output_active_low"}[low], func(t *testing.T) {
			for _, initial := range []bool{true, false} {
				line := output(t, board.OutputOptions{Initial: initial, ActiveLow: low})
				is(t, line, initial, initial != low)
				for _, on := range []bool{true, false, true} {
					if err := line.Set(on); err != nil {
						t.Error(err)
					}
					is(t, line, on, on != low)
				}
				if err := line.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Run("one_owner", func(t *testing.T) {
		output(t, board.OutputOptions{})
		_, err := b.Output(pin, board.OutputOptions{})
		faulted(t, err, device.Busy, "agentsite")
		_, err = b.Input(pin, board.InputOptions{})
		faulted(t, err, device.Busy, "agentsite")
	})
	t.Run("input", func(t *testing.T) {
		if w == nil {
			t.Skip("nothing drives the line: set AGENTSITE_TEST_GPIO_SIM")
		}
		const debounce = 10 * time.Millisecond
		line, err := b.Input(pin, board.InputOptions{Edges: true, Debounce: debounce})
		if err != nil {
			t.Fatal(err)
		}
		defer line.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		edges := make(chan board.Edge)
		go func() {
			defer close(edges)
			line.Watch(ctx, time.Time{}, func(e board.Edge) { edges <- e }) // those from before it begins too
		}()
		now, err := line.Get() // whatever was left there
		if err != nil {
			t.Fatal(err)
		}
		for _, high := range []bool{!now, now} {
			begun := time.Now()
			w.drive(t, high)
			e, ok := <-edges
			if !ok {
				t.Fatal("no edge")
			}
			if e.Active != high || e.Lost || e.At.Before(begun.Add(-time.Millisecond)) || e.At.After(time.Now()) {
				t.Errorf("%+v of a change to %v at %v", e, high, begun)
			}
			is(t, line, high, high)
		}
	})
}
