package tasks

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"agentsite/agents/task"
	"agentsite/device"
)

// tag is a short digest of a principal's ID.
func tag(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:4])
}

// load reads the names of all tasks, and the live ones, once.
func (m *Manager) load() error {
	m.loading.Lock()
	defer m.loading.Unlock()
	if m.loaded {
		return nil
	}
	all, err := m.disk.List()
	if err != nil {
		return diskFault(err)
	}
	var live []*job
	began := time.Now()
	past := make(map[string]*past)
	for _, f := range all {
		id, e, ok := parseName(f.name)
		switch {
		case !ok:
			slog.Warn("file is no task's, and stays", "file", f.name)
		case id == "":
			past[e.id] = newPast(e, f.size)
			past[e.id].since = began
		default:
			j, ended := m.open(id, f)
			if ended != nil {
				past[id] = ended
			}
			if j != nil {
				live = append(live, j)
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = past
	for _, j := range live {
		m.add(j, j.remaining(m.Now))
	}
	m.loaded = true
	m.Recheck() // they were not there when Run began, if the disk refused them then
	return nil
}

// open reads the file of a live task. It may have ended since: then it gets the name that says so.
func (m *Manager) open(id string, f listed) (*job, *past) {
	b, err := m.disk.Read(f.name)
	if err != nil {
		slog.Error("task cannot be read, and waits for the next start", "task", id, "err", err)
		return nil, nil
	}
	r, good, err := decode(b)
	if err == nil && r.asked.ID != id {
		err = errDamaged
	}
	switch {
	case err == errTorn: // nobody was told of it
		if err := m.disk.Remove(f.name); err != nil {
			slog.Error("incomplete task cannot be removed", "task", id, "err", err)
		}
		return nil, nil
	case errors.Is(err, errDamaged) && r.asked.ID == id:
		slog.Error("task is damaged: it has failed", "task", id, "err", err)
		name := nameOf(&r)
		name.state = damaged
		return nil, m.rename(f, name)
	case err != nil:
		slog.Error("task cannot be read, and its file is left alone", "task", id, "err", err)
		return nil, nil
	case r.state.Ended():
		return nil, m.rename(f, nameOf(&r))
	}
	r.moved = slices.DeleteFunc(r.moved, func(output string) bool { return siteOf(output) == "" }) // those are safe since
	j := newJob(r, int64(good))
	j.torn = good < len(b)
	return j, nil
}

func newPast(e ended, size int64) *past { return &past{ended: e, size: size, since: time.Now()} }

// age returns how long ago a task ended, at least: of a task of an earlier run that is known only if
// the clock was known then and is now.
func (p *past) age(now time.Time, sure bool) time.Duration {
	age := time.Since(p.since)
	if sure && p.sure && !p.here {
		age = max(age, now.Sub(time.Unix(p.at, 0)))
	}
	return age
}

// rename gives the file of a task that has ended its name.
func (m *Manager) rename(f listed, to ended) *past {
	p := newPast(to, f.size)
	if err := m.disk.Rename(f.name, to.String()); err != nil {
		slog.Error("ended task cannot be renamed", "task", to.id, "err", err)
		p.unnamed.Store(true)
	}
	return p
}

// file is the name of a past task's file.
func (p *past) file() string {
	if p.unnamed.Load() {
		return p.id + liveSuffix
	}
	return p.String()
}

// add makes a task a live one, for the time that it has. The lock is held.
func (m *Manager) add(j *job, left time.Duration) {
	m.order = max(m.order, j.asked.Order)
	j.until = time.Now().Add(left)
	m.live[j.asked.ID] = j
	j.timer = time.AfterFunc(left, func() { m.stop(j, errLate) })
}

// remaining returns the time that a task has left after a start of the site.
func (j *job) remaining(now func() (time.Time, bool)) time.Duration {
	left := time.Duration(j.left) * time.Millisecond
	if t, sure := now(); sure && j.sure {
		left -= max(0, t.Sub(time.UnixMilli(j.record.changed)))
	}
	return min(max(left, 0), maxTime)
}

// read reads a task that has ended.
func (m *Manager) read(p *past) (*record, error) {
	if p.kept != nil {
		return p.kept, nil
	}
	b, err := m.disk.Read(p.file())
	if err != nil {
		return nil, diskFault(err)
	}
	r, _, err := decode(b)
	if r.asked.ID != p.id {
		return nil, device.Faultf(device.Internal, "task %s cannot be read: %w", p.id, cmp.Or(err, errDamaged))
	}
	if string(r.state) != p.state || err != nil { // as its name says
		if r.openStep() {
			r.steps[len(r.steps)-1].Outcome = string(device.UnknownOutcome)
		}
		r.question, r.result, r.fault = nil, nil, string(device.Internal)
		if r.state, r.says = task.State(p.state), "the site's disk did not store how it ended"; p.state == damaged {
			r.state, r.says = task.Failed, "its file is damaged, so that nobody knows what it did last; an owner finds it in the site's data folder"
		}
		if r.state == task.Completed {
			r.state = task.Failed
		}
	}
	return &r, nil
}

// repair gives the files of ended tasks their names that a read-only disk refused before. Until
// then a crash would have such a task worked on once more, from where it was.
func (m *Manager) repair() {
	var unnamed []*past
	m.mu.Lock()
	for _, p := range m.ended {
		if p.unnamed.Load() {
			unnamed = append(unnamed, p)
		}
	}
	m.mu.Unlock()
	for _, p := range unnamed {
		err := m.disk.Rename(p.id+liveSuffix, p.String())
		if errors.Is(err, fs.ErrNotExist) { // it has the name, which may not have been durable
			err = m.disk.Sync()
		}
		if err == nil {
			p.unnamed.Store(false)
		}
	}
}

// prune removes ended tasks: those that are old, and the oldest of the account that has the most
// beyond what is kept.
func (m *Manager) prune() {
	now, sure := m.Now()
	m.mu.Lock()
	var victims []*past
	count, size := make(map[string]int), int64(0)
	all := make([]*past, 0, len(m.ended))
	for _, p := range m.ended {
		// The clock may be wrong for a while.
		if p.age(now, sure) > keepEnded && time.Since(p.since) > keepLoaded {
			victims = append(victims, p)
			continue
		}
		all = append(all, p)
		count[p.account]++
		size += p.size
	}
	slices.SortFunc(all, func(a, b *past) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	})
	for len(all) > maxEnded || size > maxKept {
		most := all[0].account
		for account, n := range count {
			if n > count[most] {
				most = account
			}
		}
		i := slices.IndexFunc(all, func(p *past) bool { return p.account == most })
		victims = append(victims, all[i])
		count[most]--
		size -= all[i].size
		all = slices.Delete(all, i, i+1)
	}
	m.mu.Unlock()
	for _, p := range victims {
		if err := m.disk.Remove(p.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			slog.Error("ended task cannot be removed", "task", p.id, "err", err)
			continue
		}
		m.mu.Lock()
		delete(m.ended, p.id)
		m.mu.Unlock()
	}
}
