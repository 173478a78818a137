package tasks

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"agentsite/agents/task"
	"agentsite/device"
)

// job is a live task.
type job struct {
	record           // guarded by Manager.mu, as what follows
	until  time.Time // when its time is over
	timer  *time.Timer
	// stopping is why it ends, and cancel ends the run that is under way; nil for none.
	stopping error
	cancel   context.CancelCauseFunc
	runs     bool          // a run has not returned, which may still return outputs to safe
	back     chan struct{} // closed when a task that stepped aside has its turn again; nil for none
	progress string
	partial  string
	changed  chan struct{} // closed when it has changed

	seen atomic.Bool // its asker was permitted to ask, since the start

	writing device.Mutex // orders entries; taken before Manager.mu, never while that is held
	file    file         // nil while it is closed
	size    int64        // of the whole frames
	torn    bool         // more than that may be in the file
}

func newJob(r record, size int64) *job {
	return &job{record: r, size: size, changed: make(chan struct{}), writing: device.NewMutex()}
}

func (j *job) name() string { return j.asked.ID + liveSuffix }

// tell wakes the watchers of the task. The manager's lock is held.
func (j *job) tell() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// stepAt returns when step i ended, or began while it runs, by Go's clock. Like the time that the task
// has left, it counts the time without the site as far as the clock was known before and after. The
// manager's lock is held.
func (j *job) stepAt(i int) time.Time {
	return j.until.Add(-time.Duration(j.stepLeft[i]) * time.Millisecond)
}

// view returns the task as it is now. The manager's lock is held.
func (j *job) view() task.Task {
	t := j.whole()
	for i := range t.Steps {
		t.Steps[i].At = j.stepAt(i)
	}
	if !t.State.Ended() {
		t.Says, t.Partial = cmp.Or(t.Says, j.progress), j.partial
	}
	return t
}

// write appends a frame. After an error the file ends as before, or will before the next one.
func (j *job) write(d disk, b []byte, durable bool) (err error) {
	if j.file == nil {
		if j.file, err = d.Open(j.name()); err != nil {
			return err
		}
	}
	if j.torn {
		if err := j.file.Truncate(j.size); err != nil {
			return err
		}
		j.torn = false
	}
	_, err = j.file.Write(b)
	if err == nil && durable {
		err = j.file.Sync()
	}
	if err != nil {
		j.torn = j.file.Truncate(j.size) != nil
		return err
	}
	j.size += int64(len(b))
	return nil
}

// close writes the frames that are not on the disk yet.
func (j *job) close() {
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.file == nil {
		return
	}
	if err := errors.Join(j.file.Sync(), j.file.Close()); err != nil {
		slog.Error("task was not written to its end", "task", j.asked.ID, "err", err)
	}
	j.file = nil
}

// commit adds an entry to a task: to its file, durably if requested, and then to its record. After
// an error, a fault, neither has changed.
func (m *Manager) commit(j *job, e entry, durable bool) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	now, sure := m.Now()
	e.At, e.Sure = now.UnixMilli(), sure
	m.mu.Lock()
	e.Left = max(1, time.Until(j.until).Milliseconds())
	err, over := j.check(&e), m.over
	m.mu.Unlock()
	if over {
		return device.Faultf(device.Unavailable, "%w", errEnding)
	}
	if err != nil {
		return device.Faultf(device.Internal, "task %s: %w", j.asked.ID, err)
	}
	b, err := appendFrame(nil, &e)
	if err != nil {
		return device.Faultf(device.Invalid, "a text of this task is not UTF-8: %w", err)
	}
	most := int64(maxGrowing)
	if task.State(e.State).Ended() {
		most = maxFile
	}
	if j.size+int64(len(b)) > most {
		return device.Faultf(device.Invalid, "this task has become longer than %d KiB; ask for less in one task", maxGrowing>>10)
	}
	if err := j.write(m.disk, b, durable); err != nil {
		return diskFault(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := j.apply(&e); err != nil {
		return device.Faultf(device.Internal, "task %s: %w", j.asked.ID, err)
	}
	j.tell()
	m.step(j)
	return nil
}

// step tells Step where the task asks something, or has ended. The manager's lock is held.
func (m *Manager) step(j *job) {
	asks := ""
	if j.question != nil {
		asks = j.question.Text
	}
	if m.Step != nil && (asks != "" || j.state.Ended()) {
		m.Step(j.asked.ID, j.asked.Agent, j.asked.Asker, string(j.state), asks)
	}
}

// diskFault is the asker's fault for an error of the disk, whose details only the log has.
func diskFault(err error) error {
	slog.Error("task cannot be written", "err", err)
	why := "it cannot be written"
	var path *fs.PathError
	if errors.As(err, &path) {
		why = path.Err.Error()
	}
	return device.Faultf(device.Unavailable, "the site's disk does not store tasks (%s); ask an owner to check it", why)
}

// end ends a task. If the disk cannot store the end, the task has failed. The name of its file says
// so, which takes no space on a full disk.
func (m *Manager) end(j *job, e entry) {
	err := m.commit(j, e, true)
	m.retire(j, e, err)
}

// retire takes a task that has ended, or could not be stored as ended, from the live ones.
func (m *Manager) retire(j *job, e entry, err error) {
	if err != nil {
		slog.Error("task's end is not stored", "task", j.asked.ID, "err", err)
		if e.State != string(task.Canceled) {
			e.State, e.Fault = string(task.Failed), cmp.Or(e.Fault, string(device.Unavailable))
		}
		e.Says, e.Result = "the site's disk did not store how it ended; if that is read-only until the site starts again, the task goes on then", nil
		m.mu.Lock()
		now, sure := m.Now()
		e.At, e.Sure = now.UnixMilli(), sure
		if err := j.apply(&e); err != nil {
			slog.Error("task cannot end", "task", j.asked.ID, "err", err)
		}
		m.step(j)
		m.mu.Unlock()
	}
	j.close()
	j.writing.Lock()
	defer j.writing.Unlock()
	p := newPast(nameOf(&j.record), j.size)
	p.here = true
	if renamed := m.disk.Rename(j.name(), p.String()); renamed != nil || err != nil {
		p.kept = &j.record
		p.unnamed.Store(renamed != nil)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	j.timer.Stop()
	delete(m.live, j.asked.ID)
	m.ended[j.asked.ID] = p
	j.tell()
}

// nameOf returns the name of an ended task's file.
func nameOf(r *record) ended {
	return ended{max(0, r.changed/1000), r.sure, false, tag(r.asked.Account),
		tag(r.asked.Asker), r.asked.ID, string(r.state)}
}
