package proc

import (
	"context"
	"errors"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// Stop is Guard.Stop of the running guard. It continues after ctx has ended: it is latched, and
// this guard and each later one is told, until a Reset. Without an error all of that is done.
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
	latch := func() { latched <- k.latchStop() } // the disk may hang
	slow := time.AfterFunc(heartbeatAway, latch) // the guard may hang, too
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

// latchStop latches the stop, unless a Reset has ended it.
func (k *Keeper) latchStop() error {
	k.latching <- struct{}{}
	defer func() { <-k.latching }()
	if !k.Stopped() {
		return nil
	}
	return k.latch.Stop()
}

// Reset is Guard.Reset for the stop that the guard has reported. Without outputs it needs no
// guard. A concurrent Stop wins.
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

// await waits for do, which continues after ctx has ended.
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

// unknownOutcome returns err, or an UnknownOutcome fault if err is not the guard's answer.
func unknownOutcome(err error) error {
	var fault *device.Fault
	if err == nil || errors.As(err, &fault) {
		return err
	}
	return device.Faultf(device.UnknownOutcome, "the outputs did not answer: read them to see where they are: %w", err)
}
