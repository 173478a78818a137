package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"agentsite/device"
)

const (
	// pressEvery is the length of a period of simulated time, in seconds. The button is
	// pressed once in the middle half of each.
	pressEvery = 240.0
	pressFor   = 0.3
)

// pressedAt returns the simulated time of the press in a period, counted from 0. It
// depends on the seed only, so that all watchers get the same presses.
func pressedAt(seed, period uint64) float64 {
	fraction := rand.New(rand.NewPCG(seed, period)).Float64()
	return pressEvery * (float64(period) + 0.25 + fraction/2)
}

// Watch emits the button: true when it is pressed and false when it is released.
func (g *Greenhouse) Watch(ctx context.Context, emit func(device.Reading)) error {
	now := g.clock.now()
	period := uint64(now / pressEvery)
	if pressedAt(g.seed, period) < now {
		period++
	}
	for ; ; period++ {
		if err := device.Sleep(ctx, g.clock.until(pressedAt(g.seed, period))); err != nil {
			return err
		}
		emit(edge(true))
		if err := device.Sleep(ctx, g.clock.real(pressFor)); err != nil {
			return err
		}
		emit(edge(false))
	}
}

func edge(down bool) device.Reading {
	return device.Reading{Point: "button", Value: device.Bool(down), Quality: device.Good, At: time.Now()}
}
