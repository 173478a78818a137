package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

const (
	sampleTimeout = 10 * time.Second
	// callTimeout limits a wait for the guard, which itself gives up after five seconds.
	callTimeout  = 8 * time.Second
	startTimeout = 10 * time.Second
	endTimeout   = 8 * time.Second // of a process that has to exit, which takes it at most five seconds
	restartFirst = 100 * time.Millisecond
	restartLast  = 5 * time.Second
)

// Process is a guard's process.
type Process struct {
	Pid  int
	Conn io.ReadWriteCloser // closing it makes the process drive its outputs to safe and exit
	Kill func()             // kills it
	Wait func() error       // blocks until it has exited; after an error outputs may not be safe
}

// Keeper supervises a guard's process: it starts the process, and replaces one that exits or
// does not respond. The site uses the outputs through it. Its methods are safe for concurrent
// use, and all except Run can be called before and during Run.
type Keeper struct {
	start    func() (Process, error)
	latch    guard.Latch
	replace  chan replacement
	hurry    chan struct{} // an output is away from safe, or a call waits
	idle     chan struct{} // unbuffered: Run takes from it while there are no outputs
	latching chan struct{} // full while a Stop or a Reset uses the latch, which keeps their order
	changing chan struct{} // full while a process is started, or its plan is changed

	mu       sync.Mutex
	policies map[string]guard.Policy
	required map[string]bool // points that outputs require, or expect something of
	outputs  []string        // in the order of the configuration
	link     *link           // nil without a guard, or while the guard does not know the stop
	pid      int             // of the last process
	number   uint32
	calls    map[uint32]*call
	epoch    uint32 // of the running guard
	stops    uint32 // number of its requested stops
	statuses []guard.Status
	held     map[string]bool // outputs that have had a holder since NewKeeper
	at       time.Time       // of the statuses
	stopped  bool            // each guard is told, until a Reset
	asked    uint32          // number of calls of Stop
	changed  chan struct{}   // closed and replaced whenever a status changed
	watching map[*watching]struct{}
}

type replacement struct {
	policies []guard.Policy
	swap     func() error
	done     chan error
}

// call is a request that waits for its answer.
type call struct {
	what    kind
	read    func(*reader)        // decodes an answer without a fault
	reading func(device.Reading) // of a watch
	told    sequence             // of its readings
	done    chan error
}

// NewKeeper returns a keeper of the outputs with these policies. The latch is the guard's,
// for a stop without a running guard.
func NewKeeper(policies []guard.Policy, latch guard.Latch, start func() (Process, error)) *Keeper {
	k := &Keeper{
		start: start, latch: latch, stopped: !latch.Armed(),
		replace: make(chan replacement), hurry: make(chan struct{}, 1), idle: make(chan struct{}),
		latching: make(chan struct{}, 1), changing: make(chan struct{}, 1), changed: make(chan struct{}),
		calls: make(map[uint32]*call), held: make(map[string]bool), watching: make(map[*watching]struct{}),
	}
	k.adopt(policies)
	k.markDisconnected("the outputs are not driven yet")
	return k
}

func (k *Keeper) adopt(policies []guard.Policy) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.policies, k.required, k.outputs = make(map[string]guard.Policy), make(map[string]bool), nil
	for _, p := range policies {
		for _, point := range []string{p.Requires.Point, p.Expects.Point} {
			k.required[point] = point != ""
		}
		k.policies[p.Output] = p
		k.outputs = append(k.outputs, p.Output)
	}
}

// Run starts and supervises the guard until ctx ends. Then it ends the guard, and returns the
// outputs that are not confirmed as safe. Without outputs there is no process.
func (k *Keeper) Run(ctx context.Context) error {
	pause := restartFirst
	var left error // error of the last guard, which may have left outputs away from safe
	for {
		next, answered, err := k.life(ctx)
		if err != errUnstarted {
			left = err
		}
		k.markDisconnected(guard.WhyEnded)
		if next == nil && ctx.Err() == nil {
			slog.Error("the guard's process is started again; outputs are driven to safe then", "err", left)
			if answered { // it is able to run
				pause = restartFirst
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			case r := <-k.replace: // the replacement may be able to run
				next = &r
			}
			pause = min(2*pause, restartLast)
		}
		if left != nil && (next != nil || ctx.Err() != nil) { // no further guard with this plan will start
			slog.Error("the guard's process did not end well; another drives its outputs to safe", "err", left)
			left = k.makeSafe()
		}
		switch {
		case next != nil:
			if swapErr := next.swap(); swapErr != nil {
				left = errors.Join(left, swapErr)
			} else {
				k.adopt(next.policies)
				k.markDisconnected("the outputs are not driven yet")
			}
			next.done <- left
			pause, left = restartFirst, nil
		case ctx.Err() != nil:
			return left
		}
	}
}

