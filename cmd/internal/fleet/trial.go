package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/rollback"
	"agentsite/transport/mcp/client"
	ownerclient "agentsite/transport/owner/client"
)

const (
	confirmPause   = time.Second
	confirmTimeout = 20 * time.Second // of one attempt: the site waits until it has been well for 10 s
	restartTimeout = time.Minute      // for a site to come back after a restart, or two
	configTimeout  = time.Minute      // of the request, in which the site opens its devices
)

// Try has a site use a configuration on trial, n.Trial, and confirms it over connections of their own: that they reach
// the site is a part of the proof. An error says why nothing was begun, or that the end is not known.
func Try(
	ctx context.Context, dial func(context.Context) (*peer.Connection, error), n acts.NewConfiguration,
) (rollback.Status, error) {
	begun, err := within(ctx, configTimeout, dial, func(ctx context.Context, c *peer.Connection) (bool, error) {
		if _, err := ownerclient.Call(ctx, c.Owner, rollback.TrialAct, acts.None{}); err != nil {
			return false, knowsNot(err, "has no trials of configurations")
		}
		_, err := ownerclient.Call(ctx, c.Owner, acts.ConfigureAct, n)
		return true, err
	})
	confirmation := rollback.Confirmation{Digest: acts.Digest([]byte(n.Text))}
	if err != nil && begun && saidBySite(err) { // it may have been rolled back already
		s, _ := within(ctx, configTimeout, dial, func(ctx context.Context, c *peer.Connection) (rollback.Status, error) {
			return ownerclient.Call(ctx, c.Owner, rollback.TrialAct, acts.None{})
		})
		if s.Digest == confirmation.Digest && s.State == rollback.RolledBack && device.AsFault(err).Kind == device.Offline {
			return s, nil
		}
	}
	if err != nil && (!begun || saidBySite(err)) {
		return rollback.Status{}, err
	}
	limit := time.Duration(n.Trial*float64(time.Second)) + restartTimeout
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		s, err := within(ctx, confirmTimeout, dial, func(ctx context.Context, c *peer.Connection) (rollback.Status, error) {
			return ownerclient.Call(ctx, c.Owner, rollback.ConfirmAct, confirmation)
		})
		switch {
		case err == nil && s.State != rollback.Running:
			return s, nil
		case err != nil && saidBySite(err) && device.AsFault(err).Kind == device.Invalid: // it never began
			return s, err
		}
		if device.Sleep(ctx, confirmPause) != nil {
			err = cmp.Or(peer.Unreached(err), err, ctx.Err())
			return s, fmt.Errorf(
				"it does not answer: unless this was confirmed, it uses the configuration before again (%w)", err,
			)
		}
	}
}

// within connects to a site and calls do, in at most that time.
func within[T any](
	ctx context.Context, timeout time.Duration, dial func(context.Context) (*peer.Connection, error),
	do func(context.Context, *peer.Connection) (T, error),
) (none T, _ error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := dial(ctx)
	if err != nil {
		return none, err
	}
	defer c.Close()
	return do(ctx, c)
}

// knowsNot returns the error for a site that denies that a method of owners exists: it is older, or the caller is no
// owner there.
func knowsNot(err error, lacks string) error {
	if refused, ok := errors.AsType[*client.RequestError](err); ok && refused.Kind == string(device.Denied) {
		return fmt.Errorf("this site %s, or you do not own it: update it first, with agentsite update there", lacks)
	}
	return err
}

// TryTimeout returns the longest time that Try takes with a trial of that length.
func TryTimeout(trial time.Duration) time.Duration {
	return configTimeout + trial + restartTimeout + confirmTimeout
}

// Refused returns the error of a site that refuses a request in its answer.
func Refused(says string) error { return &client.RequestError{Kind: string(device.Invalid), Msg: says} }
