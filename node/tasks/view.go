package tasks

import (
	"cmp"
	"context"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
)

// found is a task that its asker, or an owner, asks about.
type found struct {
	asked entry
	live  *job    // nil once the task has ended
	ended *record // as far as it is not live
}

// find returns a task that p may see; nil for none.
func (m *Manager) find(p agents.Principal, id string) (*found, error) {
	if _, err := m.Node.Account(p); err != nil {
		return nil, err
	}
	if err := m.load(); err != nil {
		return nil, err
	}
	owner := m.Node.Owner(p) == nil
	m.mu.Lock()
	j, before := m.live[id], m.ended[id]
	m.mu.Unlock()
	if j != nil {
		if !owner && j.asked.Asker != p.ID {
			return nil, nil
		}
		if !j.seen.Load() && m.permitted(j) { // its asker is back
			m.serve(j.asked.Agent)
		}
		return &found{asked: j.asked, live: j}, nil
	}
	if before == nil || !owner && before.asker != tag(p.ID) {
		return nil, nil
	}
	r, err := m.read(before)
	if err != nil || !owner && r.asked.Asker != p.ID {
		return nil, err
	}
	return &found{asked: r.asked, ended: r}, nil
}

// must is find for a task that has to be there.
func (m *Manager) must(p agents.Principal, id string) (*found, error) {
	f, err := m.find(p, id)
	if f == nil && err == nil {
		err = device.Faultf(device.Invalid, "you have no task %.40q; tasks are kept for 7 days after their end", id)
	}
	return f, err
}

func (m *Manager) view(f *found, id string) (task.Task, error) {
	if f.live == nil {
		return f.ended.whole(), nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return f.live.view(), nil
}

// Task implements task.Host.
func (m *Manager) Task(_ context.Context, p agents.Principal, id string) (task.Task, error) {
	f, err := m.must(p, id)
	if err != nil {
		return task.Task{}, err
	}
	return m.view(f, id)
}

// List implements task.Host.
func (m *Manager) List(_ context.Context, p agents.Principal) ([]task.Task, error) {
	if _, err := m.Node.Account(p); err != nil {
		return nil, err
	}
	if err := m.load(); err != nil {
		return nil, err
	}
	now, sure := m.Now()
	owner := m.Node.Owner(p) == nil
	all := []task.Task{}
	m.mu.Lock()
	var unread []*past
	for _, j := range m.sorted() {
		if owner || j.asked.Asker == p.ID {
			t := j.head()
			t.Says = cmp.Or(t.Says, j.progress)
			all = append(all, t)
		}
	}
	for _, e := range m.ended {
		if e.age(now, sure) <= keepEnded && (owner || e.asker == tag(p.ID)) {
			unread = append(unread, e)
		}
	}
	m.mu.Unlock()
	for _, e := range unread {
		m.mu.Lock()
		head := e.head
		m.mu.Unlock()
		if head == nil {
			r, err := m.read(e)
			if err != nil {
				continue // its own question says why
			}
			t := r.head()
			head = &t
			m.mu.Lock()
			e.head = head
			m.mu.Unlock()
		}
		if owner || head.Asker == p.ID {
			all = append(all, *head)
		}
	}
	task.Sort(all)
	return all, nil
}

// Watch implements task.Host.
func (m *Manager) Watch(ctx context.Context, p agents.Principal, id string, emit func(task.Task) error) error {
	for {
		f, err := m.must(p, id) // the permission may have ended since
		if err != nil {
			return err
		}
		var changed <-chan struct{}
		var t task.Task
		if f.live == nil {
			t = f.ended.whole()
		} else {
			m.mu.Lock()
			t, changed = f.live.view(), f.live.changed
			m.mu.Unlock()
		}
		if err := emit(t); err != nil || t.State.Ended() {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Answer implements task.Host.
func (m *Manager) Answer(ctx context.Context, p agents.Principal, id, question, answer string) (task.Task, error) {
	f, err := m.must(p, id)
	if err != nil {
		return task.Task{}, err
	}
	if f.live == nil {
		return task.Task{}, device.Faultf(device.Invalid, "this task has ended; ask for another")
	}
	q, given, err := m.asks(f.live, question, answer)
	if err != nil {
		return task.Task{}, err
	}
	if given { // a retry
		return m.view(f, id)
	}
	if err := checkText("answer", answer); err != nil {
		return task.Task{}, err
	}
	if len(q.Options) > 0 {
		if err := agents.CheckName("answer", answer, q.Options); err != nil {
			return task.Task{}, err
		}
	}
	if err := m.commit(f.live, entry{Kind: kindAnswer, Question: question, Text: answer, Asker: p.ID}, true); err != nil {
		if _, given, late := m.asks(f.live, question, answer); late != nil || !given {
			return task.Task{}, cmp.Or(late, err) // another answer, or the end of the task, came first
		}
	}
	return m.Task(ctx, p, id)
}

// asks returns the question that a task asks now, and whether it was answered so already. Any other
// question is refused.
func (m *Manager) asks(j *job, question, answer string) (q *task.Question, given bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, again := j.answers[question]
	switch {
	case again && before == answer:
		return nil, true, nil
	case j.state == task.AuthRequired:
		return nil, false, device.Faultf(device.Denied, "only an owner answers this, on the site's own machine: agentsite approve")
	case j.question == nil || j.question.ID != question:
		return nil, false, device.Faultf(device.Invalid, "this task does not ask %.40q now; look at it again", question)
	}
	return j.question, false, nil
}

// Cancel implements task.Host.
func (m *Manager) Cancel(ctx context.Context, p agents.Principal, id string) (task.Task, error) {
	f, err := m.must(p, id)
	if err != nil {
		return task.Task{}, err
	}
	if f.live == nil {
		return m.view(f, id)
	}
	m.stop(f.live, errCanceled)
	var last task.Task
	err = m.Watch(ctx, p, id, func(t task.Task) error {
		last = t
		return nil
	})
	if ctx.Err() != nil {
		err = device.Faultf(device.Busy, "it is canceled before its next step; the one that is made now has not ended")
	}
	return last, err
}
