package device

import "context"

// Turn is had by one caller at a time, as a mutex is, but waiting for it ends with a
// context: what is done meanwhile can take as long as the hardware likes.
type Turn chan struct{}

// NewTurn makes a Turn that nobody has.
func NewTurn() Turn { return make(Turn, 1) }

// Take waits for the turn. Every Take without an error has its Give. A context that
// has ended does not get it.
func (t Turn) Take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wait is Take for who has to have it, such as a Close.
func (t Turn) Wait() { t <- struct{}{} }

// Give lets the next caller have it.
func (t Turn) Give() { <-t }
