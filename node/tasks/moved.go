package tasks

import (
	"log/slog"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/node/hosted"

	"github.com/go-json-experiment/json"
)

// maxHeld is for how long a step may hold an output of another site.
const maxHeld = 24 * time.Hour

// moved is a step that moved an output of another site.
type moved struct {
	*record
	step task.Step
	at   time.Time // by the site's clock
}

// tellMoved tells Moved what tasks of earlier runs may still hold at other sites.
func (m *Manager) tellMoved() {
	if m.Moved == nil {
		return
	}
	now, sure := m.Now()
	var records []*record
	var ended []*past
	m.mu.Lock()
	for _, j := range m.live {
		r := j.record
		r.steps = slices.Clone(r.steps)
		records = append(records, &r)
	}
	for _, p := range m.ended {
		if p.age(now, sure) < maxHeld {
			ended = append(ended, p)
		}
	}
	m.mu.Unlock()
	for _, p := range ended {
		r, err := m.read(p)
		if err != nil {
			slog.Warn("it is not known what a task has moved at other sites", "task", p.id, "err", err)
			continue
		}
		records = append(records, r)
	}
	last := make(map[string]moved) // by output
	for _, r := range records {
		for _, s := range r.steps {
			at, err := time.Parse(time.RFC3339, s.Time)
			if err != nil || s.Op != agents.OpMove || siteOf(s.Output) == "" || s.Outcome != "" && !s.May() {
				continue
			}
			if before, ok := last[s.Output]; !ok || !at.Before(before.at) {
				last[s.Output] = moved{r, s, at}
			}
		}
	}
	workers := m.Workers()
	for output, s := range last {
		left := s.left()
		if sure && s.sure {
			left -= max(0, now.Sub(s.at))
		}
		i := slices.IndexFunc(workers, func(w hosted.Worker) bool { return w.Name == s.asked.Agent })
		if i < 0 || left <= 0 {
			continue
		}
		if err := m.Moved(workers[i].Self, s.asker(), output, s.step.Value, s.step.Approved, left); err != nil {
			slog.Warn("it is not known for whom an output was moved", "output", output, "err", err)
		}
	}
}

// left returns how long the step may hold the output from its time; 0 if it returned it to safe.
func (s *moved) left() time.Duration {
	var out agents.Output
	switch {
	case s.step.Value.IsZero():
		return 0
	case s.step.Outcome == outcomeDone && json.Unmarshal(s.step.Result, &out) == nil && out.Left > 0:
		return seconds(min(out.Left, maxHeld.Seconds())) + stepTimeout
	}
	return maxHeld
}
