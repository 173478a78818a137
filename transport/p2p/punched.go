package p2p

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
)

// maxPunched bounds the peers that a punchTracker remembers.
const maxPunched = 256

// punchTracker remembers to which peers a hole was punched.
type punchTracker struct {
	mu     sync.Mutex
	all    map[peer.ID]bool
	failed time.Time                       // the last failure
	ended  func(who peer.ID, success bool) // for tests; may be nil
}

func newPunchTracker() *punchTracker { return &punchTracker{all: make(map[peer.ID]bool)} }

// Trace implements holepunch.EventTracer.
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

// lastFailure returns the time of the last attempt that failed.
func (p *punchTracker) lastFailure() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}
