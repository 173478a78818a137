// Package alarm makes timers for what is due again and again while a site is at rest, such as
// samples. On Linux they share one timer of the kernel that wakes one thread, on time.
//
// For a timer of Go's, the kernel may wake the thread that waits in epoll_wait late, by a thousandth
// of the wait. Meanwhile Go's monitor thread, which wakes exactly, sleeps for 20 µs again and again.
package alarm

import "time"

// Timer calls its function once: after the time of the last Reset, unless it is stopped before. The
// results are those of a time.Timer.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// AfterFunc makes a timer, as time.AfterFunc does. The function must not block: other timers wait
// for it.
type AfterFunc func(d time.Duration, f func()) Timer

// Go is an AfterFunc whose timers are Go's.
func Go(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
