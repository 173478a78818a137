package lantest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

const holder = "ann"

// guarded is a guard that runs over the device and others.
type guarded struct {
	*guard.Guard
	output string // the address of the device's first output
	end    func() error
}

// guard runs a guard over the device and the others, with all outputs at safe.
func (r *rig) guard(others ...guard.Actuated) (*guarded, error) {
	folder := r.t.TempDir()
	latch := guard.Latch{File: filepath.Join(folder, "armed"), Flag: filepath.Join(folder, "run", "stopped")}
	if err := latch.Reset(); err != nil {
		return nil, err
	}
	far := guard.Actuated{Actuator: r.dev.(device.Actuator)}
	for _, p := range r.dev.Describe().Points {
		if p.Kind.Output() {
			far.Policies = append(far.Policies, policy("far", p))
		}
	}
	g, err := guard.New(append(others, far), latch)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	end := sync.OnceValue(func() error { cancel(); return <-ended })
	r.t.Cleanup(func() { _ = end() })
	settling, done := context.WithTimeout(ctx, r.Recover)
	defer done()
	if err := g.Settle(settling); err != nil {
		return nil, fmt.Errorf("the guard does not bring the outputs to safe: %w", err)
	}
	return &guarded{g, device.Address("far", r.out.Name), end}, nil
}

func policy(dev string, p device.Point) guard.Policy {
	return guard.Policy{Output: device.Address(dev, p.Name), Kind: p.Kind, Range: p.Range, Safe: p.Safe, MaxOn: guard.Unlimited}
}

// status returns the status of the device's first output.
func (g *guarded) status() guard.Status {
	for _, s := range g.Status() {
		if s.Output == g.output {
			return s
		}
	}
	return guard.Status{}
}

// away moves the device's first output away from safe.
func (r *rig) moved(g *guarded) error {
	if _, err := g.Move(r.t.Context(), holder, g.output, r.away(), time.Minute); err != nil {
		return fmt.Errorf("the guard does not move it: %w", err)
	}
	if !r.at(r.away()) {
		return fmt.Errorf("the guard has moved %s, and it is %v", r.out.Name, r.peer.Level(r.out.Name))
	}
	return nil
}

// isSafe waits until the guard and the peer agree that the output is safe.
func (r *rig) isSafe(g *guarded) error {
	err := until(r.Recover, func() error {
		if s := g.status(); !s.Safe || s.Fault != "" {
			return fmt.Errorf("safe: %v, fault: %s", s.Safe, s.Fault)
		}
		if !r.at(r.out.Safe) {
			return fmt.Errorf("%s is %v", r.out.Name, r.peer.Level(r.out.Name))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("it is not driven to safe: %w", err)
	}
	return nil
}

// lease waits until the lease has ended because of a fault.
func (r *rig) leaseEnds(g *guarded) error {
	return until(r.Notice, func() error {
		if s := g.status(); s.Holder != "" {
			return errors.New("the guard does not notice it")
		}
		return nil
	})
}

// guardLost: an output that is away when the link is lost is a fault, is tried again, and is safe once the link is back.
func guardLost(r *rig) error {
	if err := r.outputs(); err != nil {
		return err
	}
	_, sensor := r.dev.(device.Sensor)
	g, err := r.guard()
	if err != nil {
		return err
	}
	for _, lose := range []func(){r.proxy.Cut, r.proxy.Freeze} {
		if err := r.moved(g); err != nil {
			return err
		}
		lose()
		if !sensor {
			if _, err := g.Release(r.t.Context(), g.output); err == nil {
				return errors.New("a release succeeded over a link that is lost")
			}
		}
		if err := r.leaseEnds(g); err != nil {
			return err
		}
		if s := g.status(); s.Safe || s.Fault == "" {
			return fmt.Errorf("safe: %v, fault: %q while the link is lost", s.Safe, s.Fault)
		}
		r.proxy.Mend()
		if err := r.isSafe(g); err != nil {
			return err
		}
	}
	return g.end()
}

// guardSecondWriter: the guard ends the lease of an output that somebody else has changed, and drives it to safe.
func guardSecondWriter(r *rig) error {
	if err := r.outputs(); err != nil {
		return err
	}
	if _, ok := r.dev.(device.Sensor); !ok || r.peer.Set == nil {
		return skip("nothing is read back, or no Set")
	}
	g, err := r.guard()
	if err != nil {
		return err
	}
	if err := r.moved(g); err != nil {
		return err
	}
	r.peer.Set(r.out.Name, r.out.Safe)
	if err := r.leaseEnds(g); err != nil {
		return err
	}
	if err := r.isSafe(g); err != nil {
		return err
	}
	return g.end()
}

// near is an output of the board itself.
type near struct {
	mu   sync.Mutex
	safe chan time.Time // when it was driven to safe
	on   bool
}

func (n *near) Apply(_ context.Context, _ string, v device.Value) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.on && !v.Bool() {
		n.safe <- time.Now()
	}
	n.on = v.Bool()
	return nil
}

// guardOthers: while the link does all it can to disturb, nine outputs of the board are moved and returned in time.
func guardOthers(r *rig) error {
	if err := r.outputs(); err != nil {
		return err
	}
	const lease = time.Second
	var nears [9]*near
	var others []guard.Actuated
	relay := device.Point{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)}
	for i := range nears {
		nears[i] = &near{safe: make(chan time.Time, 1)}
		others = append(others,
			guard.Actuated{Actuator: nears[i], Policies: []guard.Policy{policy(fmt.Sprintf("near%d", i), relay)}})
	}
	g, err := r.guard(others...)
	if err != nil {
		return err
	}
	if err := r.moved(g); err != nil {
		return err
	}
	disturb := []func(){r.proxy.Freeze, r.proxy.Cut}
	if r.peer.Flood != nil {
		disturb = append(disturb, func() { r.proxy.Mend(); r.peer.Flood() })
	}
	for _, d := range disturb {
		d()
		sleeper := make(chan time.Duration, 1)
		go func() { // how late the machine itself is
			worst := time.Duration(0)
			for range 50 {
				begun := time.Now()
				time.Sleep(lease / 40)
				worst = max(worst, time.Since(begun)-lease/40)
			}
			sleeper <- worst
		}()
		var due [len(nears)]time.Time
		for i := range nears {
			if _, err := g.Move(r.t.Context(), holder, fmt.Sprintf("near%d/relay", i), device.Bool(true), lease); err != nil {
				return fmt.Errorf("another output is not moved: %w", err)
			}
			due[i] = time.Now().Add(lease)
		}
		var late time.Duration
		for i, n := range nears {
			select {
			case at := <-n.safe:
				late = max(late, at.Sub(due[i]))
			case <-time.After(10 * time.Second):
				return errors.New("another output is not returned to safe")
			}
		}
		machine := <-sleeper
		r.t.Logf("another output is late by %v, a sleeper by %v", late, machine)
		if late > 200*time.Millisecond+2*machine {
			return fmt.Errorf("another output is returned to safe %v late, a sleeper wakes up %v late", late, machine)
		}
	}
	return nil
}
