package guard

import (
	"context"

	"agentsite/device"
)

// Stop is the emergency stop: all outputs go to safe at once and stay there, also over
// restarts, until Reset. It returns once the hardware is safe, or after five seconds. The
// error names the outputs that are not confirmed, or says that a restart would lose the stop.
func (g *Guard) Stop(ctx context.Context) error {
	g.update(func(Time) error { g.m.Stop(); g.stops++; return nil })
	g.interruptAll()
	g.latching.Lock()
	err := g.latch.Stop()
	if !g.Stopped() { // a concurrent Reset
		g.update(func(Time) error { g.m.Stop(); g.stops++; return nil })
	}
	g.latching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	late := g.Settle(ctx)
	if late == nil {
		g.measure(ctx)
	}
	return Incomplete(late, err)
}

// measure reads the outputs back, so that Status tells what was measured after a stop. A device that does
// not answer soon delays nothing.
func (g *Guard) measure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	g.mu.Lock()
	for _, h := range g.workers {
		poke(h.look)
	}
	g.mu.Unlock()
	g.wait(ctx, func(Time) bool { return g.proven() })
}

// proven reports whether every output that can be read back was read back since it was written. The
// caller holds mu.
func (g *Guard) proven() bool {
	for _, h := range g.workers {
		for _, o := range h.outputs {
			i, there := g.m.index[o.address]
			if there && h.sensor != nil && !g.m.outputs[i].blind && g.m.outputs[i].measured.IsZero() {
				return false
			}
		}
	}
	return true
}

// Incomplete combines the errors of a stop: outputs that are not confirmed as safe, and a
// stop that is not latched. It returns nil if both are nil.
func Incomplete(late, unlatched error) error {
	switch {
	case late == nil && unlatched == nil:
		return nil
	case late == nil:
		return device.Faultf(device.Unavailable, "%w", unlatched)
	case unlatched == nil:
		return late
	}
	short := device.AsFault(late)
	return device.Faultf(device.UnknownOutcome, "%w; %w", late, unlatched).Naming(short.Short, short.Names...)
}

// Reset ends the emergency stop with that number of requests (State). After a later request
// the stop stays, and Reset fails. The caller must be an owner.
func (g *Guard) Reset(stops uint32) error {
	g.latching.Lock()
	defer g.latching.Unlock()
	if _, _, now := g.State(); now != stops {
		return ErrStoppedAgain
	}
	if err := g.latch.Reset(); err != nil {
		return device.Faultf(device.Unavailable, "the emergency stop stays: %w", err)
	}
	return g.update(func(Time) error {
		if g.stops != stops { // that stop waits for the latch now
			return ErrStoppedAgain
		}
		g.m.Reset()
		g.kept = make(map[string]bool)
		return nil
	})
}

// ErrStoppedAgain is the error of a Reset with a concurrent Stop.
var ErrStoppedAgain = device.Faultf(device.Unsafe,
	"the emergency stop was asked for again in the same moment and stays: see why, then run agentsite reset again")

// Recheck latches the emergency stop if the latch file was removed after New, by a site
// without a running guard.
func (g *Guard) Recheck() {
	if !g.latch.Armed() {
		g.update(func(Time) error { g.m.Stop(); return nil })
	}
}
