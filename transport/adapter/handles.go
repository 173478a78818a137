package adapter

import (
	"crypto/rand"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// Handles is a table of states that callers come back to, such as conversations. Each belongs to
// its principal, expires after Life, and is in memory only. At the limit of an account, its oldest
// handle is evicted. The methods are safe for concurrent use.
type Handles[T any] struct {
	What      string // for errors: "conversation"
	Life      time.Duration
	Each, All int // the most of an account, and of all accounts

	mu   sync.Mutex
	held []handle[T] // the oldest first
}

type handle[T any] struct {
	id, who, account string
	ends             time.Time
	value            T
}

// Add keeps a value for p, whose limits are those of the account, and returns its handle.
func (h *Handles[T]) Add(p agents.Principal, account string, value T) (id string, ends time.Time) {
	id = rand.Text()
	return id, h.Put(p, account, id, value)
}

// Put is Add with a handle of the caller's choice, in place of a handle of p with the same ID.
func (h *Handles[T]) Put(p agents.Principal, account, id string, value T) (ends time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := h.find(p, id); i >= 0 {
		h.drop(i)
	}
	now := time.Now()
	counts := make(map[string]int)
	kept := h.held[:0]
	for _, old := range h.held {
		if now.Before(old.ends) {
			kept = append(kept, old)
			counts[old.account]++
		}
	}
	clear(h.held[len(kept):])
	h.held = kept
	if counts[account] >= h.Each {
		h.dropOldest(account)
	} else if len(h.held) >= h.All {
		most := account
		for name, n := range counts {
			if n > counts[most] {
				most = name
			}
		}
		h.dropOldest(most)
	}
	ends = now.Add(h.Life)
	h.held = append(h.held, handle[T]{id, p.ID, account, ends, value})
	return ends
}

// Of returns the values of p's handles that have not ended, the oldest first.
func (h *Handles[T]) Of(p agents.Principal) (all []T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, have := range h.held {
		if have.who == p.ID && time.Now().Before(have.ends) {
			all = append(all, have.value)
		}
	}
	return all
}

// dropOldest drops the oldest of an account, or of all where the account has none.
func (h *Handles[T]) dropOldest(account string) {
	for i, old := range h.held {
		if old.account == account {
			h.drop(i)
			return
		}
	}
	h.drop(0)
}

func (h *Handles[T]) drop(i int) {
	copy(h.held[i:], h.held[i+1:])
	clear(h.held[len(h.held)-1:])
	h.held = h.held[:len(h.held)-1]
}

// find returns the index of p's handle, or -1. The lock is held.
func (h *Handles[T]) find(p agents.Principal, id string) int {
	for i, have := range h.held {
		if have.id == id && have.who == p.ID {
			return i
		}
	}
	return -1
}

// Get returns the value of p's handle. One that has ended is an Expired fault once, and
// ErrNotFound after that.
func (h *Handles[T]) Get(p agents.Principal, id string) (value T, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.find(p, id)
	if i < 0 {
		return value, ErrNotFound("there is no such " + h.What + " of yours")
	}
	if !time.Now().Before(h.held[i].ends) {
		h.drop(i)
		return value, device.Faultf(device.Expired, "the %s has expired: begin a new one", h.What)
	}
	return h.held[i].value, nil
}

// Drop forgets p's handle, if there is one.
func (h *Handles[T]) Drop(p agents.Principal, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := h.find(p, id); i >= 0 {
		h.drop(i)
	}
}
