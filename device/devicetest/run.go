package devicetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// Run holds a device to the contract, in one subtest for each rule. It opens a
// fresh device for each and closes it afterwards; it moves the outputs over their
// whole range. A rule about a verb that the device lacks is skipped.
//
// The rule about concurrent use finds most under the race detector. Run waits on
// the real clock for at most a few seconds, and only for a device that hangs.
func Run(t *testing.T, open func(t *testing.T) device.Device) {
	t.Helper()
	Options{}.Run(t, open)
}

// Options are the suite's parameters beside the device.
type Options struct {
	// Level is a witness at the hardware: it returns the value that an output of
	// the device opened last really has, also after Close. Without it the suite
	// cannot see whether Close leaves the outputs safe.
	Level func(point string) device.Value
	// Dip takes the supply of the device opened last away and gives it back. Without it
	// the suite cannot see whether a device that lost its settings is still believed.
	Dip func()
	// FakeClock runs each rule, and open, in a bubble of testing/synctest, where the
	// waits of a slow device take no time.
	FakeClock bool
}

// Run is Run with these options.
func (o Options) Run(t *testing.T, open func(t *testing.T) device.Device) {
	t.Helper()
	for _, c := range checks {
		rule := func(t *testing.T) {
			dev := open(t)
			t.Cleanup(func() { dev.Close() })
			err := c.run(t.Context(), subject{Device: dev, level: o.Level, dip: o.Dip})
			if reason, ok := errors.AsType[skip](err); ok {
				t.Skip(reason)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if o.FakeClock {
			real := rule
			rule = func(t *testing.T) { synctest.Test(t, real) }
		}
		t.Run(c.name, rule)
	}
}

// check is one rule. It returns what breaks it, so that the suite's own test can
// ask it about broken devices.
type check struct {
	name string
	run  func(context.Context, subject) error
}

var checks = []check{
	{"describe_valid", describeValid},
	{"describe_constant", describeConstant},
	{"describe_verbs", describeVerbs},
	{"sample", sample},
	{"sample_cancelled", sampleCancelled},
	{"sample_after_dip", sampleAfterDip},
	{"apply", apply},
	{"apply_unknown_point", applyUnknownPoint},
	{"apply_wrong_value", applyWrongValue},
	{"apply_cancelled", applyCancelled},
	{"watch", watch},
	{"show", show},
	{"show_cancelled", showCancelled},
	{"capture", capture},
	{"capture_cancelled", captureCancelled},
	{"close_twice", closeTwice},
	{"close_safe", closeSafe},
	{"concurrent_use", concurrentUse},
}

// subject is the device under test.
type subject struct {
	device.Device
	level func(point string) device.Value
	dip   func()
}

// points returns the described points of which keep is true.
func (s subject) points(keep func(device.Kind) bool) []device.Point {
	var some []device.Point
	for _, p := range s.Describe().Points {
		if keep(p.Kind) {
			some = append(some, p)
		}
	}
	return some
}

func is(kind device.Kind) func(device.Kind) bool {
	return func(k device.Kind) bool { return k == kind }
}

// nowhere is a point that no device has: it is not even a name.
const nowhere = "No Such Point"

// skip is why a rule does not concern a device.
type skip string

func (s skip) Error() string { return string(s) }

const (
	prompt  = 2 * time.Second  // a call that was cancelled, or a Watch whose context ended
	patient = 10 * time.Second // many calls at once
)

// within returns call's error, or another one when it takes longer than limit.
// The call is then left behind: a device that hangs cannot be stopped.
func within(limit time.Duration, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("it has not returned after %v", limit)
	}
}

// cancelled holds a call to its context: ended before the call, it must come
// back at once with an error that wraps the context's.
func cancelled(call func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := within(prompt, func() error { return call(ctx) })
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("with a cancelled context: got %v, want an error that wraps %q", err, context.Canceled)
	}
	return nil
}
