package guard

import (
	"context"
	"maps"
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
	// proofTimeout bounds the wait of a stop, after all outputs are safe, for reading them back.
	proofTimeout = 250 * time.Millisecond
	retryFirst   = 100 * time.Millisecond
	retryLast    = 5 * time.Second
	logPause     = time.Minute // between two lines about one device that does not follow
	// The intervals of read-backs while an output is away from safe, and while all are safe.
	// The second is long, because it only finds outputs that something else switches on.
	readAway = time.Second
	readSafe = 30 * time.Second
	// readSafeEarly is the shortest interval while all outputs are safe; see ReadBackEarly.
	readSafeEarly = 20 * time.Second
	// maxLate limits the time for which reads are late before a fault. A read is also late while others
	// use the bus, or a chip hangs and blocks it.
	maxLate = 3 * applyTimeout
)

// Guard drives the outputs as its Machine decides. It is the only caller of the actuators.
// All methods are safe for concurrent use.
type Guard struct {
	start time.Time
	wake  chan struct{} // a deadline has moved
	pace  chan struct{} // all is safe now, or no longer, or the devices changed
	early chan struct{} // ReadBackEarly was called
	alive chan struct{} // unbuffered: Run takes from it

	latching sync.Mutex // keeps the latch and the machine consistent; a return to safe never takes it
	latch    Latch

	mu      sync.Mutex
	workers []*worker
	driving context.Context // of the workers; nil before Run
	running sync.WaitGroup
	m       *Machine
	kept    map[string]bool // the latched outputs that are stored
	keeping bool            // others are being stored
	stops   uint32          // number of requested emergency stops
	changed chan struct{}   // closed and replaced whenever an output changed
}

// Actuated is a device with outputs for the guard. They are read back if it is also a
// device.Sensor.
type Actuated struct {
	Actuator device.Actuator
	Policies []Policy // one for each of the device's outputs
}

// New returns a guard of the devices. Nothing moves before Run. The state of all outputs is
// unknown at first: Run drives them to safe. New refuses invalid policies and duplicate
// outputs.
func New(devices []Actuated, latch Latch) (*Guard, error) {
	policies, workers, err := arrange(devices)
	if err != nil {
		return nil, err
	}
	latched, err := latch.Latched()
	m := NewMachine(policies, !latch.Armed() || err != nil) // nobody knows which outputs wait for a reset
	m.latch(latched)
	return &Guard{
		start: time.Now(), workers: workers, latch: latch, m: m, kept: maps.Clone(m.latches),
		wake: make(chan struct{}, 1), pace: make(chan struct{}, 1), early: make(chan struct{}, 1), alive: make(chan struct{}), changed: make(chan struct{}),
	}, nil
}

// Run first drives every output to safe, and then enforces the leases until ctx ends. At the
// end it drives everything to safe again, for at most five seconds, and returns the outputs
// that are not confirmed.
func (g *Guard) Run(ctx context.Context) error {
	driving, stopDriving := context.WithCancel(context.WithoutCancel(ctx))
	defer g.running.Wait()
	defer func() {
		g.mu.Lock() // no further worker starts
		defer g.mu.Unlock()
		stopDriving()
	}()
	g.mu.Lock()
	g.driving = driving
	for _, h := range g.workers {
		g.begin(h)
	}
	g.mu.Unlock()
	g.running.Go(func() { g.scheduleReadBacks(driving) })

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
			g.interruptAll()
			go func() { // while the ramps to safe go on here
				settle, cancel := context.WithTimeout(driving, parkTimeout)
				defer cancel()
				parked <- g.Settle(settle)
			}()
		case <-timer.C:
		case <-g.wake:
		case <-g.alive: // nothing has changed
			continue
		}
		g.update(func(now Time) error { g.m.Tick(now); return nil })
		g.keepLatched()
		g.mu.Lock()
		next, ok := g.m.Next()
		g.mu.Unlock()
		timer.Stop()
		if ok {
			timer.Reset(next - g.now())
		}
	}
}

