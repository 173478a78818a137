package esphome

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

const (
	applyTimeout = 5 * time.Second         // where the caller's context lasts longer
	closeTimeout = 1500 * time.Millisecond // for the outputs
	pushed       = 300 * time.Millisecond  // after this a state that was not sent is asked for
	maxTravel    = 3 * time.Minute         // of a cover or a valve
	watchPause   = 100 * time.Millisecond  // between two looks of Watch
)

// Sample returns the last states that the node sent, if it was heard a few seconds ago; otherwise it waits for a sign
// of life. A node sends each change by itself, so that a state is that of the time at which the node was last heard.
func (n *node) Sample(ctx context.Context) ([]device.Reading, error) {
	l, err := n.ready(ctx, false)
	if err != nil {
		return nil, n.late(ctx, err)
	}
	err = n.await(ctx, &n.came, func() (bool, error) {
		if n.link != l {
			return false, n.err
		}
		return time.Since(l.heard) < quiet+2*time.Second, nil
	})
	if err != nil {
		return nil, n.late(ctx, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.readings(), nil
}

// late returns err, or that the node did not answer in time.
func (n *node) late(ctx context.Context, err error) error {
	if err == ctx.Err() {
		return device.Faultf(device.Offline, "%s does not answer: %w", n.Address, ctx.Err())
	}
	return err
}

// readings returns the readings of all points. The caller holds mu.
func (n *node) readings() []device.Reading {
	out := driver.NewSample(n.desc.Points)
	for _, p := range n.points {
		p.read(out, n.Fresh)
	}
	all := out.Readings()
	for i, p := range n.points {
		if all[i].Quality == device.Good && p.is.kind.name == "sensor" { // the others are sent when they change
			all[i].At = p.at
		}
	}
	return all
}

// read adds the point's reading.
func (p *point) read(out *driver.Sample, fresh time.Duration) {
	switch {
	case p.lacks != "":
		out.Fault(p.lacks)
	case p.said == 0:
		out.Fault("the node has not sent it yet")
	case p.state.missing:
		out.Fault("the node does not know it; look at the sensor and the log of the node")
	case p.is.kind.name == "sensor" && time.Since(p.at) > fresh:
		out.Fault("the node has sent nothing new for " + device.FormatDuration(fresh) +
			"; look at its sensor, or write a longer fresh")
	case !p.applied.IsZero() && p.stands(p.applied):
		out.Value(p.applied)
	case p.numeric():
		out.Separate(p.Quantity.Number(p.is.shown(p.state)), 0)
	case len(p.Values) > 0 && !slices.Contains(p.Values, p.state.text):
		out.Fault("the node says " + quote(p.state.text) + ", which is not in values")
	case len(p.Values) > 0:
		out.Value(device.Text(p.state.text))
	case p.is.kind.on != 0:
		out.Value(device.Bool(p.state.on))
	case p.output && p.state.number != 0 && p.state.number != 1:
		out.Fault("it stands half open, at " + device.Number(p.is.shown(p.state)).String() + " %")
	default:
		out.Value(device.Bool(p.state.number != 0))
	}
}

// shown returns the number of a state: in percent where the kind has no unit of its own.
func (e *entity) shown(s state) float64 {
	switch k := e.kind; {
	case k.speeds != 0 && e.speeds == 0, k.on != 0 && !s.on:
		return 0
	case k.speeds != 0:
		return device.Tidy(s.number * 100 / float64(e.speeds))
	case k.proportional():
		return device.Tidy(s.number * 100)
	}
	return s.number
}

// speed returns the speed of a fan that is nearest to a percentage, and not 0 for another one.
func (e *entity) speed(percent float64) float64 {
	if percent <= 0 {
		return 0
	}
	return max(1, math.Round(percent*float64(e.speeds)/100))
}

// stands reports whether the entity has a value, or is a cover or valve on its way there.
func (p *point) stands(v device.Value) bool {
	if p.said == 0 || p.state.missing || p.lacks != "" {
		return false
	}
	k, is := p.is.kind, p.is.shown(p.state)
	want, near := p.Quantity.Raw(v.Number()), 0.0
	switch {
	case p.Kind == device.KindSwitch && k.on != 0:
		return p.state.on == v.Bool()
	case p.Kind == device.KindSwitch:
		want = 100 * v.Number()
	case k.speeds != 0:
		return p.is.speed(want) == map[bool]float64{true: p.state.number}[p.state.on]
	case k.opens():
		near = 1
	case k.modes != 0:
		near = 0.5
	default:
		near = max(p.is.step/2*1.001, math.Abs(want)*1e-6)
	}
	if p.approaches(v) && time.Since(p.travel) < maxTravel {
		return true
	}
	if k.proportional() && (want == 0 || is == 0) {
		return want == is
	}
	return math.Abs(want-is) <= near
}

// approaches reports whether the entity is a cover or valve that says that it travels in the direction of v.
func (p *point) approaches(v device.Value) bool {
	if p.said == 0 || !p.is.kind.opens() || p.state.moving == idle {
		return false
	}
	want := p.Quantity.Raw(v.Number())
	if p.Kind == device.KindSwitch {
		want = 100 * v.Number()
	}
	return (p.state.moving == opening) == (want > p.is.shown(p.state))
}

// command returns the message that brings the point's entity to v.
func (p *point) command(v device.Value) message {
	k := p.is.kind
	if p.Kind == device.KindSwitch {
		return p.is.command(v.Bool(), v.Number(), k.opens())
	}
	n := p.Quantity.Raw(v.Number())
	switch {
	case k.speeds != 0:
		n = p.is.speed(n)
		return p.is.command(n > 0, n, n > 0)
	case k.modes != 0:
		return p.is.command(n > 0, n/100, n > 0)
	case k.opens():
		n /= 100
	}
	return p.is.command(true, n, true)
}

// Apply returns once the node has said that it has the value.
func (n *node) Apply(ctx context.Context, name string, v device.Value) error {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	defer context.AfterFunc(n.stopping, cancel)()
	if err := n.moving.LockContext(ctx); err != nil {
		return err
	}
	defer n.moving.Unlock()
	i := slices.IndexFunc(n.points, func(p *point) bool { return p.Name == name && p.output })
	if i < 0 {
		return device.Faultf(device.Invalid, "%.40q is not an output of this device", name)
	}
	if err := n.points[i].Accepts(v); err != nil {
		return err
	}
	if n.stopping.Err() != nil {
		return device.Faultf(device.Offline, "%s cannot move: the device is closed", name)
	}
	return n.move(ctx, n.points[i], v)
}

// move is Apply for one point. The caller holds moving.
func (n *node) move(ctx context.Context, p *point, v device.Value) error {
	l, err := n.ready(ctx, true)
	if err != nil {
		return err
	}
	n.mu.Lock()
	if n.link != l || p.is == nil || p.lacks != "" {
		defer n.mu.Unlock()
		if n.link != l {
			return n.err
		}
		return device.Faultf(device.Offline, "%s cannot move: %s", p.Name, p.lacks)
	}
	command := p.command(v)
	p.applied = device.Value{}
	if !p.approaches(v) { // else a travel that never ends would begin again with each command
		p.travel = time.Now()
	}
	stood, before := p.stands(v), l.number
	n.mu.Unlock()

	deadline, ok := ctx.Deadline()
	if limit := time.Now().Add(sendTimeout); !ok || deadline.After(limit) {
		deadline = limit
	}
	ping, err := n.sendPing(l, deadline, command)
	if err != nil {
		n.cut(l, err)
		return device.Faultf(device.UnknownOutcome, "%s may have moved: the connection broke: %w", p.Name, err)
	}
	if err := n.confirm(ctx, l, p, v, ping, before, stood); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p.applied = v
	return nil
}

// confirm waits until the node says that p has the value v. A state counts that came after the command and is another
// than before, or that came after the answer to the ping behind the command. Where the node sends none by itself,
// because nothing changed, all states are asked for.
func (n *node) confirm(ctx context.Context, l *link, p *point, v device.Value, ping, before uint64, stood bool) error {
	var processed uint64 // the message with the answer to the ping
	said := func() (bool, error) {
		if n.link != l {
			return false, n.err
		}
		if processed == 0 && l.pongs >= ping {
			processed = l.number
		}
		return p.stands(v) && (processed != 0 && p.said > processed || !stood && p.said > before), nil
	}
	done := false
	err := n.await(ctx, &n.came, func() (_ bool, err error) {
		done, err = said()
		return done || processed != 0, err
	})
	if err == nil && !done && !stood {
		soon, cancel := context.WithTimeout(ctx, pushed)
		err = n.await(soon, &n.came, said)
		if done = err == nil; soon.Err() != nil {
			err = ctx.Err()
		}
		cancel()
	}
	if err == nil && !done {
		if err = n.askStates(l); err == nil {
			err = n.await(ctx, &n.came, said)
		}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil:
		return device.Faultf(device.UnknownOutcome, "%s may have moved: %w", p.Name, err)
	case processed == 0: // it may still be on its way, and must not arrive later
		n.cut(l, errors.New("it did not answer a command in time"))
		return device.Faultf(device.UnknownOutcome, "%s may have moved: %s does not answer: %w", p.Name, n.Address, ctx.Err())
	}
	return device.Faultf(device.Offline, "%s did not follow: the node does not say that it is at %v: %w",
		p.Name, v, ctx.Err())
}

// askStates asks for the states of all entities.
func (n *node) askStates(l *link) error {
	n.mu.Lock()
	l.expected += l.entities
	n.mu.Unlock()
	return l.send(time.Now().Add(sendTimeout), message{id: statesRequest})
}

// Watch emits the readings of the inputs that changed, at most ten times a second.
func (n *node) Watch(ctx context.Context, emit func(device.Reading)) error {
	last, version := make([]device.Reading, len(n.points)), uint64(0)
	for {
		var all []device.Reading
		err := n.await(ctx, &n.changed, func() (bool, error) {
			if version == n.version {
				return false, nil
			}
			all, version = n.told(), n.version
			return true, nil
		})
		if err != nil {
			return err
		}
		for i, r := range all {
			if !n.points[i].output && differs(last[i], r) {
				emit(r)
			}
		}
		last = all
		if err := device.Sleep(ctx, watchPause); err != nil {
			return err
		}
	}
}

func differs(a, b device.Reading) bool {
	return a.Value != b.Value || a.Quality != b.Quality || a.Why != b.Why
}

// told returns the current readings; without a connection, a fault of each point. The caller holds mu.
func (n *node) told() []device.Reading {
	if n.link != nil {
		return n.readings()
	}
	out := driver.NewSample(n.desc.Points)
	why := n.Address + " is not connected yet"
	if n.err != nil {
		why = n.err.Error()
	}
	out.FaultAll(why)
	return out.Readings()
}

// Close brings the outputs to safe, if the node answers soon, and ends the connection.
func (n *node) Close() (err error) {
	n.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		soon, cancel := context.WithTimeout(ctx, closeTimeout/2)
		defer cancel()
		defer context.AfterFunc(soon, n.stop)() // the end of an Apply that takes longer
		n.moving.Lock()
		defer n.moving.Unlock()
		n.stop()
		for _, p := range n.points {
			if p.output && err == nil && !n.isAt(p, p.Safe) {
				err = n.move(ctx, p, p.Safe)
			}
		}
		n.end()
	})
	return err
}

// isAt reports whether p was brought to v, and is there.
func (n *node) isAt(p *point, v device.Value) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.link != nil && p.applied == v && p.stands(v) && time.Since(n.link.heard) < quiet
}

// end ends the connection. The node cannot be used any more.
func (n *node) end() {
	n.mu.Lock()
	n.closed = true
	n.came.raise()
	n.mu.Unlock()
	n.hangUp()
	n.running.Wait()
}
