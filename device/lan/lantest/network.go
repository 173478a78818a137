// Package lantest holds a driver of a device at the end of a network to its contract, which docs/network-devices.md
// has under "What is the same for all". A proxy between the driver and a fake peer cuts, freezes and delays the link.
//
//	func TestNetwork(t *testing.T) {
//		lantest.Network{
//			Peer: func(t *testing.T) lantest.Peer { return startFake(t) },
//			Open: func(t *testing.T, address string) (device.Device, error) { … },
//		}.Run(t)
//	}
//
// It takes about half a minute, because it waits on the real clock.
package lantest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"agentsite/device"
)

// Network is the suite.
type Network struct {
	// Peer starts a fake of the other side for one rule, at safe. It ends with the test, by t.Cleanup.
	Peer func(t *testing.T) Peer
	// Open opens the device, which connects to the address, "127.0.0.1:PORT".
	Open func(t *testing.T, address string) (device.Device, error)
	// Notice is within which time a lost or silent link is noticed; 12 s if zero.
	Notice time.Duration
	// Recover is within which time the device works again; 20 s if zero.
	Recover time.Duration
	// Except has the reasons why rules do not apply, by their names.
	Except map[string]string
}

// Peer is the fake. A function that is nil skips the rules that need it.
type Peer struct {
	Address string
	// Level returns the value that an output really has. It is required for a device with outputs.
	Level func(point string) device.Value
	// Set changes a point as somebody at the peer would: the peer tells it to its clients as it usually does.
	Set func(point string, v device.Value)
	// Ignore makes the peer accept writes without obeying them.
	Ignore func(on bool)
	// Flood makes the peer send to every client as much as it takes, until the test ends.
	Flood func()
}

type rule struct {
	name string
	run  func(*rig) error
}

// rules are run in parallel, each with a peer, a proxy and a device of its own.
var rules = []rule{
	{"network_lost", lost},
	{"network_silent", silent},
	{"network_confirmed", confirmed},
	{"network_not_later", notLater},
	{"network_late_answer", lateAnswer},
	{"network_second_writer", secondWriter},
	{"network_backoff", backoff},
	{"network_flood", flood},
	{"network_guard_lost", guardLost},
	{"network_guard_second_writer", guardSecondWriter},
	{"network_guard_others", guardOthers},
}

// alone are run one after the other, because they count the goroutines of the process.
var alone = []rule{
	{"network_absent", absent},
	{"network_close", closing},
}

// Run holds the driver to the contract.
func (n Network) Run(t *testing.T) {
	t.Helper()
	if n.Notice == 0 {
		n.Notice = 12 * time.Second
	}
	if n.Recover == 0 {
		n.Recover = 20 * time.Second
	}
	for _, r := range alone {
		t.Run(r.name, func(t *testing.T) { n.check(t, r) })
	}
	var running sync.WaitGroup // t.Parallel would run as many as there are processors
	for _, r := range rules {
		running.Go(func() { t.Run(r.name, func(t *testing.T) { n.check(t, r) }) })
	}
	running.Wait()
}

func (n Network) check(t *testing.T, r rule) {
	t.Helper()
	if reason, ok := n.Except[r.name]; ok {
		t.Log("the rule does not apply: " + reason)
		return
	}
	err := r.run(&rig{Network: n, t: t})
	if reason, ok := errors.AsType[skip](err); ok {
		t.Log("the rule does not apply: " + string(reason))
		return
	}
	if err != nil {
		t.Error(err)
	}
}

// skip is why a rule does not concern a device.
type skip string

func (s skip) Error() string { return string(s) }

// rig is a peer, a proxy before it and a device.
type rig struct {
	Network
	t     *testing.T
	peer  Peer
	proxy *Proxy
	dev   device.Device
	out   device.Point // the first output; no name for none
}

const (
	callTime = 2 * time.Second         // what the guard gives a call
	slack    = time.Second             // of a call, on a loaded machine
	closeMax = 2500 * time.Millisecond // then the guard takes the driver for hung, and its process has to end
	openMax  = 10 * time.Second
)

func (r *rig) start() {
	r.t.Helper()
	r.peer = r.Peer(r.t)
	r.proxy = NewProxy(r.t, r.peer.Address)
}

// works starts all, and waits until the device works.
func (r *rig) works() error {
	r.t.Helper()
	r.start()
	if err := r.open(); err != nil {
		return err
	}
	return r.recovers()
}

func (r *rig) open() error {
	dev, err := r.Open(r.t, r.proxy.Address)
	if err != nil {
		return fmt.Errorf("the device is not opened: %w", err)
	}
	r.t.Cleanup(func() {
		if _, err := closed(dev); err != nil {
			r.t.Error(err)
		}
	})
	r.dev = dev
	for _, p := range dev.Describe().Points {
		if p.Kind.Output() && r.out.Name == "" {
			r.out = p
		}
	}
	return nil
}

// closed closes a device. It returns the driver's error, and another one if the driver takes too long.
func closed(dev device.Device) (failed, broken error) {
	done := make(chan error, 1)
	go func() { done <- dev.Close() }()
	select {
	case failed = <-done:
		return failed, nil
	case <-time.After(closeMax):
		return nil, fmt.Errorf("after %v, Close has not returned", closeMax)
	}
}

