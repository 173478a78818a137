package tasks

import (
	"cmp"
	"context"
	"maps"
	"time"

	"agentsite/node/hosted"
)

// turns order the tasks of each agent: it works on one at a time. Those of owners come first, and
// then the accounts take turns. A task that waits for somebody gives its turn back meanwhile.
type turns struct {
	at     map[string]*job   // by agent, the task that has the turn
	before map[turnKey]int64 // when an account last had it
	count  int64
	looks  int64 // how often serve was called
}

type turnKey struct{ agent, account string }

// serve lets an agent work on its next task, if it works on none.
func (m *Manager) serve(agent string) {
	m.mu.Lock()
	m.turns.looks++
	m.mu.Unlock()
	workers := m.lockWorkers()
	defer m.mu.Unlock()
	m.next(agent, workers)
}

// lockWorkers takes the lock and returns the agents as they are after the last call of serve: one that
// is resumed meanwhile may have looked at a turn that was still held.
func (m *Manager) lockWorkers() []hosted.Worker {
	for {
		m.mu.Lock()
		looks := m.turns.looks
		m.mu.Unlock()
		workers := m.Workers() // it has locks of its own
		m.mu.Lock()
		if m.turns.looks == looks {
			return workers
		}
		m.mu.Unlock()
	}
}

// next gives the turn of an agent to the next task that can be worked on. The lock is held.
func (m *Manager) next(agent string, workers []hosted.Worker) {
	if m.ctx == nil || m.closed || m.ctx.Err() != nil || m.turns.at[agent] != nil {
		return
	}
	var first *job
	var worker hosted.Worker
	for _, j := range m.live {
		if j.asked.Agent != agent || first != nil && m.turns.compare(first, j) <= 0 {
			continue
		}
		if j.back != nil {
			first = j
			continue
		}
		over := j.stopping != nil || j.state.Ended() || time.Until(j.until) <= 0
		if j.runs || over || !m.permitted(j) {
			continue
		}
		if w, why := m.workerOf(workers, j); why == nil {
			first, worker = j, w
		}
	}
	t := &m.turns
	if first == nil { // nobody waits: who had it last does not matter any more
		maps.DeleteFunc(t.before, func(s turnKey, _ int64) bool { return s.agent == agent })
		return
	}
	t.count++
	t.at[agent], t.before[turnKey{agent, first.asked.Account}] = first, t.count
	if first.back != nil {
		close(first.back)
		first.back = nil
		return
	}
	ctx, cancel := context.WithCancelCause(m.ctx)
	first.cancel, first.runs = cancel, true
	m.running.Go(func() {
		m.run(ctx, first, worker)
		m.leave(first, false)
	})
}

// compare orders two tasks of one agent by whose turn is first.
func (t *turns) compare(a, b *job) int {
	owners := func(j *job) int {
		if j.asked.Owner {
			return 0
		}
		return 1
	}
	before := func(j *job) int64 { return t.before[turnKey{j.asked.Agent, j.asked.Account}] }
	return cmp.Or(owners(a)-owners(b), cmp.Compare(before(a), before(b)), cmp.Compare(a.asked.Order, b.asked.Order), cmp.Compare(a.asked.ID, b.asked.ID))
}

// leave gives the turn of a task back, if it has it. Where its run has returned it may be run again,
// also if nobody has the turn: its agent may have been resumed meanwhile.
func (m *Manager) leave(j *job, runs bool) {
	workers := m.lockWorkers()
	defer m.mu.Unlock()
	j.runs = runs
	if agent := j.asked.Agent; m.turns.at[agent] == j {
		delete(m.turns.at, agent)
	}
	m.next(j.asked.Agent, workers)
}

// aside gives the turn of the task back while it waits for somebody. The caller calls back before
// it goes on, which waits for the turn, or for the end of the run.
func (w *work) aside() (back func()) {
	m, j := w.m, w.j
	m.leave(j, true)
	return func() {
		turn := make(chan struct{})
		workers := m.lockWorkers()
		j.back = turn
		m.next(j.asked.Agent, workers)
		m.mu.Unlock()
		select {
		case <-turn:
		case <-w.ctx.Done():
			m.mu.Lock()
			j.back = nil
			m.mu.Unlock()
		}
	}
}
