package rule

import "sync"

// runner gives rules their turns one after the other, in one goroutine that is there while there
// are any: most turns end at once, and each would grow a stack of its own. One that may block has
// the others go on without it.
type runner struct {
	mu      sync.Mutex
	queue   []func(leave func())
	running bool
}

// add adds a turn. It calls leave, which may be called again, before it blocks.
func (r *runner) add(turn func(leave func())) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, turn)
	if !r.running {
		r.running = true
		go r.run()
	}
}

func (r *runner) run() {
	left := false
	leave := func() {
		if !left {
			left = true
			go r.run()
		}
	}
	for !left {
		r.mu.Lock()
		if len(r.queue) == 0 {
			r.queue, r.running = nil, false
			r.mu.Unlock()
			return
		}
		turn := r.queue[0]
		r.queue = r.queue[1:]
		r.mu.Unlock()
		turn(leave)
	}
}
