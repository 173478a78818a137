package p2p

import (
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// releaseAfter is how many connections have to close until their memory is returned to
	// the system. Go itself collects every two minutes when idle, and keeps the memory for
	// long.
	releaseAfter = 64
	// releaseInterval is the pause before each of releaseRounds collections: the library deletes its
	// data about peers once a minute.
	releaseInterval = 15 * time.Second
	releaseRounds   = 5
)

// memoryReleaser returns the memory of closed connections to the system, once there are many.
// The zero value is ready.
type memoryReleaser struct{ closed, rounds atomic.Int32 }

// connClosed counts one closed connection. It does not block.
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