// makeSafe runs a process with the current plan until it has driven its outputs to safe, which
// each process does first.
func (k *Keeper) makeSafe() error {
	p, err := k.start()
	if err != nil {
		return err
	}
	return end(p)
}

// errUnstarted is the error of a process that was not started.
var errUnstarted = errors.New("there was no process")

// life runs one process from its start to its exit. It returns the replacement that ended it,
// if any, and whether the process ever responded.
func (k *Keeper) life(ctx context.Context) (next *replacement, answered bool, err error) {
	for !k.drives() {
		select {
		case <-ctx.Done():
			return nil, false, errUnstarted
		case next := <-k.replace:
			return &next, false, errUnstarted
		case <-k.idle:
		}
	}
	select {
	case <-ctx.Done():
		return nil, false, errUnstarted
	case k.changing <- struct{}{}:
	}
	p, err := k.start()
	<-k.changing
	if err != nil {
		return nil, false, err
	}
	k.mu.Lock()
	k.pid = p.Pid
	k.mu.Unlock()
	l := newLink(p.Conn)
	broken := make(chan error, 1)
	answers := make(chan struct{}, 1)
	var listening sync.WaitGroup
	defer listening.Wait() // no message of this guard is processed afterwards
	defer p.Conn.Close()
	listening.Go(func() { broken <- k.listen(l, answers) })

	// One request is open at a time; the first asks whether it has started.
	asked, patience := time.Now(), startTimeout
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		pause := heartbeatIdle
		switch {
		case !asked.IsZero():
			pause = time.Until(asked.Add(patience))
		case k.away():
			pause = heartbeatAway
		}
		timer.Reset(pause)
		slept := time.Now()
		select {
		case err := <-broken:
			p.Kill()
			return nil, answered, errors.Join(err, p.Wait())
		case <-ctx.Done():
			return nil, answered, end(p)
		case r := <-k.replace:
			return &r, answered, end(p)
		case <-answers:
			asked, patience, answered = time.Time{}, silenceTimeout, true
			continue
		case <-k.hurry:
		case <-timer.C:
		}
		late := time.Since(slept) - pause // this process was stopped meanwhile
		switch {
		case asked.IsZero():
			asked = time.Now()
			go l.send(beat, 0, nil) // the connection may block
		case late > heartbeatAway:
			asked = asked.Add(late)
		case time.Since(asked) >= patience:
			p.Kill()
			return nil, answered, errors.Join(errors.New("it did not answer and was killed"), p.Wait())
		}
	}
}

// drives reports whether there are outputs, and so a process.
func (k *Keeper) drives() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.outputs) > 0
}

// end makes a process drive its outputs to safe and exit.
func end(p Process) error {
	p.Conn.Close()
	kill := time.AfterFunc(endTimeout, p.Kill)
	defer kill.Stop()
	return p.Wait()
}

// listen processes the guard's messages until the connection ends.
func (k *Keeper) listen(l *link, answered chan<- struct{}) error {
	for {
		kind, number, r, err := l.next()
		if err != nil {
			return err
		}
		switch kind {
		case hello:
			if v := r.uint32(); v != version {
				return fmt.Errorf("it is of another version of agentsite (%d, not %d): start the site again", v, version)
			}
			poke(answered)
		case beat:
			poke(answered)
		case state:
			k.take(l, &r)
		case answer:
			k.answer(number, &r)
		case reading:
			value := r.reading()
			k.mu.Lock()
			c := k.calls[number]
			k.mu.Unlock()
			if c != nil && c.reading != nil && r.err == nil {
				c.reading(c.told.keep(value))
			}
		default:
			return errMessage
		}
		if err := r.end(); err != nil {
			return err
		}
	}
}

// take processes the state of all outputs. A guard that does not know the stop is told first,
// before any other request.
func (k *Keeper) take(l *link, r *reader) {
	epoch, stopped, stops, n := r.uint32(), r.bool(), r.uint32(), r.uint32()
	var all []guard.Status
	for range n {
		if r.err != nil {
			return
		}
		all = append(all, r.status())
	}
	if r.err != nil {
		return
	}
	k.mu.Lock()
	if k.link != l && k.stopped && !stopped {
		go l.send(stop, 0, nil)
	} else {
		k.link, k.epoch, k.stops, k.statuses, k.at = l, epoch, stops, all, time.Now()
		k.stopped = k.stopped || stopped
		for _, s := range all {
			k.held[s.Output] = k.held[s.Output] || s.Holder != ""
		}
		k.tell()
	}
	k.mu.Unlock()
	poke(k.hurry) // an output may have left safe
}

func (k *Keeper) answer(number uint32, r *reader) {
	k.mu.Lock()
	c := k.calls[number]
	delete(k.calls, number)
	k.mu.Unlock()
	if c == nil { // the caller no longer waits
		r.b = nil
		return
	}
	err := r.fault()
	if err == nil && c.read != nil {
		c.read(r)
	}
	c.done <- errors.Join(err, r.err)
}

