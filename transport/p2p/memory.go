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
	// goneSoon is how long that waits for more of them, and goneLate until the library has
	// forgotten what it knew of their peers.
	goneSoon, goneLate = 15 * time.Second, 45 * time.Second
)

// released gives back the memory of connections that have ended, once there are many. The
// zero value is ready.
type released struct {
	gone    atomic.Int32
	waiting atomic.Bool
}

// ended counts one. It does not block.
func (r *released) ended() {
	if r.gone.Add(1) < manyGone || r.waiting.Swap(true) {
		return
	}
	time.AfterFunc(goneSoon, func() {
		r.gone.Store(0)
		r.waiting.Store(false)
		debug.FreeOSMemory()
		time.AfterFunc(goneLate-goneSoon, debug.FreeOSMemory)
	})
}
