package board

import (
	"context"
	"time"

	"agentsite/device"
)

// Turn gives a connection to one call after the other, each from Begin to End.
type Turn struct {
	busy device.Mutex // locked from Begin to End; guards ctx
	ctx  context.Context
}

// NewTurn returns the Turn of a connection that no call uses.
func NewTurn() Turn { return Turn{busy: device.NewMutex()} }

// Begin waits until no other call uses the connection. Every Begin without an error needs
// an End.
func (t *Turn) Begin(ctx context.Context) error {
	if err := t.busy.LockContext(ctx); err != nil {
		return err
	}
	t.ctx = ctx
	return nil
}

// End lets the next call begin.
func (t *Turn) End() {
	t.ctx = nil
	t.busy.Unlock()
}

// Sleep waits for d, or until the context of Begin ends.
func (t *Turn) Sleep(d time.Duration) error { return device.Sleep(t.ctx, d) }
