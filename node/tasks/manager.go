package tasks

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/hosted"
)

const (
	maxLive     = task.MaxLive
	reserved    = 16 // of these, for owners alone
	maxAccount  = 8  // live ones of an account
	maxSteps    = 64
	maxAsks     = task.MaxAsks
	maxText     = 4 << 10
	maxArgs     = 16 << 10
	maxResult   = 16 << 10 // of a step
	maxEnd      = 64 << 10 // the result of a task
	maxSays     = 500
	maxOptions  = 16
	maxContext  = 128
	maxName     = 64 // of a site or agent through which a task is asked for
	maxFile     = 256 << 10
	maxGrowing  = maxFile - maxEnd - 4<<10 // beyond it a task only ends
	maxEnded    = 512
	maxKept     = 16 << 20 // bytes of ended tasks
	keepEnded   = 7 * 24 * time.Hour
	keepLoaded  = 24 * time.Hour // from a start at least, however old a task is by the clock
	defaultTime = time.Hour
	maxTime     = task.MaxTime
	// stepTimeout bounds a step that is a call of the site. It goes on when its task is canceled.
	stepTimeout = 30 * time.Second
	// endTimeout bounds how long the end of the site waits for its tasks.
	endTimeout = 5 * time.Second
	// A step asks for an owner's approval at most maxApprovals times, and not again after approvalTime.
	maxApprovals = 15
	approvalTime = 30 * time.Minute
)

// Node decides about askers. node.Node is one. Errors are faults.
type Node interface {
	// Ask charges p for asking an agent, unless something is wrong with that. end is called with what came
	// of it.
	Ask(
		p agents.Principal, agent string, args any, t agents.Terms, wrong error,
	) (end func(result any, err error), err error)
	// MayAsk returns why p may not ask an agent, and Owner why p is no owner, at this time.
	MayAsk(p agents.Principal, agent string) error
	Owner(p agents.Principal) error
	// Account returns the account that p is counted under.
	Account(p agents.Principal) (string, error)
	// Decided blocks until an owner has answered a request of p, or it is over.
	Decided(ctx context.Context, p agents.Principal, handle string) error
}

// Options configure a Manager.
type Options struct {
	Folder  string
	Node    Node
	Site    agents.Site              // the site that the agents ask
	Workers func() []hosted.Worker   // the agents that take tasks
	Now     func() (time.Time, bool) // false where it is a lower bound only
	// Elsewhere returns the tasks that an agent has at other sites, by its principal; nil for a site
	// that asks none.
	Elsewhere func(principal string) Elsewhere
	// AskElsewhere is Ask for an agent of another site, SITE/AGENT, and returns the terms for that site.
	// again says that the request was sent before. It is nil where Elsewhere is.
	AskElsewhere func(
		ctx context.Context, p agents.Principal, agent string, args any, t agents.Terms, again bool,
	) (there agents.Terms, end func(result any, err error), err error)
	// Hosted reports whether an agent of the site, by its principal, is there now; nil for a site whose
	// agents ask for no tasks.
	Hosted func(principal string) bool
	// Moved is told after a start what agents moved at other sites for the askers of their tasks, and may
	// still hold, as elsewhere.Site.MovedBefore is; nil for a site that asks none.
	Moved func(agent, asker agents.Principal, output string, v device.Value, approved bool, left time.Duration) error
	// Step is told that a task asks something, or has ended; nil for nobody. It must not block.
	Step func(id, agent, asker, state, asks string)
	// ApprovalWait is the time that a call waits for an owner. A task whose asker names no time has at least as long.
	ApprovalWait time.Duration
}

// Manager takes and runs tasks. It is a task.Host. It reads its folder at its first use, and has no
// goroutine or timer while no task is live.
//
// A task ends after its time at the latest. Time counts by the monotonic clock while the site runs.
// Over a restart it counts by the wall clock, if that was known before and after; otherwise the
// downtime does not count.
type Manager struct {
	Options
	disk   disk
	wake   chan struct{}
	asking device.Mutex // orders Ask; never taken while mu is held

	loading sync.Mutex
	loaded  bool // guarded by loading

	mu      sync.Mutex
	order   int64           // of the task that was made last
	ctx     context.Context // of Run; nil while it does not run
	closed  bool            // no task is taken, and none is run
	over    bool            // and nothing is written any more
	live    map[string]*job
	turns   turns
	running sync.WaitGroup
	ended   map[string]*past
	present map[string]bool // the agents' names at the last review; nil before the first
}

// past is an ended task on the disk.
type past struct {
	ended
	size    int64
	since   time.Time   // when it ended, or was loaded, by Go's clock
	here    bool        // it ended in this run
	head    *task.Task  // nil until it was read
	kept    *record     // how it ended, where the disk did not store that
	unnamed atomic.Bool // its file has the name of a live one, because the disk refused another
}

var _ task.Host = (*Manager)(nil)

// New returns a manager that has read nothing yet.
func New(o Options) *Manager {
	return &Manager{
		Options: o, disk: folder(o.Folder), wake: make(chan struct{}, 1), asking: device.NewMutex(),
		live: make(map[string]*job), turns: turns{at: make(map[string]*job), before: make(map[turnKey]int64)},
		ended: make(map[string]*past),
	}
}

