package device

import "context"

// Mutex is a mutual exclusion lock whose acquisition can be cancelled by a context. Drivers
// hold it during transfers of unknown length.
type Mutex chan struct{}

// NewMutex returns an unlocked Mutex.
func NewMutex() Mutex { return make(Mutex, 1) }

// LockContext locks m. It waits until m is unlocked or ctx ends. After it returns nil, the
// caller has to call Unlock. If ctx has already ended, it does not lock m.
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

// TryLock locks m if nobody has it, and reports whether it did.
func (m Mutex) TryLock() bool {
	select {
	case m <- struct{}{}:
		return true
	default:
		return false
	}
}

// Lock locks m without a context, for callers that must not fail, such as Close.
func (m Mutex) Lock() { m <- struct{}{} }

// Unlock unlocks m.
func (m Mutex) Unlock() { <-m }
