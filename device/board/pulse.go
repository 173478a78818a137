package board

import (
	"runtime"
	"time"
)

// longestHold is the longest pulse that is timed exactly: a servo's.
const longestHold = 3 * time.Millisecond

// train is pulses on a line, made by a thread of its own until it is stopped or a
// write fails. It ends with the line off.
//
// BenchmarkPulse, on a virtual x86 machine and not on a board, with a real-time
// priority: pulses of 1.5 ms come out 20 to 50 µs too long (median), 0.1 ms at worst
// on an idle machine and 0.3 ms on one core that four goroutines keep busy. Without
// that priority the worst are some 2 to 75 ms too long. When they begin wobbles by
// up to 2 ms, and by 80 ms on the busy core. A process that is killed leaves the line
// as it is at that moment, which can be on.
type train struct {
	stopping chan struct{}
	ended    chan struct{}
	err      error // of the write that ended it; to be read after ended
}

// pulse starts a train and returns once its first pulse has begun.
func (b *Board) pulse(line *Line, on, period time.Duration) (*train, error) {
	t := &train{stopping: make(chan struct{}), ended: make(chan struct{})}
	begun := make(chan struct{})
	go func() {
		defer close(t.ended)
		runtime.LockOSThread() // and never unlocked: the thread ends here, with its priority
		hold := b.gpio().pulses()
		t.err = t.run(line, on, period, hold, begun)
		if t.err != nil {
			line.Set(false)
		}
	}()
	select {
	case <-begun:
		return t, nil
	case <-t.ended:
		return nil, t.err
	}
}

func (t *train) run(line *Line, on, period time.Duration, hold func(time.Duration), begun chan struct{}) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next := time.Now(); ; {
		if err := line.Set(true); err != nil {
			return err
		}
		if begun != nil {
			close(begun)
			begun = nil
		}
		stopped := false
		if on <= longestHold {
			hold(on)
		} else {
			timer.Reset(on)
			stopped = t.stopped(timer)
		}
		if err := line.Set(false); err != nil || stopped {
			return err
		}
		// A pulse that is late does not make the next ones come in a crowd.
		next = next.Add(period)
		if now := time.Now(); next.Before(now) {
			next = now
		}
		timer.Reset(time.Until(next))
		if t.stopped(timer) {
			return nil
		}
	}
}

// stopped waits for the timer and reports whether the train has to stop before.
func (t *train) stopped(timer *time.Timer) bool {
	select {
	case <-t.stopping:
		return true
	case <-timer.C:
		return false
	}
}

// stop ends the train with the line off. Only its starter may call it, once.
func (t *train) stop() error {
	close(t.stopping)
	<-t.ended
	return t.err
}

// broken is why there are no pulses any more.
func (t *train) broken() error {
	select {
	case <-t.ended:
		return t.err
	default:
		return nil
	}
}
