// Package notify tells watchers about changes. Changes are coalesced for a slow watcher, so that
// its pending changes are bounded by the resources that it watches.
package notify

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"agentsite/agents"
)

// Watchers is a set of watchers to notify. The zero Watchers is empty. It is safe for concurrent
// use.
type Watchers struct {
	mu  sync.Mutex
	all []*Watcher // in the order in which they joined

	coalesced atomic.Uint64
}

// Watcher is told about some changes. Its methods are for one goroutine.
type Watcher struct {
	C <-chan struct{} // receives when there are changes to take; nil after JoinFunc

	of        *Watchers
	wake      func()
	which     agents.Change
	resources []resource     // with Watchers.mu, as what follows
	index     map[string]int // of resources, where they are many: it would be most of a small watcher
	pending   agents.Change
}

// resource is a watched resource.
type resource struct {
	uri     string
	changed bool
}

// few is how many resources are looked through one by one.
const few = 8

// Join adds a watcher of the offers that which names and of the resources among uris. From
// then on it misses nothing, until it leaves.
func (ws *Watchers) Join(which agents.Change, uris []string) *Watcher {
	some := make(chan struct{}, 1)
	w := ws.JoinFunc(which, uris, func() {
		select {
		case some <- struct{}{}:
		default:
		}
	})
	w.C = some
	return w
}

// JoinFunc is Join of a watcher without a channel: wake is called when there are changes to take,
// under a lock. It must neither block nor call the Watchers.
func (ws *Watchers) JoinFunc(which agents.Change, uris []string, wake func()) *Watcher {
	w := &Watcher{of: ws, wake: wake, which: which}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.set(uris)
	ws.all = append(ws.all, w)
	return w
}

// Replace sets the resources that the watcher is notified of, and misses no change of those from
// then on. Pending changes are dropped, except those of the offers.
func (w *Watcher) Replace(uris []string) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.set(uris)
}

// set sets the resources. The lock is held.
func (w *Watcher) set(uris []string) {
	w.resources, w.index = make([]resource, len(uris)), nil
	if len(uris) > few {
		w.index = make(map[string]int, len(uris))
	}
	for i, uri := range uris {
		w.resources[i].uri = uri
		if w.index != nil {
			w.index[uri] = i
		}
	}
}

// find returns a resource; nil where it is not watched. The lock is held.
func (w *Watcher) find(uri string) *resource {
	i, ok := w.index[uri]
	if w.index == nil {
		i = slices.IndexFunc(w.resources, func(r resource) bool { return r.uri == uri })
		ok = i >= 0
	}
	if !ok {
		return nil
	}
	return &w.resources[i]
}

// Leave ends the watch that Join began.
func (w *Watcher) Leave() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.of.all = slices.DeleteFunc(w.of.all, func(other *Watcher) bool { return other == w })
}

// Take returns the changes since it was called last, each once, resources in the order in
// which they were joined for.
func (w *Watcher) Take() (all []agents.Change) {
	w.TakeFunc(func(c agents.Change) { all = append(all, c) })
	return all
}

// TakeFunc is Take that makes no list. It calls f under a lock: f must neither block nor call the
// Watchers.
func (w *Watcher) TakeFunc(f func(agents.Change)) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	select {
	case <-w.C: // of what is taken
	default:
	}
	if w.pending != (agents.Change{}) {
		f(w.pending)
		w.pending = agents.Change{}
	}
	for i := range w.resources {
		if r := &w.resources[i]; r.changed {
			r.changed = false
			f(agents.Change{URI: r.uri})
		}
	}
}

// Notify tells about changes until ctx ends or emit fails: of the offers that which names,
// and of the resources among uris. It calls emit from one goroutine, first with the zero
// Change once nothing can be missed any more.
func (ws *Watchers) Notify(ctx context.Context, which agents.Change, uris []string, emit func(agents.Change) error) error {
	w := ws.Join(which, uris)
	defer w.Leave()
	if err := emit(agents.Change{}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.C:
		}
		for _, c := range w.Take() {
			if err := emit(c); err != nil {
				return err
			}
		}
	}
}

// Announce tells the watchers of a change. It does not block.
func (ws *Watchers) Announce(c agents.Change) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.all {
		if w.note(c) {
			w.wake()
		}
	}
}

// note records a change and reports whether it concerns the watcher.
func (w *Watcher) note(c agents.Change) bool {
	if c.URI != "" {
		r := w.find(c.URI)
		if r == nil {
			return false
		}
		if r.changed {
			w.of.coalesced.Add(1)
		}
		r.changed = true
		return true
	}
	mine := agents.Change{
		Tools: c.Tools && w.which.Tools, Prompts: c.Prompts && w.which.Prompts,
		Resources: c.Resources && w.which.Resources, Approvals: c.Approvals && w.which.Approvals,
		Permissions: c.Permissions && w.which.Permissions,
	}
	w.pending.Tools = w.pending.Tools || mine.Tools
	w.pending.Prompts = w.pending.Prompts || mine.Prompts
	w.pending.Resources = w.pending.Resources || mine.Resources
	w.pending.Approvals = w.pending.Approvals || mine.Approvals
	w.pending.Permissions = w.pending.Permissions || mine.Permissions
	return mine != agents.Change{}
}

// Counts reports how many watchers there are, and how many changes were coalesced for slow
// ones.
func (ws *Watchers) Counts() (watchers int, coalesced uint64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.all), ws.coalesced.Load()
}
