package guard

import (
	"context"
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
	// maxMissedReads is how many reads in a row may be late before that is a fault: a bus that
	// others keep busy says nothing of the output.
	maxMissedReads = 2
)

// Guard drives the outputs as its Machine decides. It is the sole owner of the
// actuators: nobody else may call them. All methods are safe for concurrent use.
type Guard struct {
	start time.Time
	wake  chan struct{} // a deadline has moved
	pace  chan struct{} // all is safe now, or no longer
	alive chan struct{} // unbuffered: Run takes from it

	latching sync.Mutex // keeps the latch and the machine of one mind; never on the way to safe
	latch    Latch

	mu      sync.Mutex
	workers []*worker
	driving context.Context // of the workers; nil before Run
	running sync.WaitGroup
	m       *Machine
	stops   uint32        // how often the emergency stop was asked for
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
	policies, workers, err := arrange(devices)
	if err != nil {
		return nil, err
	}
	return &Guard{
		start: time.Now(), workers: workers, latch: latch, m: NewMachine(policies, !latch.Armed()),
		wake: make(chan struct{}, 1), pace: make(chan struct{}, 1), alive: make(chan struct{}), changed: make(chan struct{}),
	}, nil
}

// Run first drives every output to safe and then keeps the leases until ctx
// ends. On its way out it drives everything to safe once more, for at most five
// seconds, and reports what could not be confirmed.
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

// Alive blocks until Run's loop, which keeps the deadlines, has gone round once, or ctx ends.
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
	return g.settle(ctx, func(*output) bool { return true })
}

// settle is Settle of some outputs.
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

// Told passes a reading, under its whole address, to the outputs that require its point.
// It does not block.
func (g *Guard) Told(r device.Reading) {
	g.mu.Lock()
	required := g.m.Requires(r.Point)
	g.mu.Unlock()
	if required {
		g.update(func(now Time) error {
			age := now - r.At.Sub(g.start) // exact: two readings keep their order
			g.m.Told(now, r.Point, r.Quality == device.Good, r.Value, age)
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

// Stop is the emergency stop: everything goes to safe at once and stays there,
// over restarts too, until Reset. It returns once the hardware is safe, or after
// five seconds. The error says which output is not known to be, or that a restart
// would forget.
func (g *Guard) Stop(ctx context.Context) error {
	g.update(func(Time) error { g.m.Stop(); g.stops++; return nil })
	g.interruptAll()
	g.latching.Lock()
	err := g.latch.Stop()
	if !g.Stopped() { // a Reset came in between
		g.update(func(Time) error { g.m.Stop(); g.stops++; return nil })
	}
	g.latching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	return Incomplete(g.Settle(ctx), err)
}

// Incomplete is the one fault of a stop after which outputs are late to be safe, or that
// is not latched, or nil.
func Incomplete(late, unlatched error) error {
	switch {
	case late == nil && unlatched == nil:
		return nil
	case late == nil:
		return device.Faultf(device.Unavailable, "%w", unlatched)
	case unlatched == nil:
		return late
	}
	short := device.AsFault(late)
	return device.Faultf(device.UnknownOutcome, "%w; %w", late, unlatched).Naming(short.Short, short.Names...)
}

// Reset ends the emergency stop that was asked for so many times (State). A stop that
// was asked for after that stays, and Reset fails. Only an owner's call may come here.
func (g *Guard) Reset(stops uint32) error {
	g.latching.Lock()
	defer g.latching.Unlock()
	if _, _, now := g.State(); now != stops {
		return ErrStoppedAgain
	}
	if err := g.latch.Reset(); err != nil {
		return device.Faultf(device.Unavailable, "the emergency stop stays: %w", err)
	}
	return g.update(func(Time) error {
		if g.stops != stops { // this stop now waits for the latch
			return ErrStoppedAgain
		}
		g.m.Reset()
		return nil
	})
}

// ErrStoppedAgain is why a Reset did not end the emergency stop.
var ErrStoppedAgain = device.Faultf(device.Unsafe, "the emergency stop was asked for again in the same moment and stays: see why, then run agentsite reset again")

// Recheck latches the emergency stop if the latch was removed since New, by a site that
// had no guard to ask.
func (g *Guard) Recheck() {
	if !g.latch.Armed() {
		g.update(func(Time) error { g.m.Stop(); return nil })
	}
}

// Stopped reports whether the emergency stop is latched.
func (g *Guard) Stopped() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.Stopped()
}

// State reports every output, in the order of the devices, whether the emergency stop
// is latched, and how often it has been asked for, all of the same moment.
func (g *Guard) State() (all []Status, stopped bool, stops uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.statuses(), g.m.Stopped(), g.stops
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
	return g.statuses()
}

// statuses is Status for a caller who holds mu.
func (g *Guard) statuses() []Status {
	now := g.now()
	all := make([]Status, 0, len(g.m.outputs))
	for i := range g.m.outputs {
		all = append(all, g.m.Status(now, i))
	}
	return all
}

// Changed is closed when anything that Status and Stopped report has changed since.
func (g *Guard) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// Safe reports whether every output is known to be at its safe value, and nobody has
// asked for another.
func (g *Guard) Safe() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.Safe()
}

// Away blocks until an output is not known to be safe, or ctx ends.
func (g *Guard) Away(ctx context.Context) error {
	return g.wait(ctx, func(Time) bool { return !g.m.Safe() })
}

// ToSafe ends every lease, for one of the reasons Silence and Unread. Outputs may be
// moved again.
func (g *Guard) ToSafe(why Reason) {
	g.update(func(Time) error { g.m.ToSafe(why); return nil })
	g.interruptAll()
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

// outlook is what decides when the guard wakes up: Run's next deadline, and whether all
// outputs are safe, on which the read-backs depend.
type outlook struct {
	next Time
	safe bool
}

func (g *Guard) outlook() outlook {
	next, _ := g.m.Next()
	return outlook{next, g.m.Safe()}
}

// tell wakes everything that waits for a change of the machine. The caller holds mu.
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
