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
	// callTimeout bounds a wait for the guard, which itself gives up after five.
	callTimeout  = 8 * time.Second
	startTimeout = 10 * time.Second
	endTimeout   = 8 * time.Second // of a process that is asked to end, which takes at most five
	restartFirst = 100 * time.Millisecond
	restartLast  = 5 * time.Second
)

// Process is a guard's process, as Keeper needs it.
type Process struct {
	Pid  int
	Conn io.ReadWriteCloser // its end means that the process is to make its outputs safe and to end
	Kill func()             // ends it at once, however it is
	Wait func() error       // blocks until it has ended; the error says that outputs may not be safe
}

// Keeper keeps a guard's process running, replaces one that ends or does not answer,
// and is the site's way to the outputs meanwhile. Its methods are safe for concurrent
// use, and all but Run can be called before and while Run runs.
type Keeper struct {
	start    func() (Process, error)
	latch    guard.Latch
	replace  chan replacement
	hurry    chan struct{} // something is away from safe, or asked
	idle     chan struct{} // unbuffered: Run takes from it while there are no outputs
	latching chan struct{} // full while a Stop or a Reset has the latch, so that none comes after a later one
	changing chan struct{} // full while a process is started, or its plan is changed

	mu       sync.Mutex
	policies map[string]guard.Policy
	required map[string]bool // points that outputs require
	outputs  []string        // in the order of the configuration
	link     *link           // nil while no guard is there that knows of the stop, if there is one
	pid      int             // of the last one
	number   uint32
	calls    map[uint32]*call
	epoch    uint32 // of the guard that is there
	stops    uint32 // how often that guard has been stopped
	statuses []guard.Status
	at       time.Time     // of the statuses
	stopped  bool          // every guard that does not know is told, until a Reset
	asked    uint32        // how often Stop was called
	changed  chan struct{} // closed and replaced whenever a status changed
	watching map[*watching]struct{}
}

type replacement struct {
	policies []guard.Policy
	swap     func() error
	done     chan error
}

// call is a question that waits for its answer.
type call struct {
	what    kind
	read    func(*reader)        // of an answer that is no fault
	reading func(device.Reading) // of a watch
	told    sequence             // of its readings
	done    chan error
}

// NewKeeper makes a keeper of the outputs with these policies. The latch is the
// guard's own, for a stop while there is none.
func NewKeeper(policies []guard.Policy, latch guard.Latch, start func() (Process, error)) *Keeper {
	k := &Keeper{
		start: start, latch: latch, replace: make(chan replacement), hurry: make(chan struct{}, 1), idle: make(chan struct{}), latching: make(chan struct{}, 1), changing: make(chan struct{}, 1),
		calls: make(map[uint32]*call), changed: make(chan struct{}), stopped: !latch.Armed(),
		watching: make(map[*watching]struct{}),
	}
	k.adopt(policies)
	k.lost("the outputs are not driven yet")
	return k
}

func (k *Keeper) adopt(policies []guard.Policy) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.policies, k.required, k.outputs = make(map[string]guard.Policy), make(map[string]bool), nil
	for _, p := range policies {
		k.required[p.Requires.Point] = p.Requires.Point != ""
		k.policies[p.Output] = p
		k.outputs = append(k.outputs, p.Output)
	}
}

// Run starts the guard and keeps it running until ctx ends; then it ends it, and
// returns what is not known to be safe. Without outputs there is no process.
func (k *Keeper) Run(ctx context.Context) error {
	pause := restartFirst
	var left error // how the last guard ended, where it may have left outputs away from safe
	for {
		next, answered, err := k.life(ctx)
		if err != errUnstarted {
			left = err
		}
		k.lost("the process that drives it has ended and is started again")
		if next == nil && ctx.Err() == nil {
			slog.Error("the guard's process is started again; outputs are driven to safe then", "err", left)
			if answered { // it can run
				pause = restartFirst
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			case r := <-k.replace: // it may be what lets it run
				next = &r
			}
			pause = min(2*pause, restartLast)
		}
		if left != nil && (next != nil || ctx.Err() != nil) { // no guard with this plan comes after it
			slog.Error("the guard's process did not end well; another drives its outputs to safe", "err", left)
			left = k.makeSafe()
		}
		switch {
		case next != nil:
			if swapErr := next.swap(); swapErr != nil {
				left = errors.Join(left, swapErr)
			} else {
				k.adopt(next.policies)
				k.lost("the outputs are not driven yet")
			}
			next.done <- left
			pause, left = restartFirst, nil
		case ctx.Err() != nil:
			return left
		}
	}
}

