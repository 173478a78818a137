package proc

import (
	"context"
	"errors"

	"agentsite/device"
	"agentsite/device/guard"
)

// Change is another plan for the guard. A plan is a text that the guard's process knows
// how to follow (Equipment).
type Change struct {
	Policies []guard.Policy // of the outputs of After
	// Before is the plan in force, After the next. Between has what is in Before and is to
	// go on, as it is in Before; nil when nothing is.
	Before, Between, After []byte
	// Swap puts After where the next process finds it, or fails.
	Swap func() error
}

// Change has the guard follow another plan. What goes is safe and closed before Swap is
// called: a process that ends in between would not find it in its plan. What is new or
// different is driven to safe after it. All else goes on. Where Swap fails, Before goes on. Where nothing is to go on, or the guard does
// not do it, the process is replaced. The error says what is not known to have been safe,
// or is Swap's. Change does not end with ctx once it has begun. Run must be running.
func (k *Keeper) Change(ctx context.Context, c Change) error {
	select {
	case k.changing <- struct{}{}: // no process is started meanwhile
	case <-ctx.Done():
		return ctx.Err()
	}
	late := k.follow(c.Between)
	if !followed(late) {
		<-k.changing
		return k.Replace(ctx, c.Policies, c.Swap)
	}
	plan, swapErr := c.After, c.Swap()
	if swapErr != nil {
		plan, c.Policies = c.Before, k.allPolicies()
	}
	k.adopt(c.Policies)
	again := k.follow(plan)
	<-k.changing
	switch {
	case errors.Is(again, errAway), errors.Is(again, errLost): // the next process finds the plan
		again = nil
	case !followed(again):
		again = k.Replace(ctx, c.Policies, func() error { return nil })
	}
	return errors.Join(late, swapErr, again)
}

// follow has the guard follow a plan.
func (k *Keeper) follow(text []byte) error {
	if text == nil {
		return errAway
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	return k.ask(ctx, plan, func(w *writer) { w.bytes(text) }, call{})
}

// followed reports whether a plan is followed, be it with outputs that are late.
func followed(err error) bool {
	var fault *device.Fault
	return err == nil || errors.As(err, &fault) && fault.Kind == device.UnknownOutcome
}

// allPolicies are those of the outputs, in the order of the configuration.
func (k *Keeper) allPolicies() (all []guard.Policy) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range k.outputs {
		all = append(all, k.policies[o])
	}
	return all
}
