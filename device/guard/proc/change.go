package proc

import (
	"context"
	"errors"

	"agentsite/device"
	"agentsite/device/guard"
)

// Change is a new plan for the guard. A plan is a text that Equipment.Follow understands.
type Change struct {
	Policies []guard.Policy // of the outputs of After
	// Before is the current plan, After the next. Between is the part of Before that stays,
	// unchanged; nil if nothing stays.
	Before, Between, After []byte
	// Swap stores After for the next process, or fails.
	Swap func() error
}

// Change makes the guard use another plan. Removed outputs are safe and closed before Swap is
// called, because a process that starts afterwards does not have them in its plan. New and
// changed outputs are driven to safe after Swap. All others keep their state. If Swap fails,
// Before stays in use. If nothing stays, or the guard fails, the process is replaced. The error
// names the outputs that were not confirmed as safe, or is Swap's. Once begun, Change continues
// after ctx has ended. Run must be running.
func (k *Keeper) Change(ctx context.Context, c Change) error {
	select {
	case k.changing <- struct{}{}: // prevents the start of a process
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
	case errors.Is(again, errAway), errors.Is(again, errLost): // the next process reads the plan
		again = nil
	case !followed(again):
		again = k.Replace(ctx, c.Policies, func() error { return nil })
	}
	return errors.Join(late, swapErr, again)
}

// follow makes the guard use a plan.
func (k *Keeper) follow(text []byte) error {
	if text == nil {
		return errAway
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	return k.ask(ctx, plan, func(w *writer) { w.bytes(text) }, call{})
}

// followed reports whether a plan is in use, even with outputs that are not confirmed.
func followed(err error) bool {
	var fault *device.Fault
	return err == nil || errors.As(err, &fault) && fault.Kind == device.UnknownOutcome
}

// allPolicies returns the policies of the outputs, in the order of the configuration.
func (k *Keeper) allPolicies() (all []guard.Policy) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range k.outputs {
		all = append(all, k.policies[o])
	}
	return all
}
