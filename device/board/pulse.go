package board

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// MaxExactPulse is the longest pulse that is timed exactly: a servo's.
const MaxExactPulse = 3 * time.Millisecond

// pulser makes the pulses on a chip's lines, all of them by one thread. Pulses of one period begin
// together. So the thread keeps a processor, to time the pulses exactly, no longer than the longest
// pulse. On a board of one core, anything else in the process, such as the end of a lease, may have
// to wait that long.
//
// BenchmarkPulse measured this on a virtual x86 machine and not on a board. With a real-time
// priority, pulses of 1.5 ms are 20 to 50 µs too long (median). The worst are 0.1 ms too long on an
// idle machine, and 0.3 ms on one core that four goroutines keep busy. Without that priority the
// worst are some 2 to 75 ms too long. When they begin wobbles by up to 2 ms, and by 80 ms on the
// busy core. A process that is killed leaves the line as it is at that moment, which can be on.
type pulser struct {
	prepare func() (sleep func(time.Duration)) // see GPIO.PrepareThread
	wake    chan struct{}                      // a train was added, or is to stop

	mu    sync.Mutex
	runs  bool
	added []*PulseTrain // not yet taken over by the thread
}

// PulseTrain is pulses on a line, until Stop or until a write fails. It ends with the
// line off.
type PulseTrain struct {
	pulser     *pulser
	line       *Line
	on, period time.Duration
	stopping   chan struct{}
	begun      chan struct{} // closed when the first pulse has begun
	ended      chan struct{}
	err        error // of the write that ended it; to be read after ended

	// The thread's own.
	high  bool
	start time.Time // of this pulse or the next one, as planned
	next  time.Time // when the line is to change
}

// Pulse starts pulses of the length on, one each period, on an output, and returns once
// the first has begun. The caller does not use the line until Stop has returned.
func (b *Board) Pulse(line *Line, on, period time.Duration) (*PulseTrain, error) {
	t := &PulseTrain{
		pulser: b.pulserOf(line.pin), line: line, on: on, period: period,
		stopping: make(chan struct{}), begun: make(chan struct{}), ended: make(chan struct{}),
	}
	t.pulser.add(t)
	select {
	case <-t.begun:
		return t, nil
	case <-t.ended:
		return nil, t.err
	}
}

// pulserOf returns the pulser of the pin's chip: a chip that hangs delays no other chip's
// pulses.
func (b *Board) pulserOf(pin Pin) *pulser {
	chip, _, named := strings.Cut(string(pin), "/")
	if !named {
		chip = ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pulsers[chip] == nil {
		b.pulsers[chip] = &pulser{prepare: b.machine.GPIO.PrepareThread, wake: make(chan struct{}, 1)}
	}
	return b.pulsers[chip]
}

func (p *pulser) add(t *PulseTrain) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.added = append(p.added, t)
	if !p.runs {
		p.runs = true
		go p.run()
	}
	p.poke()
}

func (p *pulser) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run makes pulses for as long as there are trains.
func (p *pulser) run() {
	runtime.LockOSThread() // and never unlocked: the thread ends here, with its priority
	sleep := p.prepare()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var trains []*PulseTrain
	for {
		now := time.Now()
		p.mu.Lock()
		for _, t := range p.added {
			t.begin(now, trains)
			trains = append(trains, t)
		}
		p.added = nil
		p.mu.Unlock()
		trains = slices.DeleteFunc(trains, func(t *PulseTrain) bool { return t.step(now) })
		if len(trains) == 0 && p.idle() {
			return
		}
		if len(trains) == 0 {
			continue
		}
		wait := time.Until(slices.MinFunc(trains, func(a, b *PulseTrain) int { return cmp.Compare(a.next.UnixNano(), b.next.UnixNano()) }).next)
		if slices.ContainsFunc(trains, func(t *PulseTrain) bool { return t.high && t.on <= MaxExactPulse }) {
			sleep(max(wait, 0))
			continue
		}
		timer.Reset(wait)
		select {
		case <-p.wake:
		case <-timer.C:
		}
	}
}

// idle reports whether there is nothing to do, so that the thread may end.
func (p *pulser) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = len(p.added) > 0
	return !p.runs
}

// begin schedules the first pulse together with those of the same period.
func (t *PulseTrain) begin(now time.Time, others []*PulseTrain) {
	t.start = now
	if i := slices.IndexFunc(others, func(o *PulseTrain) bool { return o.period == t.period }); i >= 0 {
		if t.start = others[i].start; others[i].high {
			t.start = t.start.Add(t.period)
		}
	}
	t.next = t.start
}

// step changes the line if it is time to, and reports whether the train has ended.
func (t *PulseTrain) step(now time.Time) (ended bool) {
	stop := false
	select {
	case <-t.stopping:
		stop = true
	default:
		if now.Before(t.next) {
			return false
		}
	}
	if t.high = !t.high && !stop; t.high {
		if t.err = t.line.Set(true); t.err == nil {
			t.next = time.Now().Add(t.on)
			t.hasBegun()
			return false
		}
		t.line.Set(false)
	} else if t.err = t.line.Set(false); t.err == nil && !stop {
		// A late pulse is not followed by a burst.
		if t.start = t.start.Add(t.period); t.start.Before(now) {
			t.start = now
		}
		t.next = t.start
		return false
	}
	close(t.ended)
	return true
}

func (t *PulseTrain) hasBegun() {
	select {
	case <-t.begun:
	default:
		close(t.begun)
	}
}

// Stop ends the pulses with the line off and returns the error of the last write. Only
// the caller of Pulse may call it, once.
func (t *PulseTrain) Stop() error {
	close(t.stopping)
	t.pulser.poke()
	<-t.ended
	return t.err
}

// Err is the error that ended the pulses; nil while there are pulses.
func (t *PulseTrain) Err() error {
	select {
	case <-t.ended:
		return t.err
	default:
		return nil
	}
}
