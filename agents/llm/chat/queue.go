package chat

import (
	"context"
	"net/url"
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
	of map[string]*queue // of the servers that answer a request now
}

type queue struct {
	waiting []*waiter
	served  map[string]int // when, by agent
	count   int
}

type waiter struct {
	agent    string
	priority Priority
	turn     chan struct{}
	left     bool
}

// Enter blocks until the server of an address is free for an agent. leave is called after the
// request.
func (q *Queues) Enter(ctx context.Context, address, agent string, p Priority) (leave func(), err error) {
	server := address
	if u, err := url.Parse(address); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	w := &waiter{agent: agent, priority: p, turn: make(chan struct{})}
	q.mu.Lock()
	at := q.of[server]
	if at != nil && len(at.waiting) >= maxWaiting {
		q.mu.Unlock()
		return nil, device.Faultf(device.Busy, "%d requests wait for the model's server already; ask again later", maxWaiting)
	}
	if at != nil {
		at.waiting = append(at.waiting, w)
	} else {
		if q.of == nil {
			q.of = make(map[string]*queue)
		}
		at = &queue{served: make(map[string]int)}
		q.of[server] = at
		at.serve(w)
	}
	q.mu.Unlock()
	leave = func() { q.leave(server, w) }
	select {
	case <-w.turn:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// serve gives an agent the server. The lock is held.
func (at *queue) serve(w *waiter) {
	at.count++
	at.served[w.agent] = at.count
	close(w.turn)
}

// leave takes a request away. Where it was that which the server answers, the next one is, or the
// queue is forgotten.
func (q *Queues) leave(server string, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.left {
		return
	}
	w.left = true
	at := q.of[server]
	out, next := -1, -1
	for i, b := range at.waiting {
		if b == w {
			out = i
		}
		if next < 0 || b.priority < at.waiting[next].priority || b.priority == at.waiting[next].priority && at.served[b.agent] < at.served[at.waiting[next].agent] {
			next = i
		}
	}
	if out < 0 && next < 0 {
		delete(q.of, server)
		return
	}
	if out < 0 {
		out = next
		at.serve(at.waiting[next])
	}
	at.waiting = append(at.waiting[:out], at.waiting[out+1:]...)
}
