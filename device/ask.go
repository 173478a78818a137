package device

import (
	"context"
	"time"
)

// askGrace is how much later than its time a driver may notice.
const askGrace = 500 * time.Millisecond

// Ask calls a driver and waits for it until ctx ends, and half a second longer. One
// that is deaf to its context has failed with an Offline fault, so that it holds up
// nobody; back yields when it has come back after all, for a caller that makes one
// call at a time. One that panics has failed too: letting the process go down would
// leave every output where it is.
func Ask[T any](ctx context.Context, call func(context.Context) (T, error)) (answer T, back <-chan struct{}, err error) {
	type result struct {
		answer T
		err    error
	}
	results, done := make(chan result, 1), make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				results <- result{err: Faultf(Internal, "the driver panicked: %v", p)}
			}
		}()
		answer, err := call(ctx)
		results <- result{answer, err}
	}()
	select {
	case r := <-results:
		return r.answer, nil, r.err
	case <-ctx.Done():
	}
	late := time.NewTimer(askGrace)
	defer late.Stop()
	select {
	case r := <-results:
		return r.answer, nil, r.err
	case <-late.C:
		return answer, done, Faultf(Offline, "the driver does not come back")
	}
}
