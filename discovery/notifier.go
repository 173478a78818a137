package discovery

import "sync"

// Notifier wakes its subscribers. The zero value is ready. It is safe for concurrent use.
type Notifier struct {
	mu          sync.Mutex
	subscribers map[chan struct{}]struct{}
}

// Subscribe returns a channel that receives after each Notify, once for several that it has
// not received yet, until cancel is called.
func (n *Notifier) Subscribe() (woken chan struct{}, cancel func()) {
	woken = make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.subscribers == nil {
		n.subscribers = make(map[chan struct{}]struct{})
	}
	n.subscribers[woken] = struct{}{}
	return woken, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.subscribers, woken)
	}
}

// Notify wakes the subscribers. It does not block.
func (n *Notifier) Notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for woken := range n.subscribers {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}