// Recheck wakes Run after the agents or the permissions to ask them may have changed. It does not block.
func (m *Manager) Recheck() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run runs the tasks until ctx ends. It returns when no agent works on a task any more, or after
// endTimeout. Unfinished tasks go on after the next start of the site.
func (m *Manager) Run(ctx context.Context) {
	if err := m.load(); err != nil {
		slog.Error("tasks cannot be read; they wait until somebody asks for one", "err", err)
	}
	m.tellMoved()
	m.mu.Lock()
	m.ctx = ctx
	m.mu.Unlock()
	for {
		m.review()
		select {
		case <-m.wake:
		case <-ctx.Done():
			m.close()
			return
		}
	}
}

// close waits for the tasks that are worked on, and closes their files.
func (m *Manager) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	done := make(chan struct{})
	go func() { m.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(endTimeout):
		slog.Error("tasks do not end; their steps have an unknown outcome")
		return
	}
	m.repair()
	m.mu.Lock()
	m.over = true
	live := m.sorted()
	m.mu.Unlock()
	for _, j := range live {
		j.timer.Stop()
		j.close()
	}
}

// sorted returns the live tasks, the oldest first. The lock is held.
func (m *Manager) sorted() []*job {
	all := make([]*job, 0, len(m.live))
	for _, j := range m.live {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.asked.Order, b.asked.Order), cmp.Compare(a.asked.ID, b.asked.ID))
	})
	return all
}

// errors that end a task, or a run of it.
var (
	errCanceled = errors.New("its asker or an owner ended it")
	errLate     = errors.New("its time is over")
	errGone     = errors.New("its agent is not configured any more")
	errChanged  = errors.New("its agent was changed in the configuration; ask it again")
	errRevoked  = errors.New("its asker may not ask this agent any more")
	errPaused   = errors.New("its agent was paused")
	errEnding   = errors.New("the site is ending")
	errDefect   = errors.New("a defect of the program ended this call") // unless it gets to another end
)

// review ends the live tasks whose agents or permissions are gone, pauses those of paused agents,
// and runs the others that can run.
func (m *Manager) review() {
	m.repair()
	workers := m.Workers()
	m.forget(workers)
	m.mu.Lock()
	live := m.sorted()
	m.mu.Unlock()
	for _, j := range live {
		w, why := m.workerOf(workers, j)
		switch permitted := m.permitted(j); {
		case why != nil && why != errPaused:
			m.stop(j, why)
		case !permitted && j.seen.Load():
			m.stop(j, errRevoked)
		case why != nil:
			m.interrupt(j)
		default:
			m.serve(w.Name)
		}
	}
}

// workerOf returns the agent of a task, or why it cannot work on it.
func (m *Manager) workerOf(workers []hosted.Worker, j *job) (hosted.Worker, error) {
	i := slices.IndexFunc(workers, func(w hosted.Worker) bool { return w.Name == j.asked.Agent })
	switch {
	case i < 0:
		return hosted.Worker{}, errGone
	case string(j.asked.Definition) != string(workers[i].Digest[:]):
		return hosted.Worker{}, errChanged
	case workers[i].Paused:
		return hosted.Worker{}, errPaused
	}
	return workers[i], nil
}

// permitted reports whether the asker of a task may ask its agent. After a start, a task waits if
// its asker has not yet presented its grant again. Ending the task would lose it, and running it
// might do something that was revoked.
func (m *Manager) permitted(j *job) bool {
	if m.Node.MayAsk(j.asker(), j.asked.Agent) != nil {
		return false
	}
	j.seen.Store(true)
	return true
}

// interrupt pauses a task that an agent works on. It goes on when it is run again.
func (m *Manager) interrupt(j *job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j.cancel != nil {
		j.cancel(errPaused)
	}
}

// stop ends a task for a reason: at once, or before its next step if it is worked on.
func (m *Manager) stop(j *job, why error) {
	m.mu.Lock()
	if j.state.Ended() || j.stopping != nil || m.closed {
		m.mu.Unlock()
		return
	}
	j.stopping = why
	if j.cancel != nil {
		j.cancel(why)
		m.mu.Unlock()
		return
	}
	if len(j.moved) > 0 || j.far != "" { // at another site, when this one was killed
		m.running.Go(func() {
			left := &work{m: m, j: j, ctx: context.Background()}
			for _, w := range m.Workers() {
				if w.Name == j.asked.Agent {
					left.self = w.Self
					left.release()
				}
			}
			left.cancelFar()
			m.finish(j, why)
		})
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	m.finish(j, why)
}

// finish ends a task that is not worked on.
func (m *Manager) finish(j *job, why error) {
	e := entry{Kind: kindState, State: string(task.Failed), Says: why.Error()}
	switch why {
	case errCanceled, errRevoked:
		e.State = string(task.Canceled)
	case errLate:
		left := time.Duration(j.asked.Left) * time.Millisecond
		e.Fault, e.Says = string(device.Expired), "it was not done within "+device.FormatDuration(left)
	case errGone, errChanged:
		e.Fault = string(device.Unavailable)
	default:
		f := device.AsFault(why)
		e.Fault = string(f.Kind)
	}
	m.end(j, e)
}
