package alarm

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// New returns an AfterFunc whose timers end with ctx. Those that are due in the same millisecond
// are due together. It returns Go if the system has no timer that can be waited for.
func New(ctx context.Context) AfterFunc {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return Go
	}
	f := os.NewFile(uintptr(fd), "timerfd")
	if f.SetDeadline(time.Time{}) != nil { // the poller does not take it
		f.Close()
		return Go
	}
	a := &alarm{start: time.Now(), fd: fd}
	context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.fd = -1
		f.Close()
	})
	go a.run(f)
	return func(d time.Duration, f func()) Timer {
		t := &timer{alarm: a, f: f}
		t.Reset(d)
		return t
	}
}

type alarm struct {
	start time.Time

	mu     sync.Mutex
	fd     int      // -1 after the end
	timers []*timer // that wait
	next   int64    // when the kernel's timer is due, in milliseconds since start; 0 for never
}

// never is longer than a site runs. More would overflow, and be due at once; with less than 68 years
// it suits the kernel's timer where that counts seconds in 32 bits.
const never = 60 * 365 * 24 * time.Hour

type timer struct {
	alarm *alarm
	f     func()
	at    int64 // in milliseconds since start
}

func (a *alarm) run(f *os.File) {
	var expirations [8]byte
	for {
		if _, err := f.Read(expirations[:]); err != nil {
			return
		}
		for _, t := range a.due() {
			t.f()
		}
	}
}

// due removes and returns the timers that are due, and sets the kernel's timer for the others.
func (a *alarm) due() (due []*timer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Since(a.start).Milliseconds()
	a.timers = slices.DeleteFunc(a.timers, func(t *timer) bool {
		if t.at <= now {
			due = append(due, t)
		}
		return t.at <= now
	})
	a.next = 0
	if len(a.timers) > 0 {
		a.wakeBy(slices.MinFunc(a.timers, func(t, u *timer) int { return cmp.Compare(t.at, u.at) }).at)
	}
	return due
}

// wakeBy has the kernel's timer be due at a time at the latest. The caller holds mu.
func (a *alarm) wakeBy(at int64) {
	if a.fd < 0 || a.next > 0 && a.next <= at {
		return
	}
	a.next = at
	left := time.Until(a.start.Add(time.Duration(at) * time.Millisecond))
	unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(left, 1)))}, nil)
}

func (t *timer) Reset(d time.Duration) bool {
	a := t.alarm
	a.mu.Lock()
	defer a.mu.Unlock()
	waited := a.remove(t)
	t.at = (time.Since(a.start) + min(max(d, 0), never) + time.Millisecond - 1).Milliseconds() // no timer is early
	a.timers = append(a.timers, t)
	a.wakeBy(t.at)
	return waited
}

func (t *timer) Stop() bool {
	t.alarm.mu.Lock()
	defer t.alarm.mu.Unlock()
	return t.alarm.remove(t)
}

// remove reports whether a timer waited. The kernel's timer may be due without it. The caller holds mu.
func (a *alarm) remove(t *timer) bool {
	i := slices.Index(a.timers, t)
	if i >= 0 {
		a.timers = slices.Delete(a.timers, i, i+1)
	}
	return i >= 0
}
