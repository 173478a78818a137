package device

import (
	"context"
	"time"
)

// callGrace is how long after the end of its context a driver may return.
const callGrace = 500 * time.Millisecond

// Call calls a driver and waits for it until ctx ends, and half a second longer. A driver that
// ignores its context fails with an Offline fault whose cause is ctx's error, so that it blocks no
// caller. back is closed when the driver returns, for a caller that makes one call at a time. A
// panic is an Internal fault: a crash of the process would leave every output where it is.
func Call[T any](ctx context.Context, call func(context.Context) (T, error)) (answer T, back <-chan struct{}, err error) {
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
	late := time.NewTimer(callGrace)
	defer late.Stop()
	select {
	case r := <-results:
		return r.answer, nil, r.err
	case <-late.C:
		deaf := Faultf(Offline, "the driver does not answer; check its wiring and supply")
		deaf.Err = ctx.Err()
		return answer, done, deaf
	}
}
