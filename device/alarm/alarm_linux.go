// Package alarm waits with a timer of the kernel that wakes one thread, on time.
//
// For a timer of Go's, the kernel may wake the thread that waits in epoll_wait late, by a thousandth
// of the wait. Meanwhile Go's monitor thread, which wakes exactly, sleeps for 20 µs again and again.
package alarm

import (
	"context"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// New returns a function that blocks for a time, or until its context ends. Waits that end in the
// same millisecond end together. After the end of ctx they last until their own context ends. The
// function is nil if the system has no such timer.
func New(ctx context.Context) func(context.Context, time.Duration) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "timerfd")
	if f.SetDeadline(time.Time{}) != nil { // it cannot be waited for
		f.Close()
		return nil
	}
	a := &alarm{start: time.Now(), fd: fd, waits: make(map[chan struct{}]int64)}
	context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.fd = -1
		f.Close()
	})
	go a.run(f)
	return a.wait
}

type alarm struct {
	start time.Time

	mu    sync.Mutex
	fd    int                     // -1 after the end
	waits map[chan struct{}]int64 // the ends, in milliseconds since start; a channel is closed then
	next  int64                   // the end that the timer is set to; 0 for none
}

func (a *alarm) run(f *os.File) {
	var expirations [8]byte
	for {
		if _, err := f.Read(expirations[:]); err != nil {
			return
		}
		a.mu.Lock()
		a.end(time.Since(a.start).Milliseconds())
		a.mu.Unlock()
	}
}

// wait rounds d up, so that waits which end together wake the processor once.
func (a *alarm) wait(ctx context.Context, d time.Duration) {
	over := make(chan struct{})
	a.mu.Lock()
	at := (time.Since(a.start) + max(d, 0) + time.Millisecond - 1).Milliseconds()
	a.waits[over] = at
	a.set()
	a.mu.Unlock()
	select {
	case <-over:
	case <-ctx.Done():
		a.mu.Lock()
		delete(a.waits, over)
		a.mu.Unlock()
	}
}

// end ends the waits until now, and sets the timer to the next. The caller holds mu.
func (a *alarm) end(now int64) {
	for over, at := range a.waits {
		if at <= now {
			close(over)
			delete(a.waits, over)
		}
	}
	a.next = 0
	a.set()
}

// set sets the timer if a wait ends before its time. The caller holds mu.
func (a *alarm) set() {
	first := a.next
	for _, at := range a.waits {
		if first == 0 || at < first {
			first = at
		}
	}
	if first == a.next || a.fd < 0 {
		return
	}
	a.next = first
	left := time.Until(a.start.Add(time.Duration(first) * time.Millisecond))
	unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(left, 1)))}, nil)
}
