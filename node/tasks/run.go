package tasks

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/hosted"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// run has an agent work on a task until that ends, is to wait, or the site ends.
func (m *Manager) run(ctx context.Context, j *job, w hosted.Worker) {
	var result jsontext.Value
	err := m.prepare(j)
	work := &work{m: m, j: j, self: w.Self, ctx: ctx}
	if err == nil {
		result, err = workOn(ctx, w, &site{Site: m.Site, work: work}, work)
		work.mu.Lock() // a step that it left behind
		work.over = true
		work.mu.Unlock()
	}
	m.mu.Lock()
	why := j.stopping
	over := ctx.Err() != nil
	waits := err != nil && why == nil && over // for its agent, or for the next start
	if why == nil && !waits {
		j.stopping = errors.New("it ends by itself")
	}
	j.cancel(nil)
	if j.cancel = nil; waits { // else they are shown until the end is stored
		j.progress, j.partial = "", ""
	}
	began := len(j.steps) > 0
	m.mu.Unlock()
	// An agent that has ended meanwhile has released its own leases. Outputs of other sites do not
	// go to safe with this one.
	if _, gone := m.workerOf(m.Workers(), j); err != nil || over || gone != nil {
		work.release()
	}
	if !waits {
		work.cancelFar()
	}
	switch {
	case waits:
	case err == nil && why == nil:
		m.complete(j, result, work.release)
	case why != nil:
		m.finish(j, why)
	case device.AsFault(err).Kind == device.Invalid && !began:
		m.end(j, entry{Kind: kindState, State: string(task.Rejected), Fault: string(device.Invalid), Says: clip(device.AsFault(err).Msg)})
	default:
		f := device.AsFault(err)
		m.end(j, entry{Kind: kindState, State: string(task.Failed), Fault: string(f.Kind), Says: clip(f.Msg)})
	}
}

// workOn has an agent work. A panic, whatever its words were about, fails the task alone.
func workOn(ctx context.Context, w hosted.Worker, s *site, work *work) (result jsontext.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("a defect: an agent panicked", "agent", w.Self.ID, "task", work.j.asked.ID, "panic", p, "stack", string(debug.Stack()))
			result, err = nil, device.Faultf(device.Internal, "a defect of this agent ended the task; the site's log has it")
		}
	}()
	return w.Work(ctx, w.Self, s, work)
}

// prepare makes a task ready for work. An interrupted step has an unknown outcome, unless it asked
// another site: that task is found again by its key.
func (m *Manager) prepare(j *job) error {
	m.mu.Lock()
	state, open, n := j.state, j.openStep() && j.far == "", len(j.steps)
	m.mu.Unlock()
	switch {
	case state == task.Submitted || state == task.AuthRequired: // a caller that saw it working sees so after a power failure
		return m.commit(j, entry{Kind: kindState, State: string(task.Working)}, true)
	case state == task.Working && open:
		return m.commit(j, entry{Kind: kindResult, Step: n, Fault: string(device.UnknownOutcome), Says: "the site ended before this was answered; it is not made again"}, false)
	}
	return nil
}

// complete ends a task that was done. If that cannot be stored it has failed, and its leases are
// released.
func (m *Manager) complete(j *job, result jsontext.Value, release func()) {
	if len(result) > maxEnd || result != nil && !result.IsValid() {
		release()
		m.end(j, entry{Kind: kindState, State: string(task.Failed), Fault: string(device.Internal), Says: "it was done, but its result cannot be kept: it is longer than 64 KiB, or no JSON"})
		return
	}
	m.mu.Lock()
	state := j.state
	m.mu.Unlock()
	if state == task.InputRequired { // it does not wait for the answer after all
		if err := m.commit(j, entry{Kind: kindState, State: string(task.Working)}, false); err != nil {
			slog.Error("task cannot go on", "task", j.asked.ID, "err", err)
		}
	}
	e := entry{Kind: kindState, State: string(task.Completed), Result: result}
	err := m.commit(j, e, true)
	if err != nil {
		release()
	}
	m.retire(j, e, err)
}

