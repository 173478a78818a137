package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"agentsite/device"
)

const (
	// Simulated time is cut into turns of this many seconds, and the button is
	// pressed once in the middle half of each.
	pressEvery = 240.0
	pressFor   = 0.3
)

// button is pressed at seeded times, and by press.
type button struct {
	clock clock
	seed  uint64

	mu      sync.Mutex
	presses int           // by hand, so far
	pressed chan struct{} // closed and replaced at each
}

func newButton(c clock, seed uint64) button {
	return button{clock: c, seed: seed, pressed: make(chan struct{})}
}

// pressedAt returns the simulated time of the press in a turn, counted from 0. It
// is a function of the seed alone, so that all who watch see the same presses.
func pressedAt(seed, turn uint64) float64 {
	where := rand.New(rand.NewPCG(seed, turn)).Float64()
	return pressEvery * (float64(turn) + 0.25 + where/2)
}

func (b *button) press() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.presses++
	close(b.pressed)
	b.pressed = make(chan struct{})
}

// byHand returns the presses so far and a channel that is closed at the next.
func (b *button) byHand() (int, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.presses, b.pressed
}

// watch has the contract of device.Watcher. A press by hand while the button is
// still held down follows when it has been let go: none is lost.
func (b *button) watch(ctx context.Context, emit func(device.Reading)) error {
	seen, _ := b.byHand()
	now := b.clock.now()
	turn := uint64(now / pressEvery)
	if pressedAt(b.seed, turn) < now {
		turn++
	}
	for {
		hand, err := b.next(ctx, seen, pressedAt(b.seed, turn))
		if err != nil {
			return err
		}
		if hand {
			seen++
		} else {
			turn++
		}
		emit(edge(true))
		if err := device.Sleep(ctx, b.clock.real(pressFor)); err != nil {
			return err
		}
		emit(edge(false))
	}
}

// next blocks until the simulated time t, or until somebody has pressed by hand
// more often than seen.
func (b *button) next(ctx context.Context, seen int, t float64) (hand bool, err error) {
	presses, pressed := b.byHand()
	if presses > seen {
		return true, nil
	}
	timer := time.NewTimer(b.clock.until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-pressed:
		return true, nil
	case <-timer.C:
		return false, nil
	}
}

func edge(down bool) device.Reading {
	return device.Reading{Point: "button", Value: device.Bool(down), Quality: device.Good, At: time.Now()}
}
