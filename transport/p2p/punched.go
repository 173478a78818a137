package p2p

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
)

// maxPunched bounds whose holes are remembered.
const maxPunched = 256

// punched are the peers to which a hole was punched.
type punchTracker struct {
	mu     sync.Mutex
	all    map[peer.ID]bool
	failed time.Time                       // the last that was not
	ended  func(who peer.ID, success bool) // for tests; nil for nobody
}

func newPunchTracker() *punchTracker { return &punchTracker{all: make(map[peer.ID]bool)} }

// Trace is told what becomes of each attempt.
func (p *punchTracker) Trace(e *holepunch.Event) {
	end, ok := e.Evt.(*holepunch.EndHolePunchEvt)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) >= maxPunched {
		clear(p.all)
	}
	p.all[e.Remote] = end.Success
	if !end.Success {
		p.failed = time.Now()
	}
	if p.ended != nil {
		p.ended(e.Remote, end.Success)
	}
}

func (p *punchTracker) to(who peer.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[who]
}

// failedAt is when a hole could not be punched last.
func (p *punchTracker) lastFailure() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}
