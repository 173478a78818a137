package lantest

import (
	"net"
	"sync/atomic"
	"time"
)

// Alarms is a connection that counts its deadlines that pass. Each wakes the processor, also when nobody waits for it.
// Deadlines are set by one goroutine for each direction.
type Alarms struct {
	net.Conn
	Passed      atomic.Int32
	read, write *time.Timer
}

// SetDeadline sets both deadlines.
func (a *Alarms) SetDeadline(t time.Time) error {
	a.set(&a.read, t)
	a.set(&a.write, t)
	return a.Conn.SetDeadline(t)
}

// SetReadDeadline sets the deadline of Read.
func (a *Alarms) SetReadDeadline(t time.Time) error {
	a.set(&a.read, t)
	return a.Conn.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of Write.
func (a *Alarms) SetWriteDeadline(t time.Time) error {
	a.set(&a.write, t)
	return a.Conn.SetWriteDeadline(t)
}

func (a *Alarms) set(timer **time.Timer, t time.Time) {
	if *timer != nil {
		(*timer).Stop()
	}
	if !t.IsZero() {
		*timer = time.AfterFunc(time.Until(t), func() { a.Passed.Add(1) })
	}
}
