package chat

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"sync"

	"agentsite/device"
)

// Priority is whose request comes first.
type Priority uint8

const (
	Chat     Priority = iota // a person waits
	Rule                     // a rule asked
	Schedule                 // it was due
)

// maxWaiting bounds the requests that wait for one server.
const maxWaiting = 16

// Queues has a queue for each server, which answers one request at a time: that of the highest
// priority, and among those that of the agent that was served longest ago. Nothing of it runs while
// nobody waits. The zero Queues is ready, and is safe for concurrent use.
type Queues struct {
	mu sync.Mutex
	of map[string]*queue
}

type queue struct {
	busy    bool
	waiting []*waiter
	served  map[string]uint64 // when, by agent
	count   uint64
}

type waiter struct {
	agent    string
	priority Priority
	turn     chan struct{}
}

// Enter blocks until the server of an address is free for an agent. leave is called after the
// request.
func (q *Queues) Enter(ctx context.Context, address, agent string, p Priority) (leave func(), err error) {
	server := address
	if u, err := url.Parse(address); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	q.mu.Lock()
	if q.of == nil {
		q.of = make(map[string]*queue)
	}
	at := q.of[server]
	if at == nil {
		at = &queue{served: make(map[string]uint64)}
		q.of[server] = at
	}
	leave = sync.OnceFunc(func() { q.leave(server, at) })
	if !at.busy {
		at.take(agent)
		q.mu.Unlock()
		return leave, nil
	}
	if len(at.waiting) >= maxWaiting {
		q.mu.Unlock()
		return nil, device.Faultf(device.Busy, "%d requests wait for the model's server already; ask again later", maxWaiting)
	}
	w := &waiter{agent, p, make(chan struct{})}
	at.waiting = append(at.waiting, w)
	q.mu.Unlock()
	select {
	case <-w.turn:
		return leave, nil
	case <-ctx.Done():
		q.mu.Lock()
		i := slices.Index(at.waiting, w)
		if i >= 0 {
			at.waiting = slices.Delete(at.waiting, i, i+1)
		}
		q.mu.Unlock()
		if i < 0 { // its turn came meanwhile
			leave()
		}
		return nil, context.Cause(ctx)
	}
}

// take gives an agent the server. The lock is held.
func (at *queue) take(agent string) {
	at.busy = true
	at.count++
	at.served[agent] = at.count
}

// leave gives the server to the next, or forgets it.
func (q *Queues) leave(server string, at *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(at.waiting) == 0 {
		delete(q.of, server)
		return
	}
	next := slices.MinFunc(at.waiting, func(a, b *waiter) int { // the first of equals
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(at.served[a.agent], at.served[b.agent]))
	})
	at.waiting = slices.DeleteFunc(at.waiting, func(w *waiter) bool { return w == next })
	at.take(next.agent)
	close(next.turn)
}