// work is a task as its agent has it.
type work struct {
	m    *Manager
	j    *job
	self agents.Principal
	ctx  context.Context // of the run

	mu     sync.Mutex // held during a step: one at a time
	over   bool
	broken error // why the result of a step is not stored, so that none can follow
}

// Task implements task.Work.
func (w *work) Task() task.Task {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	return w.j.view()
}

// Say implements task.Work.
func (w *work) Say(text string) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if text = clip(text); text != w.j.progress && !w.j.state.Ended() {
		w.j.progress = text
		w.j.tell()
	}
}

// Step implements task.Work.
func (w *work) Step(ctx context.Context, does string, do func(ctx context.Context, key string) (any, error)) (jsontext.Value, error) {
	v, err := w.step(ctx, task.Step{Does: does}, true, func(key, _ string) (any, error) { return do(ctx, key) })
	return v, err
}

// alive returns why the task goes on no further. The caller has the turn.
func (w *work) alive(ctx context.Context) error {
	switch {
	case w.broken != nil:
		return w.broken
	case w.over:
		return device.Faultf(device.Internal, "its agent has returned from this task")
	case w.ctx.Err() != nil:
		return context.Cause(w.ctx)
	}
	return ctx.Err()
}

// step makes a step. do gets its key and the handle of an approval. A
// step that need not be durable is made although the disk refuses it.
func (w *work) step(ctx context.Context, s task.Step, durable bool,
	do func(key, approval string) (any, error)) (jsontext.Value, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stepLocked(ctx, s, durable, do)
}

// stepLocked is step for a caller that has the turn.
func (w *work) stepLocked(ctx context.Context, s task.Step, durable bool,
	do func(key, approval string) (any, error)) (jsontext.Value, error) {
	if err := w.alive(ctx); err != nil {
		return nil, err
	}
	if err := w.working(); err != nil && durable {
		return nil, err
	}
	w.m.mu.Lock()
	n := len(w.j.steps) + 1
	w.m.mu.Unlock()
	if n > maxSteps && durable {
		return nil, device.Faultf(device.Unavailable, "a task makes at most %d steps, and this one has made them", maxSteps)
	}
	intent := intentOf(n, s)
	noted := w.m.commit(w.j, intent, durable)
	if noted != nil && durable {
		return nil, noted
	}
	if !durable {
		v, err := do(w.key(n), "")
		var needed *agents.ApprovalNeeded
		switch {
		case noted != nil:
			return nil, err
		case !errors.As(err, &needed):
			return w.note(n, v, err)
		}
	}
	return w.attempt(ctx, intent, do)
}

// attempt makes a step whose intent is stored, waits for an owner's approval if it needs one, and
// stores the outcome.
func (w *work) attempt(ctx context.Context, intent entry, do func(key, approval string) (any, error)) (jsontext.Value, error) {
	n := intent.Step
	key := w.key(n)
	v, err := do(key, "")
	var needed *agents.ApprovalNeeded
	began := time.Now()
	for tries := 1; errors.As(err, &needed); tries++ {
		handle, waited := w.approval(ctx, n, needed)
		if waited != nil {
			return nil, waited
		}
		if err := w.m.commit(w.j, intent, true); err != nil {
			return nil, err
		}
		v, err = do(key, handle) // an answer counts, however late it is
		more := errors.As(err, &needed)
		unanswered := !more && err != nil && device.AsFault(err).Kind == device.Expired
		switch {
		case tries == maxApprovals && (more || unanswered), unanswered && time.Since(began) >= approvalTime:
			err = device.Faultf(device.Expired, "no owner approved this in time: %s", intent.Says)
		case unanswered: // it is asked anew
			v, err = do(key, "")
		}
	}
	return w.note(n, v, err)
}

// key is the idempotency key of a step.
func (w *work) key(n int) string { return "task/" + w.j.asked.ID + "/" + number(n) }

