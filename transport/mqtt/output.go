package mqtt

import (
	"context"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

const (
	// moveWithin is the greatest age of a command when it begins.
	moveWithin = 10 * time.Second
	// moveEvery is the shortest time between two moves of an output. Of those away from safe, which are written to
	// the card, moveBurst are made at once, and then one each movePause.
	moveEvery      = 100 * time.Millisecond
	moveBurst      = 30
	movePause      = 3 * time.Second
	releaseTimeout = 5 * time.Second
)

// output is an output that is moved from the broker. A goroutine works for it while somebody wishes something of
// it, or it is held.
type output struct {
	*bridge
	address string
	wake    chan struct{}

	// Of the goroutine.
	last time.Time // move or release
	full time.Time // when moveBurst moves may be made again

	state struct {
		sync.Mutex
		safe    device.Value
		value   device.Value // the wish; none for safe
		held    bool         // the wish is to give up what is held, and nothing else
		fresh   bool         // the wish is not taken yet
		since   time.Time    // when it was last heard
		running bool
		holding bool // the output, as far as is known
	}
}

// set sets what is known of the output.
func (o *output) set(p agents.Point) {
	o.state.Lock()
	defer o.state.Unlock()
	o.state.safe = p.Safe
}

// want notes a wish, in place of one that was not taken yet. held says that it only gives up what is held.
func (o *output) want(v device.Value, held bool) {
	s := &o.state
	s.Lock()
	defer s.Unlock()
	if held && !s.running { // nothing is held
		return
	}
	if v == s.safe {
		v = device.Value{}
	}
	s.value, s.held, s.fresh, s.since = v, held, true, time.Now()
	poke(o.wake)
}

// begin has a goroutine work for the output; with the bridge's mu.
func (o *output) begin(ctx context.Context) {
	o.state.Lock()
	defer o.state.Unlock()
	if !o.state.running {
		o.state.running = true
		o.moving.Go(func() { o.run(ctx) })
	}
}

// next takes the wish. It reports whether there is a new one; if there is none and idle, the goroutine is over.
func (o *output) next(idle bool) (v device.Value, held bool, since time.Time, fresh bool) {
	s := &o.state
	s.Lock()
	defer s.Unlock()
	fresh = s.fresh
	s.fresh, s.holding = false, !idle
	if !fresh && idle {
		s.running = false
	}
	return s.value, s.held, s.since, fresh
}

// holding returns how many outputs are held.
func (b *bridge) holding() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.outputs {
		o.state.Lock()
		if o.state.holding {
			n++
		}
		o.state.Unlock()
	}
	return n
}

// again has a wish that was taken be taken once more, unless there is a newer one.
func (o *output) again() {
	o.state.Lock()
	defer o.state.Unlock()
	o.state.fresh = true
}

// run does what is wished, and holds the output as long as nothing else is.
func (o *output) run(ctx context.Context) {
	var holds device.Value // none while it is safe, as far as is known
	var due <-chan time.Time
	for {
		v, held, since, fresh := o.next(holds.IsZero())
		switch {
		case !fresh && holds.IsZero():
			return
		case ctx.Err() != nil:
			if !holds.IsZero() {
				o.release(ctx, true)
			}
			holds = device.Value{}
			continue
		case fresh && (!v.IsZero() || holds.IsZero()) && o.wait(v) > 0: // a flood
			select {
			case <-ctx.Done():
			case <-o.wake: // it may be a release
			case <-time.After(o.wait(v)):
			}
			o.again()
			continue
		case fresh && v.IsZero(), time.Since(since) > o.Hold:
			o.last = time.Now()
			o.release(ctx, held || !fresh)
			holds = device.Value{}
			continue
		case fresh:
			o.last = time.Now()
			o.full = later(o.last, o.full).Add(movePause)
			if left, err := o.move(ctx, v, false); err == nil {
				holds, due = v, time.After(left*2/3)
			} else if device.AsFault(err).Kind == device.UnknownOutcome {
				o.release(ctx, true)
				holds = device.Value{}
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-o.wake:
		case <-due:
			if time.Since(since) > o.Hold {
				continue
			}
			left, err := o.move(ctx, holds, true)
			if err != nil { // its limits have ended it, or somebody else has the output
				holds = device.Value{}
			} else {
				due = time.After(left * 2 / 3)
			}
		}
	}
}

// wait returns how long a wish has to wait after the moves before.
func (o *output) wait(v device.Value) time.Duration {
	wait := moveEvery - time.Since(o.last)
	if !v.IsZero() {
		wait = max(wait, max(0, time.Until(o.full))-(moveBurst-1)*movePause)
	}
	return wait
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// move moves the output, or renews what is held, and returns how long that lasts: the usual minute, or the longest that
// the permission allows. When the site, the connection or this program is gone, the output is safe after that.
func (o *output) move(ctx context.Context, v device.Value, held bool) (left time.Duration, err error) {
	r := agents.MoveRequest{Output: o.address, Value: v, Terms: terms()}
	if seconds := o.lease.Seconds(); seconds > 0 {
		r.For = &seconds
	}
	r.Held = held
	out, err := o.site.Move(ctx, o.self, r)
	if !held {
		o.done(o.address, err)
	}
	if err != nil {
		return 0, err
	}
	return max(time.Second, time.Duration(out.Left*float64(time.Second))), nil
}

// release returns the output to safe. held says that it does so only where the bridge holds the output. It does not
// end with ctx.
func (o *output) release(ctx context.Context, held bool) {
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, err := o.site.Move(releasing, o.self, agents.MoveRequest{Output: o.address, Terms: agents.Terms{Held: held}})
	if !held {
		o.done(o.address, err)
	}
}
