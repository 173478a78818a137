package guard

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"
)

const (
	// applyTimeout bounds one write to the hardware.
	applyTimeout = 2 * time.Second
	// parkTimeout bounds every wait for the hardware: of a call, of the emergency
	// stop and of the process's end.
	parkTimeout = 5 * time.Second
	retryFirst  = 100 * time.Millisecond
	retryLast   = 5 * time.Second
	// Outputs are read back so often while any is away from safe, and while none is:
	// then what is missed is what somebody else switches on, and sleep is worth more.
	readAway = time.Second
	readSafe = 30 * time.Second
	// mayMiss is how many reads in a row may be late before that is a fault: a bus that
	// others keep busy says nothing of the output.
	mayMiss = 2
)

// Guard drives the outputs as its Machine decides. It is the sole owner of the
// actuators: nobody else may call them. All methods are safe for concurrent use.
type Guard struct {
	start time.Time
	hands []*hand
	wake  chan struct{} // a deadline has moved
	pace  chan struct{} // all is safe now, or no longer
	alive chan struct{} // unbuffered: Run takes from it

	latching sync.Mutex // keeps the latch and the machine of one mind; never on the way to safe
	latch    Latch

	mu      sync.Mutex
	m       *Machine
	changed chan struct{} // closed and replaced whenever an output changed
}

// Actuated is a device whose outputs come under the guard. Where it is a device.Sensor
// too, they are read back.
type Actuated struct {
	Actuator device.Actuator
	Policies []Policy // one for each of the device's outputs
}

// New makes a guard over the devices. Nothing moves before Run, and after a start
// nothing is known of an output: Run drives them all to safe. Policies that are not
// valid, and an output that is there twice, are refused.
func New(devices []Actuated, latch Latch) (*Guard, error) {
	var policies []Policy
	var hands []*hand
	for _, d := range devices {
		h := &hand{act: d.Actuator, wake: make(chan struct{}, 1), look: make(chan struct{}, 1)}
		h.sensor, _ = d.Actuator.(device.Sensor)
		for _, p := range d.Policies {
			if err := p.Validate(); err != nil {
				return nil, err
			}
			name, point, ok := device.SplitAddress(p.Output)
			if !ok || h.device != "" && name != h.device {
				return nil, device.Faultf(device.Internal, "%q is not the address of an output of %s", p.Output, h.device)
			}
			if slices.ContainsFunc(policies, func(q Policy) bool { return q.Output == p.Output }) {
				return nil, device.Faultf(device.Invalid, "%s is there twice", p.Output)
			}
			h.device, h.points, h.outputs = name, append(h.points, point), append(h.outputs, len(policies))
			policies = append(policies, p)
		}
		hands = append(hands, h)
	}
	return &Guard{
		start: time.Now(), hands: hands, latch: latch, m: NewMachine(policies, !latch.Armed()),
		wake: make(chan struct{}, 1), pace: make(chan struct{}, 1), alive: make(chan struct{}), changed: make(chan struct{}),
	}, nil
}

// Run first drives every output to safe and then keeps the leases until ctx
// ends. On its way out it drives everything to safe once more, for at most five
// seconds, and reports what could not be confirmed.
func (g *Guard) Run(ctx context.Context) error {
	driving, stopDriving := context.WithCancel(context.WithoutCancel(ctx))
	var hands sync.WaitGroup
	defer hands.Wait()
	defer stopDriving()
	for _, h := range g.hands {
		hands.Go(func() { g.drive(driving, h) })
	}
	hands.Go(func() { g.look(driving) })

	timer := time.NewTimer(0)
	defer timer.Stop()
	ending, parked := ctx.Done(), make(chan error, 1)
	for {
		select {
		case err := <-parked:
			return err
		case <-ending:
			ending = nil
			g.update(func(Time) error { g.m.Park(); return nil })
			g.hurry()
			go func() { // while the ramps to safe go on here
				settle, cancel := context.WithTimeout(driving, parkTimeout)
				defer cancel()
				parked <- g.Settle(settle)
			}()
		case <-timer.C:
		case <-g.wake:
		case <-g.alive: // nothing has changed, and nobody need be told
			continue
		}
		g.update(func(now Time) error { g.m.Tick(now); return nil })
		g.mu.Lock()
		next, ok := g.m.Next()
		g.mu.Unlock()
		timer.Stop()
		if ok {
			timer.Reset(next - g.now())
		}
	}
}

