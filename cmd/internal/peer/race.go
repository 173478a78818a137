package peer

import (
	"context"
	"fmt"
	"time"
)

// attempt is one way to a result. It ends soon after ctx, and may add further attempts.
type attempt[T any] func(ctx context.Context, add func(attempt[T])) (T, error)

// race runs attempts concurrently and returns the first result; discard gets later ones. It
// starts a group of attempts delay after the group before, or at once when an attempt fails.
// Attempts that are added start at once. When all have failed it joins their errors.
func race[T any](ctx context.Context, delay time.Duration, discard func(T), groups ...[]attempt[T]) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	results, added := make(chan result), make(chan attempt[T])
	add := func(a attempt[T]) {
		select {
		case added <- a:
		case <-ctx.Done():
		}
	}
	running, reasons := 0, 0
	start := func(a attempt[T]) {
		running++
		go func() {
			value, err := a(ctx, add)
			results <- result{value, err}
		}()
	}
	defer func() {
		cancel()
		go func() {
			for range running {
				if r := <-results; r.err == nil {
					discard(r.value)
				}
			}
		}()
	}()
	next := time.NewTimer(0)
	defer next.Stop()
	var failed error
	for {
		select {
		case a := <-added:
			start(a)
			continue
		case <-next.C:
		case r := <-results:
			running--
			if r.err == nil {
				return r.value, nil
			}
			if failed == errReplaced {
				failed = nil
			}
			if failed == nil || r.err != errReplaced && reasons < maxReasons {
				failed = joinReasons(failed, r.err)
				reasons++
			}
		}
		if len(groups) > 0 {
			for _, a := range groups[0] {
				start(a)
			}
			groups = groups[1:]
			next.Reset(delay)
		}
		if running == 0 {
			var none T
			return none, failed
		}
	}
}

// joinReasons joins two errors in one sentence; the first may be nil.
func joinReasons(all, one error) error {
	if all == nil {
		return one
	}
	return fmt.Errorf("%w; %w", all, one)
}
