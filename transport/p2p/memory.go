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
	releaseAfter = 64
	// goneSoon is how long that waits for more of them. It is done so often as the library
	// takes to forget what it knew of their peers: it looks once a minute.
	releaseInterval = 15 * time.Second
	releaseRounds   = 5
)

// released gives back the memory of connections that have ended, once there are many. The
// zero value is ready.
type memoryReleaser struct{ closed, rounds atomic.Int32 }

// ended counts one. It does not block.
func (r *memoryReleaser) connClosed() {
	if r.closed.Add(1) < releaseAfter {
		return
	}
	r.closed.Store(0)
	if r.rounds.Swap(releaseRounds) == 0 {
		time.AfterFunc(releaseInterval, r.release)
	}
}

func (r *memoryReleaser) release() {
	debug.FreeOSMemory()
	if r.rounds.Add(-1) > 0 {
		time.AfterFunc(releaseInterval, r.release)
	}
}
