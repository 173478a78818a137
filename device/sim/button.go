package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"agentsite/device"
)

const (
	// pressEvery is the length of a period of simulated time, in seconds. The button is
	// pressed once in the middle half of each.
	pressEvery = 240.0
	pressFor   = 0.3
)

// button is pressed at pseudo-random times, and by press.
type button struct {
	clock clock
	seed  uint64

	mu      sync.Mutex
	presses int           // by press, so far
	pressed chan struct{} // closed and replaced at each
}

func newButton(c clock, seed uint64) button {
	return button{clock: c, seed: seed, pressed: make(chan struct{})}
}

// pressedAt returns the simulated time of the press in a period, counted from 0. It
// depends on the seed only, so that all watchers get the same presses.
func pressedAt(seed, period uint64) float64 {
	fraction := rand.New(rand.NewPCG(seed, period)).Float64()
	return pressEvery * (float64(period) + 0.25 + fraction/2)
}

func (b *button) press() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.presses++
	close(b.pressed)
	b.pressed = make(chan struct{})
}

// manual returns the number of calls of press and a channel that is closed at the next.
func (b *button) manual() (int, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.presses, b.pressed
}

// watch has the contract of device.Watcher. A call of press while the button is pressed is
// emitted after its release.
func (b *button) watch(ctx context.Context, emit func(device.Reading)) error {
	seen, _ := b.manual()
	now := b.clock.now()
	period := uint64(now / pressEvery)
	if pressedAt(b.seed, period) < now {
		period++
	}
	for {
		manual, err := b.next(ctx, seen, pressedAt(b.seed, period))
		if err != nil {
			return err
		}
		if manual {
			seen++
		} else {
			period++
		}
		emit(edge(true))
		if err := device.Sleep(ctx, b.clock.real(pressFor)); err != nil {
			return err
		}
		emit(edge(false))
	}
}

// next blocks until the simulated time t, or until press was called more than seen times.
func (b *button) next(ctx context.Context, seen int, t float64) (manual bool, err error) {
	presses, pressed := b.manual()
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