// outputs skips a device without outputs, or one that was not opened.
func (r *rig) outputs() error {
	if err := r.works(); err != nil {
		return err
	}
	if r.out.Name == "" {
		return skip("no output")
	}
	return nil
}

// away is a value of the first output that is not safe.
func (r *rig) away() device.Value { return away(r.out) }

func away(p device.Point) device.Value {
	switch {
	case p.Kind == device.KindSwitch:
		return device.Bool(!p.Safe.Bool())
	case p.Safe.Number()-p.Range.Min > p.Range.Max-p.Safe.Number():
		return device.Number(p.Range.Min)
	}
	return device.Number(p.Range.Max)
}

// at reports whether the output really is at a value, within a hundredth of its range.
func (r *rig) at(v device.Value) bool {
	got := r.peer.Level(r.out.Name)
	off := got.Number() - v.Number()
	return got.Type() == v.Type() && max(off, -off) <= (r.out.Range.Max-r.out.Range.Min)/100
}

// apply applies a value to the first output. It returns the driver's error, and another one if the driver takes too
// long or fails with another kind of fault.
func (r *rig) apply(v device.Value, within time.Duration) (failed, broken error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.dev.(device.Actuator).Apply(ctx, r.out.Name, v) }()
	select {
	case failed = <-done:
	case <-time.After(within + slack):
		return nil, fmt.Errorf("after the %v of its context, Apply has not returned", within)
	}
	if failed != nil {
		if kind := device.AsFault(failed).Kind; kind != device.Offline && kind != device.UnknownOutcome {
			return failed, fmt.Errorf("a fault of Apply is %s, want offline or unknown_outcome: %w", kind, failed)
		}
	}
	return failed, nil
}

// good returns why a Sample is not good; nil if all its readings are.
func (r *rig) good() error {
	return r.sample(func(p device.Reading) error {
		if p.Quality != device.Good {
			return fmt.Errorf("%s is %s: %s", p.Point, p.Quality, p.Why)
		}
		if age := time.Since(p.At); age > r.Notice {
			return fmt.Errorf("%s is said to be good and is %v old", p.Point, age)
		}
		return nil
	})
}

// bad returns the error of a Sample that is good although the link is lost; nil for none.
func (r *rig) bad() error {
	err := r.sample(func(p device.Reading) error {
		switch {
		case p.Quality == device.Good:
			return believed(p.Point + " is " + p.Value.String())
		case p.Why == "":
			return believed(p.Point + " is a fault that does not say why")
		}
		return nil
	})
	if _, wrong := errors.AsType[believed](err); wrong {
		return err
	}
	if _, late := errors.AsType[hung](err); late {
		return err
	}
	if err != nil && device.AsFault(err).Kind != device.Offline && device.AsFault(err).Kind != device.UnknownOutcome {
		return fmt.Errorf("a fault of Sample is %s, want offline: %w", device.AsFault(err).Kind, err)
	}
	return nil
}

// believed is the error of a driver over a link that is lost.
type believed string

func (b believed) Error() string { return string(b) }

// hung is a call that does not return when its context ends.
type hung string

func (h hung) Error() string { return string(h) }

// sample samples the device and checks each reading.
func (r *rig) sample(check func(device.Reading) error) error {
	sensor, ok := r.dev.(device.Sensor)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), callTime)
	defer cancel()
	type result struct {
		all []device.Reading
		err error
	}
	done := make(chan result, 1)
	go func() {
		all, err := sensor.Sample(ctx)
		done <- result{all, err}
	}()
	select {
	case got := <-done:
		err := got.err
		for _, p := range got.all {
			if err == nil {
				err = check(p)
			}
		}
		return err
	case <-time.After(callTime + slack):
		return hung(fmt.Sprintf("after the %v of its context, Sample has not returned", callTime))
	}
}

// until repeats a check at the pace of the guard until it returns nil, or returns its last error.
func until(limit time.Duration, check func() error) error {
	end := time.Now().Add(limit)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %v: %w", limit, err)
		}
		time.Sleep(pause)
	}
}

// recovers waits until the device works, with its output at safe.
func (r *rig) recovers() error {
	err := until(r.Recover, func() error {
		if r.out.Name != "" {
			if failed, broken := r.apply(r.out.Safe, callTime); failed != nil || broken != nil {
				return errors.Join(broken, failed)
			}
			if !r.at(r.out.Safe) {
				return fmt.Errorf("Apply of the safe value succeeded, and %s is %v", r.out.Name, r.peer.Level(r.out.Name))
			}
		}
		return r.good()
	})
	if err != nil {
		return fmt.Errorf("the device does not work over a link that does: %w", err)
	}
	return nil
}

// notices waits until every point has a fault, and holds an Apply to fail.
func (r *rig) notices() error {
	if err := until(r.Notice, r.bad); err != nil {
		return fmt.Errorf("the lost link is not noticed: %w", err)
	}
	if r.out.Name == "" {
		return nil
	}
	failed, broken := r.apply(r.out.Safe, callTime)
	if failed == nil && broken == nil {
		return errors.New("Apply succeeded over a link that is lost")
	}
	return broken
}