// Alive blocks until Run, which keeps the deadlines, has come round, or ctx ends.
func (g *Guard) Alive(ctx context.Context) error {
	select {
	case g.alive <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Settle blocks until every output is what it should be, or ctx ends; then one
// UnknownOutcome fault names all those that are not known to be.
func (g *Guard) Settle(ctx context.Context) error {
	var late, names []string
	err := g.wait(ctx, func(now Time) bool {
		late, names = late[:0], names[:0]
		for i := range g.m.outputs {
			s := g.m.Status(now, i)
			if _, pending := g.m.Pending(i); pending || s.Value != s.Goal {
				late, names = append(late, s.Output+" is not known to be at its value"+because(s.Fault)), append(names, s.Output)
			}
		}
		return len(late) == 0
	})
	if err != nil {
		return device.Faultf(device.UnknownOutcome, "%s", strings.Join(late, "; ")).Naming("not every output is known to be at its value yet", names...)
	}
	return nil
}

// Move gives holder a lease (see Machine.Move) and returns once the hardware has
// the value, or is on a ramp to it. It fails with a fault when the machine refuses,
// when the hardware does not follow (it is then driven to safe) or when ctx ends first.
func (g *Guard) Move(ctx context.Context, holder, output string, v device.Value, length time.Duration) (Status, error) {
	if ctx.Err() != nil {
		return Status{}, device.Faultf(device.Expired, "the call came too late: %w", ctx.Err())
	}
	if err := g.update(func(now Time) error {
		g.m.Tick(now) // a lease that is over must not stand in the way
		return g.m.Move(now, holder, output, v, length)
	}); err != nil {
		return Status{}, err
	}
	return g.reach(ctx, output, v)
}

// Try says what Move would refuse now, and moves nothing. It does not wait.
func (g *Guard) Try(_ context.Context, holder, output string, v device.Value, length time.Duration) error {
	return g.update(func(now Time) error {
		g.m.Tick(now)
		return g.m.Try(now, holder, output, v, length)
	})
}

// TakeOver makes holder the holder of an output that somebody else holds. Only an
// owner's call may come here.
func (g *Guard) TakeOver(holder, output string) error {
	return g.update(func(Time) error { return g.m.TakeOver(holder, output) })
}

// Told takes in a reading of any point, with its whole address: some outputs require
// one. It is quick.
func (g *Guard) Told(r device.Reading) {
	g.mu.Lock()
	required := g.m.Requires(r.Point)
	g.mu.Unlock()
	if required {
		g.update(func(now Time) error {
			g.m.Told(now, r.Point, r.Quality == device.Good, r.Value, time.Since(r.At))
			return nil
		})
	}
}

// Release returns an output to safe and returns once the hardware is there.
func (g *Guard) Release(ctx context.Context, output string) (Status, error) {
	if err := g.update(func(Time) error { return g.m.Release(output) }); err != nil {
		return Status{}, err
	}
	p, _ := g.Policy(output)
	return g.reach(ctx, output, p.Safe)
}

// reach waits until an output has the value v, or is on a ramp to it from safe, or is
// meant to have another.
func (g *Guard) reach(ctx context.Context, output string, v device.Value) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	overtaken := false
	err = g.wait(ctx, func(now Time) bool {
		i, _ := g.m.find(output)
		s = g.m.Status(now, i)
		_, pending := g.m.Pending(i)
		overtaken = s.Goal != v
		arrived := s.Value == v || s.Holder != ""
		return overtaken || !pending && arrived || s.Fault != ""
	})
	switch {
	case err != nil:
		return s, device.Faultf(device.UnknownOutcome, "%s has not answered yet: read it to see where it is (%w)", output, err)
	case s.Fault != "":
		return s, device.Faultf(device.Offline, "%s did not follow and is driven to safe: %s", output, s.Fault)
	case overtaken:
		return s, device.Faultf(device.Unavailable, "%s was sent elsewhere in the same moment: read it to see where it is", output)
	}
	return s, nil
}

// Stop is the emergency stop: everything goes to safe at once and stays there,
// over restarts too, until Reset. It returns once the hardware is safe, or after
// five seconds. The error says which output is not known to be, or that a restart
// would forget.
func (g *Guard) Stop(ctx context.Context) error {
	stop := func(Time) error { g.m.Stop(); return nil }
	g.update(stop)
	g.hurry()
	g.latching.Lock()
	err := g.latch.Stop()
	g.update(stop) // over a Reset that came in between
	g.latching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	late := g.Settle(ctx)
	switch {
	case late == nil && err == nil:
		return nil
	case late == nil:
		return device.Faultf(device.Unavailable, "%w", err)
	case err == nil:
		return late
	}
	short := device.AsFault(late)
	return device.Faultf(device.UnknownOutcome, "%w; %w", late, err).Naming(short.Short, short.Names...) // one fault: callers are shown one
}

// Reset ends the emergency stop. Only an owner's call may come here.
func (g *Guard) Reset() error {
	g.latching.Lock()
	defer g.latching.Unlock()
	if err := g.latch.Reset(); err != nil {
		return device.Faultf(device.Unavailable, "the emergency stop stays: %w", err)
	}
	return g.update(func(Time) error { g.m.Reset(); return nil })
}

// Stopped reports whether the emergency stop is latched.
func (g *Guard) Stopped() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.Stopped()
}

