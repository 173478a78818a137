package p2p

import (
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// manyGone is how many connections have to end until their memory is given back to the
	// machine. Go itself looks for garbage every two minutes where little is going on, and
	// keeps what it finds for long.
	manyGone = 64
	// goneSoon is how long that waits for more of them. It is done so often as the library
	// takes to forget what it knew of their peers: it looks once a minute.
	goneSoon  = 15 * time.Second
	goneTurns = 5
)

// released gives back the memory of connections that have ended, once there are many. The
// zero value is ready.
type released struct{ gone, turns atomic.Int32 }

// ended counts one. It does not block.
func (r *released) ended() {
	if r.gone.Add(1) < manyGone {
		return
	}
	r.gone.Store(0)
	if r.turns.Swap(goneTurns) == 0 {
		time.AfterFunc(goneSoon, r.turn)
	}
}

func (r *released) turn() {
	debug.FreeOSMemory()
	if r.turns.Add(-1) > 0 {
		time.AfterFunc(goneSoon, r.turn)
	}
}
