package device

import "context"

// Mutex is a mutual exclusion lock whose acquisition can be cancelled by a context: it is
// held during transfers that take as long as the hardware likes.
type Mutex chan struct{}

// NewMutex returns an unlocked Mutex.
func NewMutex() Mutex { return make(Mutex, 1) }

// LockContext waits for the turn. Every LockContext without an error has its Give. A context that
// has ended does not get it.
func (m Mutex) LockContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lock is LockContext without a context, for callers that must not fail, such as Close.
func (m Mutex) Lock() { m <- struct{}{} }

// Unlock lets the next caller lock m.
func (m Mutex) Unlock() { <-m }