// Alive blocks until Run's loop, which keeps the deadlines, responds, or ctx ends.
func (g *Guard) Alive(ctx context.Context) error {
	select {
	case g.alive <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Settle blocks until every output has its target value, or ctx ends. Then an UnknownOutcome
// fault names the outputs that are not confirmed.
func (g *Guard) Settle(ctx context.Context) error {
	return g.settle(ctx, func(*output) bool { return true })
}

// settle is Settle for the outputs that waited selects.
func (g *Guard) settle(ctx context.Context, waited func(*output) bool) error {
	var late, names []string
	err := g.wait(ctx, func(now Time) bool {
		late, names = late[:0], names[:0]
		for i := range g.m.outputs {
			s := g.m.Status(now, i)
			if _, pending := g.m.Pending(i); waited(&g.m.outputs[i]) && (pending || s.Value != s.Goal) {
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

// Move gives holder a lease (see Machine.Move) and returns once the hardware has the value, or
// is on a ramp to it. It returns a fault if the machine refuses, if the hardware does not
// follow (it is then driven to safe) or if ctx ends first.
func (g *Guard) Move(ctx context.Context, holder, output string, v device.Value, length time.Duration) (Status, error) {
	return g.move(ctx, output, v, func(now Time) error { return g.m.Move(now, holder, output, v, length) })
}

// Renew is Move for the present holder only; see Machine.Renew.
func (g *Guard) Renew(ctx context.Context, holder, output string, v device.Value, length time.Duration) (Status, error) {
	return g.move(ctx, output, v, func(now Time) error { return g.m.Renew(now, holder, output, v, length) })
}

// MoveOver is Move for a holder that outranks from; see Machine.MoveOver.
func (g *Guard) MoveOver(ctx context.Context, holder, from, output string, v device.Value, length time.Duration) (Status, error) {
	return g.move(ctx, output, v, func(now Time) error { return g.m.MoveOver(now, holder, from, output, v, length) })
}

// move makes a decision of the machine about an output, and waits until the hardware has v.
func (g *Guard) move(ctx context.Context, output string, v device.Value, decide func(now Time) error) (Status, error) {
	if ctx.Err() != nil {
		return Status{}, device.Faultf(device.Expired, "the call came too late: %w", ctx.Err())
	}
	if err := g.update(func(now Time) error {
		g.m.Tick(now) // an expired lease must not block the move
		return decide(now)
	}); err != nil {
		return Status{}, err
	}
	return g.reach(ctx, output, v)
}

// Try returns the fault that Move would return now, and moves nothing. It does not block.
func (g *Guard) Try(_ context.Context, holder, output string, v device.Value, length time.Duration) error {
	return g.update(func(now Time) error {
		g.m.Tick(now)
		return g.m.Try(now, holder, output, v, length)
	})
}

// TakeOver makes holder the holder of an output that another principal holds. The caller
// must be an owner.
func (g *Guard) TakeOver(holder, output string) error {
	return g.update(func(Time) error { return g.m.TakeOver(holder, output) })
}

// Told passes a reading, with its full address, to the outputs that require its point. It
// does not block.
func (g *Guard) Told(r device.Reading) {
	g.mu.Lock()
	required := g.m.Requires(r.Point)
	g.mu.Unlock()
	if required {
		g.update(func(now Time) error {
			age := now - r.At.Sub(g.start) // exact, so that readings keep their order
			g.m.Told(now, r.Point, r.Quality == device.Good, r.Value, age)
			return nil
		})
	}
}

// Release drives an output to safe, and returns once the hardware confirms it.
func (g *Guard) Release(ctx context.Context, output string) (Status, error) {
	if err := g.update(func(Time) error { return g.m.Release(output) }); err != nil {
		return Status{}, err
	}
	p, _ := g.Policy(output)
	return g.reach(ctx, output, p.Safe)
}

// reach waits until an output has the value v, is on a ramp to it from safe, or has got
// another target.
func (g *Guard) reach(ctx context.Context, output string, v device.Value) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	overtaken := false
	err = g.wait(ctx, func(now Time) bool {
		i, gone := g.m.find(output)
		if gone != nil {
			overtaken = true
			return true
		}
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

// Stopped reports whether the emergency stop is latched.
func (g *Guard) Stopped() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.Stopped()
}

// State returns a consistent snapshot: every output in the order of the devices, whether the
// emergency stop is latched, and how often it was requested.
func (g *Guard) State() (all []Status, stopped bool, stops uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.statuses(), g.m.Stopped(), g.stops
}

// Policy returns the policy of an output.
func (g *Guard) Policy(output string) (Policy, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.Policy(output)
}

// Status reports every output, in the order of the devices.
func (g *Guard) Status() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.statuses()
}

// StatusOf reports one output; ok is false where there is none of that name.
func (g *Guard) StatusOf(output string) (s Status, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i, ok := g.m.index[output]
	if !ok {
		return s, false
	}
	return g.m.Status(g.now(), i), true
}

// statuses is Status. The caller holds mu.
func (g *Guard) statuses() []Status {
	now := g.now()
	all := make([]Status, 0, len(g.m.outputs))
	for i := range g.m.outputs {
		all = append(all, g.m.Status(now, i))
	}
	return all
}

// Changed returns a channel that is closed at the next change of Status or Stopped.
func (g *Guard) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// Safe reports whether every output is confirmed at its safe value and has no other target.
func (g *Guard) Safe() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.Safe()
}

// Away blocks until an output is not confirmed as safe, or ctx ends.
func (g *Guard) Away(ctx context.Context) error {
	return g.wait(ctx, func(Time) bool { return !g.m.Safe() })
}

// ToSafe ends every lease, for one of the reasons Silence and Unread. Outputs may be
// moved again.
func (g *Guard) ToSafe(why Reason) {
	g.update(func(Time) error { g.m.ToSafe(why); return nil })
	g.interruptAll()
}

// because returns a fault as the end of a sentence.
func because(fault string) string {
	if fault == "" {
		return " yet"
	}
	return ": " + fault
}

// update changes the machine and wakes all waiters.
func (g *Guard) update(change func(now Time) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.tell(g.outlook())
	return change(g.now())
}

// outlook decides when the guard wakes up: Run's next deadline, and whether all outputs are
// safe, which sets the interval of read-backs.
type outlook struct {
	next Time
	safe bool
}

func (g *Guard) outlook() outlook {
	next, _ := g.m.Next()
	return outlook{next, g.m.Safe()}
}

// tell wakes all that wait for a change of the machine. The caller holds mu.
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
	for _, h := range g.workers {
		if g.due(h) {
			h.interrupt()
		}
	}
}

// wait blocks until done, called with the lock held, returns true.
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
