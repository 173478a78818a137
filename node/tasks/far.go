package tasks

import (
	"context"
	"errors"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// A site that does not answer is asked again after pauses within these bounds.
	farRetryMin = time.Second
	farRetryMax = time.Minute
	// farTell is the shortest time between two changes of a task of another site that are taken.
	farTell = time.Second
	// farApproval is how often another site is asked whether its owner has answered.
	farApproval = 5 * time.Second
	// farGrace is how long a step is continued at least after a restart: its task may have ended in time.
	farGrace = 30 * time.Second
	// farAnswer is how long a pending request to another site may still take when the task here
	// ends. Then the task there can be canceled. It is below endTimeout.
	farAnswer = 2 * time.Second
	// farCancel bounds the cancellation of a task of another site.
	farCancel = 10 * time.Second
)

// Elsewhere is the tasks that an agent asks of agents of other sites. Errors are faults: Offline
// where the site is away, UnknownOutcome where it did not answer; and *agents.ApprovalNeeded.
type Elsewhere interface {
	// Ask answers the same task when it is asked again with a key.
	Ask(ctx context.Context, site string, r task.Request) (task.Task, error)
	// Watch calls emit with the task as it is and when it has changed, until it has ended, or for a
	// while.
	Watch(ctx context.Context, site, id string, emit func(task.Task) error) error
	Cancel(ctx context.Context, site, id string) (task.Task, error)
	// Refused returns the fault of a site that is away because it refuses the agent; nil for any other.
	Refused(site string) error
}

var _ task.Asker = (*work)(nil)

var (
	errFarLate = errors.New("the time of the step is over")
	errFarAsks = errors.New("the task asks a question")
)

// farResult is the result of a step that asked another site.
type farResult struct {
	Task   string         `json:"task"` // its ID there
	Result jsontext.Value `json:"result,omitzero"`
	Why    string         `json:"result_left_out,omitzero"`
}

// Ask implements task.Asker.
func (w *work) Ask(ctx context.Context, r task.Request) (out task.Task, err error) {
	f := &far{work: w, request: r}
	f.site, f.agent, _ = strings.Cut(r.Agent, "/")
	switch {
	case device.CheckName(f.site) != nil || device.CheckName(f.agent) != nil:
		return out, device.Faultf(device.Invalid, "%.60q is no agent of another site; write SITE/AGENT", r.Agent)
	case w.m.Elsewhere == nil:
		return out, device.Faultf(device.Unavailable, "this site asks no other ones")
	case r.Seconds == nil:
		f.request.Seconds = new(defaultTime.Seconds())
	}
	f.at = w.m.Elsewhere(w.self.ID)
	does := task.Step{Does: "ask " + r.Agent, Op: agents.OpAsk}
	do := func(key, approval string) (any, error) {
		if f.over != nil { // only a step that was not begun is asked again, with an approval
			return nil, f.over
		}
		var err error
		if out, err = f.run(ctx, key, approval); err != nil && f.begun {
			f.over = err
		}
		if err != nil && out.Result == nil {
			return nil, err
		}
		res := farResult{Task: out.ID, Result: out.Result}
		if len(res.Result) > maxResult-200 {
			res.Result, res.Why = nil, "it is too long to be kept here"
		}
		return res, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before, n := w.openFar()
	if before == "" {
		_, err = w.stepLocked(ctx, does, true, do)
		return out, err
	}
	if err := w.alive(ctx); err != nil {
		return out, err
	}
	site, id, begun := strings.Cut(before, "/")
	if site != f.site {
		return out, device.Faultf(device.Internal, "the last step asks %s, and has not ended", site)
	}
	f.begun, f.id, f.since = begun, id, w.elapsed(n)
	_, err = w.attempt(ctx, intentOf(n, does), do)
	return out, err
}

// openFar returns the task at another site that the last step waits for, as entry.Far, and the
// number of steps.
func (w *work) openFar() (far string, steps int) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	return w.j.far, len(w.j.steps)
}

// elapsed is how long ago a step began.
func (w *work) elapsed(n int) time.Duration {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	return max(0, time.Since(w.j.stepAt(n-1)))
}