// markDisconnected records that there is no guard, and fails all waiting calls.
func (k *Keeper) markDisconnected(why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.link = nil
	for _, c := range k.calls {
		c.done <- errLost
	}
	clear(k.calls)
	k.statuses, k.at = nil, time.Now()
	for _, o := range k.outputs {
		k.statuses = append(k.statuses, guard.Status{Output: o, Fault: why})
	}
	k.tell()
}

// tell wakes all that wait for a change. The caller holds mu.
func (k *Keeper) tell() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// away reports whether heartbeats are needed: an output is away from safe, or an order waits
// for its answer.
func (k *Keeper) away() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.calls {
		if !c.what.reads() {
			return true
		}
	}
	return slices.ContainsFunc(k.statuses, func(s guard.Status) bool { return !s.Safe })
}

var (
	errLost = errors.New("the guard's process ended meanwhile")
	errAway = device.Faultf(device.Unavailable,
		"the process that drives the outputs is being started; try again in a moment").In(time.Second)
)

// ask sends a request and waits for its answer.
func (k *Keeper) ask(ctx context.Context, what kind, body func(*writer), c call) error {
	c.what, c.done = what, make(chan error, 1)
	k.mu.Lock()
	l := k.link
	if l == nil {
		k.mu.Unlock()
		return errAway
	}
	k.number++
	number := k.number
	k.calls[number] = &c
	k.mu.Unlock()
	defer context.AfterFunc(ctx, func() { poke(k.hurry) })() // check whether it hangs
	if what.reads() {
		l.send(what, number, body) // a blocked connection ends with its process
	} else {
		poke(k.hurry)
		go l.send(what, number, body)
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
	}
	k.mu.Lock()
	_, waiting := k.calls[number]
	delete(k.calls, number)
	k.mu.Unlock()
	if !waiting { // its answer is being processed
		return <-c.done
	}
	return ctx.Err()
}

// order is ask for a request with an effect. Without an answer the outcome is unknown. When
// it returns, each Watch has emitted the changes.
func (k *Keeper) order(ctx context.Context, what kind, body func(*writer), read func(*reader)) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := k.ask(ctx, what, body, call{read: read})
	k.flush()
	return unknownOutcome(err)
}

// Move is Guard.Move of the running guard.
func (k *Keeper) Move(
	ctx context.Context, holder, output string, v device.Value, length time.Duration,
) (guard.Status, error) {
	return k.move(ctx, move, k.wish(holder, output, v, length))
}

// Renew is Guard.Renew of the running guard.
func (k *Keeper) Renew(
	ctx context.Context, holder, output string, v device.Value, length time.Duration,
) (guard.Status, error) {
	return k.move(ctx, renew, k.wish(holder, output, v, length))
}

// MoveOver is Guard.MoveOver of the running guard.
func (k *Keeper) MoveOver(
	ctx context.Context, holder, from, output string, v device.Value, length time.Duration,
) (guard.Status, error) {
	wish := k.wish(holder, output, v, length)
	return k.move(ctx, moveOver, func(w *writer) { wish(w); w.text(from) })
}

func (k *Keeper) move(ctx context.Context, what kind, body func(*writer)) (s guard.Status, err error) {
	if ctx.Err() != nil {
		return guard.Status{}, device.Faultf(device.Expired, "the call came too late: %w", ctx.Err())
	}
	err = k.order(ctx, what, body, func(r *reader) { s = r.status() })
	return s, err
}

// Try is Guard.Try of the running guard.
func (k *Keeper) Try(ctx context.Context, holder, output string, v device.Value, length time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := k.ask(ctx, try, k.wish(holder, output, v, length), call{})
	var fault *device.Fault
	if err == nil || errors.As(err, &fault) {
		return err
	}
	return device.Faultf(device.Unavailable, "the outputs did not answer, and nothing was moved; try again in a moment: %w", err)
}

// wish returns a move request with its age at the time of sending.
func (k *Keeper) wish(holder, output string, v device.Value, length time.Duration) func(*writer) {
	k.mu.Lock()
	epoch := k.epoch
	k.mu.Unlock()
	begun := time.Now()
	return func(w *writer) {
		w.uint32(epoch)
		w.duration(time.Since(begun))
		w.text(holder)
		w.text(output)
		w.value(v)
		w.duration(length)
	}
}

// TakeOver is Guard.TakeOver of the running guard.
func (k *Keeper) TakeOver(ctx context.Context, holder, output string) error {
	return k.order(ctx, takeOver, func(w *writer) { w.text(holder); w.text(output) }, nil)
}

// Release is Guard.Release of the running guard.
func (k *Keeper) Release(ctx context.Context, output string) (s guard.Status, err error) {
	err = k.order(ctx, release, func(w *writer) { w.text(output) }, func(r *reader) { s = r.status() })
	return s, err
}

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