// Policy returns what an output is allowed to do.
func (g *Guard) Policy(output string) (Policy, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.Policy(output)
}

// Status reports every output, in the order of the devices.
func (g *Guard) Status() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	all := make([]Status, 0, len(g.m.outputs))
	for i := range g.m.outputs {
		all = append(all, g.m.Status(now, i))
	}
	return all
}

// Watch emits a reading whenever an output changes, with its whole address,
// until ctx ends; first of all it emits them all. An output whose state is not
// known reads as a fault.
func (g *Guard) Watch(ctx context.Context, emit func(device.Reading)) error {
	last := make([]Status, len(g.m.outputs))
	for {
		var changes []device.Reading
		err := g.wait(ctx, func(now Time) bool {
			changes = changes[:0]
			for i := range g.m.outputs {
				s := g.m.Status(now, i)
				if s.Output != last[i].Output || s.Value != last[i].Value || s.Fault != last[i].Fault {
					changes = append(changes, s.Reading())
				}
				last[i] = s
			}
			return len(changes) > 0
		})
		if err != nil {
			return err
		}
		for _, r := range changes {
			emit(r)
		}
	}
}

// Follow calls emit with every output's status and whether the emergency stop is
// latched: at once, and after every change, until ctx ends. What changes while emit
// runs is told together.
func (g *Guard) Follow(ctx context.Context, emit func(all []Status, stopped bool)) {
	for {
		g.mu.Lock()
		changed := g.changed
		g.mu.Unlock()
		emit(g.Status(), g.Stopped())
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Safe reports whether every output is known to be at its safe value, and nobody has
// asked for another.
func (g *Guard) Safe() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.Safe()
}

// ToSafe ends every lease. Outputs may be moved again.
func (g *Guard) ToSafe() {
	g.update(func(Time) error { g.m.ToSafe(); return nil })
	g.hurry()
}

// because is a cause as the end of a sentence.
func because(fault string) string {
	if fault == "" {
		return " yet"
	}
	return ": " + fault
}

// update changes the machine and tells everybody who waits for what came of it.
func (g *Guard) update(change func(now Time) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.tell(g.outlook())
	return change(g.now())
}

// outlook is what wakes the guard up: when Run has something to do, and whether there
// is much to look at.
type outlook struct {
	next Time
	safe bool
}

func (g *Guard) outlook() outlook {
	next, _ := g.m.Next()
	return outlook{next, g.m.Safe()}
}

// tell tells everybody who waits that the machine has changed. It is called under the
// lock.
func (g *Guard) tell(before outlook) {
	now := g.outlook()
	if now.next != before.next {
		poke(g.wake)
	}
	if now.safe != before.safe {
		poke(g.pace)
	}
	close(g.changed)
	g.changed = make(chan struct{})
	for _, h := range g.hands {
		if slices.ContainsFunc(h.outputs, g.m.due) {
			h.stir()
		}
	}
}

// wait blocks until done, called under the lock, says so.
func (g *Guard) wait(ctx context.Context, done func(now Time) bool) error {
	for {
		g.mu.Lock()
		ok, changed := done(g.now()), g.changed
		g.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (g *Guard) now() Time { return time.Since(g.start) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
