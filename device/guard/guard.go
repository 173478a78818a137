package guard

import (
	"context"
	"log/slog"
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
)

// Guard drives the outputs as its Machine decides. It is the sole owner of the
// actuators: nobody else may call them. All methods are safe for concurrent use.
type Guard struct {
	start time.Time
	hands []*hand
	wake  chan struct{} // a deadline has moved

	latching sync.Mutex // keeps the latch and the machine of one mind; never on the way to safe
	latch    Latch

	mu      sync.Mutex
	m       *Machine
	changed chan struct{} // closed and replaced whenever an output changed
}

// hand drives the outputs of one device: one write at a time, and a device that
// hangs holds up nobody else.
type hand struct {
	device  string
	act     device.Actuator
	outputs []int    // in the machine
	points  []string // of the device, beside outputs
	wake    chan struct{}
	stop    context.CancelFunc // of its driving; nil before that has begun
	done    chan struct{}      // closed when its driving has ended
}

// Actuated is a device whose outputs come under the guard.
type Actuated struct {
	Actuator device.Actuator
	Policies []Policy // one for each of the device's outputs
}

// New makes a guard over the devices. Nothing moves before Run.
func New(devices []Actuated, latch Latch) (*Guard, error) {
	g := &Guard{
		start: time.Now(), latch: latch, m: NewMachine(nil, !latch.Armed()),
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	for _, d := range devices {
		if err := g.Add(d); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Add takes a device in. Its outputs are unknown, and Run drives them to safe. A
// device whose policies are not valid, or whose outputs are here already, is refused
// and changes nothing.
func (g *Guard) Add(d Actuated) error {
	h := &hand{act: d.Actuator, wake: make(chan struct{}, 1), done: make(chan struct{})}
	return g.update(func(now Time) error {
		for k, p := range d.Policies {
			if err := p.Validate(); err != nil {
				return err
			}
			name, point, ok := device.SplitAddress(p.Output)
			if !ok || k > 0 && name != h.device {
				return device.Faultf(device.Internal, "%q is not the address of an output of %s", p.Output, h.device)
			}
			_, err := g.m.find(p.Output)
			if err == nil || slices.Contains(h.points, point) {
				return device.Faultf(device.Invalid, "%s is there twice", p.Output)
			}
			h.device, h.points = name, append(h.points, point)
		}
		for _, p := range d.Policies {
			h.outputs = append(h.outputs, g.m.Add(now, p))
		}
		g.hands = append(g.hands, h)
		poke(g.wake)
		return nil
	})
}

// Drop takes a device away, while Run runs: its leases end, its outputs go to safe,
// and then nothing drives them any more. It waits for the hardware as long as patience
// lasts and nothing else cuts that short; the error says which output is not known to
// be safe. A device without outputs is dropped already.
func (g *Guard) Drop(name string, patience time.Duration) error {
	var h *hand
	g.update(func(Time) error {
		if i := slices.IndexFunc(g.hands, func(h *hand) bool { return h.device == name }); i >= 0 {
			h = g.hands[i]
			for _, o := range h.outputs {
				g.m.Leave(o)
			}
			poke(h.wake)
		}
		return nil
	})
	if h == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	late := g.settle(ctx, func(i int) bool { return slices.Contains(h.outputs, i) })
	g.mu.Lock()
	stop := h.stop
	g.hands = slices.DeleteFunc(g.hands, func(other *hand) bool { return other == h })
	g.mu.Unlock()
	if stop != nil {
		stop()
		<-h.done
	}
	g.update(func(Time) error {
		for _, o := range h.outputs {
			g.m.Drop(o)
		}
		return nil
	})
	return late
}

// Run first drives every output to safe and then keeps the leases until ctx
// ends. On its way out it drives everything to safe once more, for at most five
// seconds, and reports what could not be confirmed.
func (g *Guard) Run(ctx context.Context) error {
	driving, stopDriving := context.WithCancel(context.WithoutCancel(ctx))
	var hands sync.WaitGroup
	defer hands.Wait()
	defer stopDriving()

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
			g.launch(driving, &hands)
			g.hurry()
			go func() { // while the ramps to safe go on here
				settle, cancel := context.WithTimeout(driving, parkTimeout)
				defer cancel()
				parked <- g.Settle(settle)
			}()
		case <-timer.C:
		case <-g.wake:
		}
		g.launch(driving, &hands)
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

// launch begins to drive the devices that are new.
func (g *Guard) launch(ctx context.Context, hands *sync.WaitGroup) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.hands {
		if h.stop == nil {
			var driving context.Context
			driving, h.stop = context.WithCancel(ctx)
			hands.Go(func() { defer close(h.done); g.drive(driving, h) })
		}
	}
}

// Settle blocks until every output is what it should be, or ctx ends; then one
// UnknownOutcome fault names all those that are not known to be.
func (g *Guard) Settle(ctx context.Context) error {
	return g.settle(ctx, func(int) bool { return true })
}

func (g *Guard) settle(ctx context.Context, which func(i int) bool) error {
	var late []string
	err := g.wait(ctx, func(now Time) bool {
		late = late[:0]
		for i := range g.m.outputs {
			s := g.m.Status(now, i)
			if _, pending := g.m.Pending(i); (pending || s.Value != s.Goal) && which(i) {
				late = append(late, s.Output+" is not known to be at its value"+because(s.Fault))
			}
		}
		return len(late) == 0
	})
	if err != nil {
		return device.Faultf(device.UnknownOutcome, "%s", strings.Join(late, "; "))
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
	return device.Faultf(device.UnknownOutcome, "%w; %w", late, err) // one fault: callers are shown one
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
		if s := g.m.Status(now, i); s.Output != "" {
			all = append(all, s)
		}
	}
	return all
}

// Watch emits a reading whenever an output changes, with its whole address,
// until ctx ends; first of all it emits them all. An output whose state is not
// known reads as a fault.
func (g *Guard) Watch(ctx context.Context, emit func(device.Reading)) error {
	var last []Status
	for {
		var changes []device.Reading
		err := g.wait(ctx, func(now Time) bool {
			changes = changes[:0]
			for i := range g.m.outputs {
				if i == len(last) {
					last = append(last, Status{})
				}
				s := g.m.Status(now, i)
				if s.Output != "" && (s.Output != last[i].Output || s.Value != last[i].Value || s.Fault != last[i].Fault) {
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

// Reading is the status as everybody else has it: what is not known is a fault.
func (s Status) Reading() device.Reading {
	r := device.Reading{Point: s.Output, Value: s.Value, Quality: device.Good, At: time.Now()}
	if s.Value.IsZero() {
		r.Quality, r.Why = device.Bad, "not known to be at its value yet"
		if s.Fault != "" {
			r.Why = s.Fault
		}
	}
	return r
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

// drive writes what is pending, again and again until the hardware agrees.
func (g *Guard) drive(ctx context.Context, h *hand) {
	retry := retryFirst
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return // rather than begin another write
		}
		if g.write(ctx, h) {
			retry = retryFirst
			continue
		}
		timer.Reset(retry)
		retry = min(2*retry, retryLast)
	}
}

// write brings each of the hand's outputs to what is wanted and reports whether
// all of them followed.
func (g *Guard) write(ctx context.Context, h *hand) bool {
	followed := true
	for k, i := range h.outputs {
		g.mu.Lock()
		v, pending := g.m.Pending(i)
		known := g.m.outputs[i].fault
		if pending {
			g.m.Driving(i)
		}
		g.mu.Unlock()
		if !pending {
			continue
		}
		applying, cancel := context.WithTimeout(ctx, applyTimeout)
		_, back, err := device.Ask(applying, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, h.act.Apply(ctx, h.points[k], v)
		})
		cancel()
		if err != nil {
			followed = false
			if err.Error() != known { // once, however long it lasts
				slog.Warn("an output did not follow and is tried again", "output", device.Address(h.device, h.points[k]), "value", v.String(), "err", err)
			}
		}
		g.update(func(now Time) error { g.m.Applied(now, i, v, err); return nil })
		if back != nil { // one write at a time: nothing more for this device before it is back
			select {
			case <-back:
			case <-ctx.Done():
			}
		}
	}
	return followed
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
	before, _ := g.m.Next()
	err := change(g.now())
	if after, _ := g.m.Next(); after != before {
		poke(g.wake)
	}
	close(g.changed)
	g.changed = make(chan struct{})
	for _, h := range g.hands {
		for _, i := range h.outputs {
			// After a write the hand looks again, and after a failure it retries
			// by itself, with growing pauses.
			o := &g.m.outputs[i]
			if _, pending := g.m.Pending(i); pending && !o.moving && o.fault == "" {
				poke(h.wake)
				break
			}
		}
	}
	return err
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

// hurry has every hand write at once, those too that pause after a failure.
func (g *Guard) hurry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.hands {
		poke(h.wake)
	}
}

func (g *Guard) now() Time { return time.Since(g.start) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
