package proc

import (
	"context"
	"errors"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// Stop is guard.Guard's. It goes on when ctx ends: it is latched, and this guard and every
// later one is told, until a Reset. Without an error all of that is done.
func (k *Keeper) Stop(ctx context.Context) error {
	k.mu.Lock()
	k.stopped = true
	k.asked++
	k.tell()
	k.mu.Unlock()
	return k.await(ctx, k.stop)
}

func (k *Keeper) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	latched := make(chan error, 1)
	latch := func() { latched <- k.latchStop() } // a disk may hang
	slow := time.AfterFunc(heartbeatAway, latch) // the guard may
	err := k.ask(context.Background(), stop, nil, call{})
	waiting := slow.Stop()
	if !errors.Is(err, errAway) && !errors.Is(err, errLost) {
		return err
	}
	if waiting {
		go latch()
	}
	late := k.Settle(ctx) // by the next guard
	select {
	case err := <-latched:
		return guard.Incomplete(late, err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// latchStop latches the stop, unless it was reset meanwhile.
func (k *Keeper) latchStop() error {
	k.latching <- struct{}{}
	defer func() { <-k.latching }()
	if !k.Stopped() {
		return nil
	}
	return k.latch.Stop()
}

// Reset is guard.Guard's, of the stop that the guard has told of. Without outputs it needs
// no guard. A Stop in the same moment wins.
func (k *Keeper) Reset(ctx context.Context) error { return k.await(ctx, k.reset) }

func (k *Keeper) reset() error {
	k.latching <- struct{}{}
	defer func() { <-k.latching }()
	k.mu.Lock()
	asked, epoch, stops := k.asked, k.epoch, k.stops
	k.mu.Unlock()
	if k.drives() {
		if err := k.ask(context.Background(), reset, func(w *writer) { w.uint32(epoch); w.uint32(stops) }, call{}); err != nil {
			return err
		}
	} else if err := k.latch.Reset(); err != nil {
		return device.Faultf(device.Unavailable, "the emergency stop stays: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked != asked || k.stops != stops {
		return guard.ErrStoppedAgain
	}
	k.stopped = false
	k.tell()
	return nil
}

// await waits for do, which goes on when its caller leaves.
func (k *Keeper) await(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := do()
		k.flush()
		done <- err
	}()
	select {
	case err := <-done:
		return unknownOutcome(err)
	case <-ctx.Done():
		return unknownOutcome(ctx.Err())
	}
}

// unknownOutcome returns err, or an UnknownOutcome fault where err is not the guard's answer.
func unknownOutcome(err error) error {
	var fault *device.Fault
	if err == nil || errors.As(err, &fault) {
		return err
	}
	return device.Faultf(device.UnknownOutcome, "the outputs did not answer: read them to see where they are: %w", err)
}
