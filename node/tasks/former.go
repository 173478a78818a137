package tasks

import (
	"log/slog"
	"maps"
	"slices"

	"agentsite/agents/principal"
	"agentsite/node/hosted"
)

// forget keeps what tasks of removed agents know from later agents of their names: the conversations
// with one, and the tasks that one asked for, which owners alone see from then on. An agent whose
// definition is changed, without a review in between that finds none of its name, stays the same.
func (m *Manager) forget(workers []hosted.Worker) {
	present := make(map[string]bool)
	for _, w := range workers {
		present[w.Name] = true
	}
	m.mu.Lock()
	gone := m.present == nil
	for name := range m.present {
		gone = gone || !present[name]
	}
	m.present = present
	var all []*past
	if gone {
		all = slices.Collect(maps.Values(m.ended))
	}
	m.mu.Unlock()
	for _, p := range all {
		r, err := m.read(p)
		if err != nil {
			continue // nobody else can read it
		}
		to := p.ended
		to.former = to.former || !present[r.asked.Agent]
		if m.askerGone(r.asked.Asker) {
			to.asker = tag("former " + r.asked.Asker)
		}
		if to == p.ended || p.unnamed.Load() {
			continue
		}
		if err := m.disk.Rename(p.String(), to.String()); err != nil {
			slog.Error("task of a removed agent stays readable for a later one of its name, after the next start",
				"task", p.id, "err", err)
		}
		m.mu.Lock()
		if m.ended[p.id] == p {
			next := &past{ended: to, size: p.size, since: p.since, here: p.here, head: p.head, kept: p.kept}
			m.ended[p.id] = next
		}
		m.mu.Unlock()
	}
}

// askerGone reports whether an asker was an agent of this site that is not there now.
func (m *Manager) askerGone(asker string) bool {
	return m.Hosted != nil && principal.Parse(asker).Kind == principal.Hosted && !m.Hosted(asker)
}

// isFormer reports whether the agent of an ended task was removed since.
func (m *Manager) isFormer(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.ended[id]
	return p != nil && p.former
}
