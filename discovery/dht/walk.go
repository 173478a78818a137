package dht

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ipfs/go-cid"
	kb "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
)

const (
	maxActiveServers = 10                     // servers asked at a time, without slow ones
	hedgeAfter       = 500 * time.Millisecond // until another server is asked besides a slow one
	maxRunningServers,
	maxServers = 48, 256 // servers asked at a time, and in all
)

// walk is an iterative lookup of a key's providers: it asks all known servers first, then the
// nearest to the key that any server names. The library waits seconds for each ten silent
// servers; this one asks another besides a slow one, and uses late answers.
type walk struct {
	d      *DHT
	key    cid.Cid
	target kb.ID
	steps  map[peer.ID]*step
	near   []*step // nearest first

	active, running, total, answered int // how many servers
}

// step is a server in a walk.
type step struct {
	peer.AddrInfo
	distance []byte
	state    stepState
	retried  bool // a known server, asked again
}

type stepState int

const (
	pending stepState = iota
	asked
	slow
	answered
	failed
)

// outcome is the result of asking a server.
type outcome struct {
	*step
	who, nearer []*peer.AddrInfo
	err         error
	late        bool // no answer yet
}

// walk asks until the servers nearest to the key have answered, or ctx ends, and emits from
// one goroutine the providers that each names. It fails if no server answered.
func (d *DHT) walk(ctx context.Context, key cid.Cid, emit func(server peer.ID, who []*peer.AddrInfo)) error {
	w := &walk{d: d, key: key, target: kb.ConvertKey(string(key.Hash())), steps: make(map[peer.ID]*step)}
	for _, b := range d.o.Bootstrap {
		w.addServer(b)
	}
	for _, p := range d.library.RoutingTable().NearestPeers(w.target, replication) {
		w.addServer(peer.AddrInfo{ID: p})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan outcome, 2*maxServers)
	for {
		for s := w.next(); s != nil; s = w.next() {
			w.ask(ctx, s, outcomes)
		}
		if w.running == 0 || w.done() || ctx.Err() != nil {
			break
		}
		o := <-outcomes
		if w.handleOutcome(o) && len(o.who) > 0 {
			emit(o.ID, o.who)
		}
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the lookup in the DHT was cancelled (%w)", ctx.Err())
	case w.answered == 0 && !d.o.Server: // which may be the first
		return d.errNoServer()
	}
	return nil
}

// addServer adds a server, once.
func (w *walk) addServer(p peer.AddrInfo) {
	if w.steps[p.ID] != nil || p.ID == w.d.self {
		return
	}
	id := kb.ConvertPeerID(p.ID)
	s := &step{AddrInfo: p, distance: make([]byte, len(id))}
	for i := range id {
		s.distance[i] = id[i] ^ w.target[i]
	}
	w.steps[p.ID] = s
	at, _ := slices.BinarySearchFunc(w.near, s, func(a, b *step) int { return bytes.Compare(a.distance, b.distance) })
	w.near = slices.Insert(w.near, at, s)
	if len(w.near) > 4*maxServers { // more are not needed
		last := w.near[len(w.near)-1]
		w.near = w.near[:len(w.near)-1]
		if last.state == pending {
			delete(w.steps, last.ID)
		}
	}
}

// next returns the server to ask now, nil for none.
func (w *walk) next() *step {
	if w.running >= maxRunningServers || w.total >= maxServers {
		return nil
	}
	for _, b := range w.d.o.Bootstrap {
		if s := w.steps[b.ID]; s != nil && s.state == pending {
			return s
		}
	}
	if w.active >= maxActiveServers {
		return nil
	}
	ahead := 0 // of those that are not given up, nearer ones
	for _, s := range w.near {
		switch {
		case ahead == replication:
			return nil
		case s.state == pending:
			return s
		case s.state != slow && s.state != failed:
			ahead++
		}
	}
	return nil
}

// done reports whether the nearest and the known servers have answered. It is called when
// next returns nil.
func (w *walk) done() bool {
	for _, b := range w.d.o.Bootstrap {
		if s := w.steps[b.ID]; s != nil && (s.state == asked || s.state == slow) {
			return false
		}
	}
	ahead := 0
	for _, s := range w.near {
		switch {
		case ahead == replication:
			return true
		case s.state == answered:
			ahead++
		case s.state == asked || s.state == slow:
			return false
		}
	}
	return w.running == 0
}

// ask asks a server. Its outcome is sent to outcomes; for a slow server, a late one is sent first.
func (w *walk) ask(ctx context.Context, s *step, outcomes chan<- outcome) {
	s.state = asked
	w.active++
	w.running++
	w.total++
	w.d.o.Host.Peerstore().AddAddrs(s.ID, s.Addrs, peerstore.TempAddrTTL)
	late := time.AfterFunc(hedgeAfter, func() { outcomes <- outcome{step: s, late: true} })
	if !w.d.sender.spawn(func() {
		who, nearer, err := w.d.messenger.GetProviders(ctx, s.ID, w.key.Hash())
		late.Stop()
		outcomes <- outcome{step: s, who: who, nearer: nearer, err: err}
	}) {
		late.Stop()
		outcomes <- outcome{step: s, err: errClosed}
	}
}

// handleOutcome stores an outcome and reports whether it is an answer.
func (w *walk) handleOutcome(o outcome) bool {
	if o.late && o.state != asked {
		return false
	}
	if o.state == asked {
		w.active--
	}
	if o.late {
		o.step.state = slow
		return false
	}
	w.running--
	if o.err != nil {
		o.step.state = failed
		if !o.retried && w.d.isKnown(o.ID) { // it may be all that there is, and have much to do just now
			o.step.state, o.step.retried = pending, true
		}
		w.d.o.Log.Debug("DHT server unavailable", "peer", o.ID, "err", o.err)
		return false
	}
	o.step.state = answered
	w.answered++
	for _, p := range o.nearer {
		w.addServer(*p)
	}
	return true
}