// makeSafe has a process of the present plan drive its outputs to safe, which is the first
// that each does, and end.
func (k *Keeper) makeSafe() error {
	p, err := k.start()
	if err != nil {
		return err
	}
	return end(p)
}

// errUnstarted is of a life that ended before it began.
var errUnstarted = errors.New("there was no process")

// life is one process, from its start to its end. It returns the replacement that
// ended it, if one did, and whether the process ever answered.
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
	defer listening.Wait() // nothing of this guard is heard after its life
	defer p.Conn.Close()
	listening.Go(func() { broken <- k.listen(l, answers) })

	// One question is open at a time: first of all, whether it has started.
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
		late := time.Since(slept) - pause // more than a little: it was us who were stopped
		switch {
		case asked.IsZero():
			asked = time.Now()
			go l.send(beat, 0, nil) // the connection may be stuck
		case late > heartbeatAway:
			asked = asked.Add(late)
		case time.Since(asked) >= patience:
			p.Kill()
			return nil, answered, errors.Join(errors.New("it did not answer and was killed"), p.Wait())
		}
	}
}

// drives reports whether there are outputs, and with them a process.
func (k *Keeper) drives() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.outputs) > 0
}

// end has a process make its outputs safe and end.
func end(p Process) error {
	p.Conn.Close()
	kill := time.AfterFunc(endTimeout, p.Kill)
	defer kill.Stop()
	return p.Wait()
}

// listen takes in what the guard says until the connection breaks.
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

// take takes in what every output does. A guard that does not know of the stop is told,
// and nobody else is heard before it does.
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
		k.tell()
	}
	k.mu.Unlock()
	poke(k.hurry) // something may have left safe
}

func (k *Keeper) answer(number uint32, r *reader) {
	k.mu.Lock()
	c := k.calls[number]
	delete(k.calls, number)
	k.mu.Unlock()
	if c == nil { // nobody waits any more
		r.b = nil
		return
	}
	err := r.fault()
	if err == nil && c.read != nil {
		c.read(r)
	}
	c.done <- errors.Join(err, r.err)
}

// lost notes that there is no guard, and answers all who wait for one.
func (k *Keeper) lost(why string) {
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

// tell wakes who waits for a change. The caller holds mu.
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
	errAway = device.Faultf(device.Unavailable, "the process that drives the outputs is being started; try again in a moment")
)

// ask sends a question and waits for its answer.
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
	defer context.AfterFunc(ctx, func() { poke(k.hurry) })() // does it hang?
	if what.reads() {
		l.send(what, number, body) // a connection that is stuck ends with its process
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
	if !waiting { // it is being answered
		return <-c.done
	}
	return ctx.Err()
}

// order is ask for what moves something. It may or may not have been done where
// nobody answered. What it has changed is known to every Watch when it returns.
func (k *Keeper) order(ctx context.Context, what kind, body func(*writer), read func(*reader)) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := k.ask(ctx, what, body, call{read: read})
	k.flush()
	return unknownOutcome(err)
}

// Move is guard.Guard's.
func (k *Keeper) Move(ctx context.Context, holder, output string, v device.Value, length time.Duration) (s guard.Status, err error) {
	if ctx.Err() != nil {
		return guard.Status{}, device.Faultf(device.Expired, "the call came too late: %w", ctx.Err())
	}
	err = k.order(ctx, move, k.wish(holder, output, v, length), func(r *reader) { s = r.status() })
	return s, err
}

// Try is guard.Guard's.
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

// wish is a move as it crosses, of the age that it has when it does.
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

// TakeOver is guard.Guard's.
func (k *Keeper) TakeOver(ctx context.Context, holder, output string) error {
	return k.order(ctx, takeOver, func(w *writer) { w.text(holder); w.text(output) }, nil)
}

// Told is guard.Guard's. One that is not there yet hears of the next reading, and one
// that hangs holds this up until it is killed.
func (k *Keeper) Told(r device.Reading) {
	k.mu.Lock()
	l := k.link
	required := k.required[r.Point]
	k.mu.Unlock()
	if required && l != nil {
		l.send(told, 0, func(w *writer) { w.reading(r) })
	}
}

// Release is guard.Guard's.
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