// far is a step that asks an agent of another site, and waits for the end of its task.
type far struct {
	*work
	site, agent string
	request     task.Request
	at          Elsewhere
	begun       bool          // it may have been asked there
	id          string        // of the task there; "" while it is not known
	since       time.Duration // it was begun, before a restart
	doubt       bool          // an earlier try may have made the task, though none was answered
	over        error         // why it failed, once begun
}

// run asks, waits, and returns the task that was completed. A run that is cut off by the end of the
// site, or by that of its task, leaves the step as it is.
func (f *far) run(ctx context.Context, key, approval string) (t task.Task, err error) {
	defer f.Say("")
	left := seconds(*f.request.Seconds)
	if f.since > 0 {
		left = max(left-f.since, min(left, farGrace))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, left, errFarLate)
	defer cancel()
	f.doubt = f.begun
	defer f.aside()()
	if !f.begun {
		err = f.noteFar("", false) // so that it is begun after a restart
	}
	if err == nil && f.id == "" {
		err = f.ask(ctx, key, approval)
	}
	if err == nil {
		t, err = f.follow(ctx)
	}
	var needed *agents.ApprovalNeeded
	switch {
	case err == nil:
		return t, f.failed(t)
	case f.ctx.Err() != nil:
		return t, context.Cause(f.ctx)
	case errors.As(err, &needed), !f.begun && err != errFarLate:
		return t, err
	case !f.begun:
		return t, device.Faultf(device.Offline, "%s was not reached in time, and nothing was asked of it", f.site)
	case f.id == "" && !f.doubt && err != errFarLate && device.AsFault(err).Kind != device.Internal: // it refused
		return t, err
	}
	end := f.cancelThere()
	says := device.AsFault(err).Msg
	kind := device.AsFault(err).Kind
	switch {
	case err == errFarAsks:
		kind, says = device.Unavailable, "it asks a question, and only those who ask it themselves can answer"
	case err == errFarLate && f.id == "":
		says = f.site + " did not answer in time"
	case err == errFarLate:
		kind, says = device.Expired, "it has not ended in time"
	default: // the failed call did not ask
		kind = device.Unavailable
	}
	if end == "" {
		kind, end = device.UnknownOutcome, "it may go on there until its own end"
	}
	return t, device.Faultf(kind, "%s: %s; %s", f.request.Agent, says, end)
}

// ask asks for the task until the other site has answered.
func (f *far) ask(ctx context.Context, key, approval string) error {
	for pause := farRetryMin; ; pause = min(2*pause, farRetryMax) {
		terms := f.Through(agents.Terms{Key: &key, Approval: approval})
		terms, end, err := f.m.AskElsewhere(ctx, f.self, f.request.Agent, argsOf(f.request), terms, f.begun)
		if err == nil { // permitted, and approved where an owner of this site has to
			err = f.askOnce(ctx, terms, end)
		}
		if refused := f.at.Refused(f.site); err != nil && !f.begun && refused != nil {
			return refused
		}
		var needed *agents.ApprovalNeeded
		kind := device.FaultKind("")
		if err != nil {
			kind = device.AsFault(err).Kind
		}
		switch {
		case err == nil:
			return f.noteFar("/"+f.id, false)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &needed) && !f.begun: // of an owner of this site
			return err
		case needed != nil:
			approval, pause = needed.State, farApproval
			f.Say("waits for an owner of " + f.site + ", who has to approve it there")
		case f.begun && approval != "" && kind == device.Expired: // nobody answered there: it is asked anew
			approval = ""
		case kind == device.Offline || kind == device.UnknownOutcome:
			f.doubt = f.doubt || kind == device.UnknownOutcome
			f.Say("waits for " + f.site + ": " + device.AsFault(err).Msg)
		default:
			return err
		}
		if device.Sleep(ctx, pause) != nil {
			return context.Cause(ctx)
		}
	}
}

// askOnce asks the other site, and stores before that it may have been asked.
func (f *far) askOnce(ctx context.Context, t agents.Terms, end func(result any, err error)) (err error) {
	err = errDefect
	defer func() { end(farResult{Task: f.id}, err) }()
	if !f.begun {
		if err := f.noteFar("/", true); err != nil {
			return err
		}
		f.begun = true
	}
	r := f.request
	r.Agent, r.Terms, r.Again = f.agent, t, f.doubt
	ctx, done := outliving(ctx, farAnswer)
	defer done()
	got, err := f.at.Ask(ctx, f.site, r)
	f.id = got.ID
	return err
}