// note stores the outcome of a step. Without a sync: after a power failure its outcome is unknown,
// and it is not made again. A step that waits for another site has none before its end.
func (w *work) note(n int, v any, err error) (jsontext.Value, error) {
	if far, _ := w.openFar(); far != "" && err != nil && w.ctx.Err() != nil {
		return nil, err
	}
	e := entry{Kind: kindResult, Step: n, Fault: outcomeDone}
	if _, words := v.(farResult); words || err == nil && v != nil { // an agent elsewhere says why it failed
		text, wrong := json.Marshal(v, json.Deterministic(true))
		if wrong != nil {
			err = device.Faultf(device.Internal, "the result of a step is not JSON: %w", wrong)
		} else if e.Result = text; len(text) > maxResult {
			e.Result, e.Says = nil, "its result is too long to be kept"
		}
	}
	if out, ok := v.(agents.Output); ok && err == nil && out.Left > 0 { // the lease that was given
		w.m.mu.Lock()
		asked := w.j.steps[n-1].For
		w.m.mu.Unlock()
		if given := seconds(min(out.Left, 1e9)).Round(time.Second); given != asked {
			e.Says = "for " + device.FormatDuration(given)
		}
	}
	if err != nil {
		f := device.AsFault(err)
		e.Fault, e.Says = string(f.Kind), clip(f.Msg)
	}
	failed := w.m.commit(w.j, e, false)
	if failed != nil && e.Result != nil { // there may be room for less
		e.Result, e.Says = nil, "its result is too long to be kept"
		failed = w.m.commit(w.j, e, false)
	}
	w.broken = failed
	return jsontext.Value(e.Result), err
}

const outcomeDone = "done"

// approval blocks until an owner has answered, or the request is over.
func (w *work) approval(ctx context.Context, n int, needed *agents.ApprovalNeeded) (handle string, err error) {
	if err := w.m.commit(w.j, entry{Kind: kindApproval, Step: n, Question: "approval", Says: clip(needed.Says)}, true); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) })()
	defer w.aside()()
	return needed.State, w.m.Node.Decided(ctx, w.self, needed.State)
}

// working sets a task to Working that waited for an answer before a restart and does something else
// now.
func (w *work) working() error {
	w.m.mu.Lock()
	state := w.j.state
	w.m.mu.Unlock()
	if state == task.Working {
		return nil
	}
	return w.m.commit(w.j, entry{Kind: kindState, State: string(task.Working)}, false)
}

// Input implements task.Work.
func (w *work) Input(ctx context.Context, q task.Question) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.m.mu.Lock()
	if q.ID == "" {
		q.ID = number(len(w.j.answers) + 1)
	}
	given, ok := w.j.answers[q.ID]
	asked, count, pending := w.j.state == task.InputRequired, len(w.j.answers), w.j.question
	w.m.mu.Unlock()
	if ok {
		return given, nil
	}
	if err := w.alive(ctx); err != nil {
		return "", err
	}
	if !asked || pending.ID != q.ID {
		if err := checkQuestion(q, count); err != nil {
			return "", err
		}
		if err := w.working(); err != nil {
			return "", err
		}
		if err := w.m.commit(w.j, entry{Kind: kindQuestion, Question: q.ID, Text: q.Text, Options: q.Options}, false); err != nil {
			return "", err
		}
	}
	defer w.aside()()
	for {
		w.m.mu.Lock()
		given, ok := w.j.answers[q.ID]
		changed := w.j.changed
		w.m.mu.Unlock()
		if ok {
			return given, nil
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			return "", context.Cause(w.ctx)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func checkQuestion(q task.Question, before int) error {
	if before >= maxAsks {
		return device.Faultf(device.Unavailable, "a task asks at most %d questions", maxAsks)
	}
	if len(q.ID) > 24 || len(q.Options) > maxOptions {
		return device.Faultf(device.Internal, "a question has a short ID and at most %d options", maxOptions)
	}
	for _, text := range append([]string{q.Text}, q.Options...) {
		if err := checkText("question", text); err != nil {
			return err
		}
	}
	return nil
}

// clip returns the beginning of a text, as UTF-8.
func clip(text string) string { return device.Clip(text, maxSays) }

func number(n int) string { return strconv.Itoa(n) }
