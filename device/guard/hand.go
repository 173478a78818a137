package guard

import (
	"context"
	"log/slog"
	"time"

	"agentsite/device"
)

// hand drives the outputs of one device: one call at a time, and a device that
// hangs holds up nobody else.
type hand struct {
	device  string
	act     device.Actuator
	outputs []int    // in the machine
	points  []string // of the device, beside outputs
	wake    chan struct{}
}

// drive writes what is pending, again and again until the hardware agrees.
func (g *Guard) drive(ctx context.Context, h *hand) {
	retry := retryFirst
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return // rather than begin another write
		}
		if g.write(ctx, h) {
			retry = retryFirst
			continue
		}
		timer.Reset(retry)
		retry = min(2*retry, retryLast)
	}
}

// write brings each of the hand's outputs to what is wanted and reports whether
// all of them followed.
func (g *Guard) write(ctx context.Context, h *hand) bool {
	followed := true
	for k, i := range h.outputs {
		g.mu.Lock()
		v, pending := g.m.Pending(i)
		known := g.m.outputs[i].fault
		if pending {
			g.m.Driving(i)
		}
		g.mu.Unlock()
		if !pending {
			continue
		}
		applying, cancel := context.WithTimeout(ctx, applyTimeout)
		_, back, err := device.Ask(applying, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, h.act.Apply(ctx, h.points[k], v)
		})
		cancel()
		if err != nil {
			followed = false
			if err.Error() != known { // once, however long it lasts
				slog.Warn("an output did not follow and is tried again", "output", device.Address(h.device, h.points[k]), "value", v.String(), "err", err)
			}
		}
		g.update(func(now Time) error { g.m.Applied(now, i, v, err); return nil })
		if back != nil { // one write at a time: nothing more for this device before it is back
			select {
			case <-back:
			case <-ctx.Done():
			}
		}
	}
	return followed
}

// hurry has every hand write at once, those too that pause after a failure.
func (g *Guard) hurry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.hands {
		poke(h.wake)
	}
}