// outliving returns a context that ends some time after ctx. done ends it.
func outliving(ctx context.Context, by time.Duration) (longer context.Context, done func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		device.Sleep(longer, by)
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

// noteFar stores the task that the step waits for: nothing yet, "/" before the other site is asked,
// or "/ID".
func (f *far) noteFar(asked string, durable bool) error {
	before, n := f.openFar()
	if before == f.site+asked {
		return nil
	}
	return f.m.commit(f.j, entry{Kind: kindFar, Step: n, Far: f.site + asked}, durable)
}

// follow waits for the end of the task. A site that does not answer may do so later.
func (f *far) follow(ctx context.Context) (last task.Task, err error) {
	for pause := farRetryMin; ; pause = min(2*pause, farRetryMax) {
		err := f.at.Watch(ctx, f.site, f.id, func(t task.Task) error {
			last, pause = t, farRetryMin
			switch {
			case t.State.Ended():
				return nil
			case t.State == task.InputRequired:
				return errFarAsks
			case t.State == task.AuthRequired:
				f.Say(f.request.Agent + " waits for an owner there")
			default:
				f.Say(f.request.Agent + " works on it")
			}
			return device.Sleep(ctx, farTell)
		})
		kind := device.FaultKind("")
		if err != nil {
			kind = device.AsFault(err).Kind
		}
		switch {
		case last.State.Ended():
			return last, nil
		case ctx.Err() != nil:
			return last, context.Cause(ctx)
		case err == nil:
			pause = farRetryMin
		case kind == device.Offline, kind == device.UnknownOutcome, kind == device.Busy, kind == device.Unavailable:
			f.Say("waits for " + f.site + ": " + device.AsFault(err).Msg)
		default:
			return last, err
		}
		if device.Sleep(ctx, pause) != nil {
			return last, context.Cause(ctx)
		}
	}
}

// failed returns the error of a task that has ended otherwise than completed.
func (f *far) failed(t task.Task) error {
	says := "what it says of that is for people: agentsite tasks --site " + f.site
	if t.Result != nil {
		says = "what it says of that is the result of this step"
	}
	switch t.State {
	case task.Failed:
		return device.Faultf(device.FaultKind(t.Fault), "%s has failed (%s); %s", f.request.Agent, t.Fault, says)
	case task.Rejected:
		return device.Faultf(device.Invalid, "%s does not do this; %s", f.request.Agent, says)
	case task.Canceled:
		return device.Faultf(device.Unavailable, "%s did not end it: it was canceled there", f.request.Agent)
	}
	return nil
}

// cancelThere cancels the task of the other site, and returns the outcome; "" if that is unknown. A
// site that is away for a moment, as all are after a start, is waited for.
func (f *far) cancelThere() string {
	if f.id == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), farCancel)
	defer cancel()
	for {
		t, err := f.at.Cancel(ctx, f.site, f.id)
		switch {
		case err == nil && t.State == task.Canceled:
			return "it was canceled there"
		case err == nil && t.State.Ended():
			return "it had ended there meanwhile"
		case err == nil, device.AsFault(err).Kind != device.Offline, f.at.Refused(f.site) != nil, f.m.ending(),
			device.Sleep(ctx, farRetryMin) != nil:
			return ""
		}
	}
}

// ending reports whether the site ends, and waits for its tasks.
func (m *Manager) ending() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// cancelFar ends the step that waits for a task of another site, which is canceled there if that
// site answers. The task of this site ends.
func (w *work) cancelFar() {
	before, n := w.openFar()
	if before == "" {
		return
	}
	site, id, begun := strings.Cut(before, "/")
	f := &far{work: w, site: site, id: id, at: w.m.Elsewhere(w.self.ID)}
	e := entry{Kind: kindResult, Step: n, Fault: string(device.Unavailable), Says: "nothing was asked of " + site}
	if begun {
		e.Says = f.cancelThere()
	}
	if e.Says == "" {
		e.Fault = string(device.UnknownOutcome)
		e.Says = site + " was not told of the end; what it was asked for may go on there until its own end"
	}
	if err := w.m.commit(w.j, e, false); err != nil {
		w.broken = err
	}
}
