package guard

import (
	"context"
	"slices"

	"agentsite/device"
)

// Change replaces the guard's devices. An output with the same device and policy is not
// affected. Every other output goes to safe first, for at most five seconds; the error names
// those that are not confirmed. New outputs start as after a restart. When Change returns,
// the guard no longer calls removed devices. To use a removed device's resource in another
// device, remove and close it first, and call Change again.
func (g *Guard) Change(ctx context.Context, devices []Actuated) error {
	policies, next, err := arrange(devices)
	if err != nil {
		return err
	}
	goes := func(h *worker) bool { return !slices.ContainsFunc(next, h.drives) }
	g.update(func(Time) error {
		for _, h := range g.workers {
			for _, o := range h.outputs {
				if p, _ := g.m.Policy(o.address); goes(h) || !slices.Contains(policies, p) {
					g.m.Retire(o.address)
				}
			}
		}
		return nil
	})
	g.interruptAll()
	settle, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	late := g.settle(settle, func(o *output) bool { return o.retired })

	var gone []*worker
	g.mu.Lock()
	if late != nil && (ctx.Err() != nil || slices.ContainsFunc(g.workers, func(h *worker) bool { return goes(h) && h.writing })) {
		g.mu.Unlock()
		return device.Faultf(device.Unavailable, "the outputs stay as they were: %w", late)
	}
	before := g.outlook()
	g.m.Adopt(g.now(), policies)
	for i, h := range next {
		if k := slices.IndexFunc(g.workers, h.drives); k >= 0 {
			next[i], g.workers[k].outputs = g.workers[k], h.outputs
		} else {
			g.begin(h)
		}
	}
	for _, h := range g.workers {
		if goes(h) {
			gone = append(gone, h)
		}
	}
	g.workers = next
	g.tell(before)
	poke(g.pace) // the first device that can be read back may have come
	g.mu.Unlock()
	for _, h := range gone {
		if h.end != nil {
			h.end()
			<-h.ended
		}
	}
	return late
}

// begin starts a worker if Run is running. The caller holds mu.
func (g *Guard) begin(h *worker) {
	if g.driving == nil || g.driving.Err() != nil {
		return
	}
	var ctx context.Context
	ctx, h.end = context.WithCancel(g.driving)
	g.running.Go(func() {
		defer close(h.ended)
		g.drive(ctx, h)
	})
}

// arrange returns a worker for each device, and all policies.
func arrange(devices []Actuated) (policies []Policy, workers []*worker, err error) {
	for _, d := range devices {
		h := &worker{act: d.Actuator, wake: make(chan struct{}, 1), look: make(chan struct{}, 1), ended: make(chan struct{})}
		h.sensor, _ = d.Actuator.(device.Sensor)
		name := ""
		for _, p := range d.Policies {
			if err := p.Validate(); err != nil {
				return nil, nil, err
			}
			of, point, ok := device.SplitAddress(p.Output)
			if !ok || name != "" && of != name {
				return nil, nil, device.Faultf(device.Internal, "%q is not the address of an output of %s", p.Output, name)
			}
			if slices.ContainsFunc(policies, func(q Policy) bool { return q.Output == p.Output }) {
				return nil, nil, device.Faultf(device.Invalid, "%s is there twice", p.Output)
			}
			name = of
			h.outputs = append(h.outputs, driven{p.Output, point})
			policies = append(policies, p)
		}
		workers = append(workers, h)
	}
	return policies, workers, nil
}
