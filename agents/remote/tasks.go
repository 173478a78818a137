package remote

import (
	"context"
	"errors"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/group"
	"agentsite/agents/task"
	"agentsite/device"
)

const (
	// askTimeout bounds a call about a task.
	askTimeout = 20 * time.Second
	// watchTime limits one call that watches a task: a lost connection may go unnoticed while nothing is sent.
	watchTime = 30 * time.Second
	// pollTime is the pause between two looks at a task that cannot be watched because of a limit.
	pollTime = 10 * time.Second
	// maxState bounds the State of an approval.
	maxState = 4 << 10
)

// Site is another site as one agent has it.
type Site interface {
	agents.Site
	Tasks() task.Host
}

// Tasks are the tasks that one agent has asked of agents of other sites. A call to an unreachable
// site fails at once, as offline. A returned task has its ID, state, kind of fault and result; only
// the result may hold text of the other site. An answer that no agentsite node gives is an internal
// fault, and a missing answer an unknown outcome.
type Tasks struct {
	sites     *Sites
	principal string
}

// Tasks returns those of an agent, by its principal.
func (s *Sites) Tasks(principal string) Tasks { return Tasks{s, principal} }

// at returns the tasks at a site that answers.
func (t Tasks) at(site string) (task.Host, error) {
	v, m := t.find(site)
	if m == nil {
		return nil, device.Faultf(device.Denied, "nothing of %.40q may be asked here any more", site)
	}
	if err := v.Away(site); err != nil {
		return nil, err
	}
	return m.tasks, nil
}

// find returns the connection to a site; nil for none.
func (t Tasks) find(site string) (*View, *member) {
	if v := t.sites.Of(t.principal); v != nil {
		for _, m := range v.all() {
			if m.link.Site == site {
				return v, m
			}
		}
	}
	return nil, nil
}

// Refused returns the fault of a site that was reached and refuses the agent; nil for any other.
func (t Tasks) Refused(site string) error {
	_, m := t.find(site)
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil || group.Refused(site, m.last) == nil || device.AsFault(m.last).Kind != device.Denied {
		return nil
	}
	return device.Faultf(device.Denied, "%s refuses the grant of this site: it may have ended, or its owner has taken it back", site)
}

// Ask asks an agent of a site for a task. A repeated request with the same key returns the same
// task.
func (t Tasks) Ask(ctx context.Context, site string, r task.Request) (task.Task, error) {
	at, err := t.at(site)
	if err != nil {
		return task.Task{}, err
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	got, err := at.Ask(asking, agents.Principal{}, r)
	if err != nil {
		return task.Task{}, failed(ctx, site, err)
	}
	return cleanTask(got), nil
}

// Watch calls emit with the current task and after each change. It returns nil when the task has
// ended, or after watchTime.
func (t Tasks) Watch(ctx context.Context, site, id string, emit func(task.Task) error) error {
	at, err := t.at(site)
	if err != nil {
		return err
	}
	watching, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	var ours error
	err = at.Watch(watching, agents.Principal{}, id, func(got task.Task) error {
		ours = emit(cleanTask(got))
		return ours
	})
	switch {
	case ours != nil:
		return ours
	case err == nil || watching.Err() != nil && ctx.Err() == nil:
		return nil
	}
	if err = failed(ctx, site, err); device.AsFault(err).Kind != device.Busy {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	got, err := at.Task(asking, agents.Principal{}, id)
	switch {
	case err != nil:
		return failed(ctx, site, err)
	case got.ID != id:
		return malformed(site)
	}
	if err := emit(cleanTask(got)); err != nil || got.State.Ended() {
		return err
	}
	return device.Sleep(ctx, pollTime)
}

// Cancel ends a task, and returns it as it ended.
func (t Tasks) Cancel(ctx context.Context, site, id string) (task.Task, error) {
	at, err := t.at(site)
	if err != nil {
		return task.Task{}, err
	}
	got, err := at.Cancel(ctx, agents.Principal{}, id)
	switch {
	case err != nil:
		return task.Task{}, failed(ctx, site, err)
	case got.ID != id:
		return task.Task{}, malformed(site)
	}
	return cleanTask(got), nil
}

// cleanTask returns the parts of another site's task that an agent here may see.
func cleanTask(t task.Task) task.Task {
	out := task.Task{ID: t.ID, State: t.State}
	if t.State.Ended() && t.Result.IsValid() {
		out.Result = t.Result
	}
	switch t.State {
	case task.Failed, task.Rejected:
		if out.Fault = string(device.Unavailable); slices.Contains(group.Kinds, device.FaultKind(t.Fault)) {
			out.Fault = t.Fault
		}
	}
	return out
}

func malformed(site string) error {
	return device.Faultf(device.Internal, "%s answered with something else than a site does; look at it, or leave it out", site)
}

// failed returns the error of a call in our own words.
func failed(ctx context.Context, site string, err error) error {
	var needs *agents.ApprovalNeeded
	var unreached *agents.Unreached
	var wrong interface{ Malformed() }
	refused := group.Refused(site, err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &wrong), errors.As(err, &needs) && len(needs.State) > maxState:
		return malformed(site)
	case needs != nil:
		return &agents.ApprovalNeeded{Says: "the owner of " + site + " has to approve this", State: needs.State}
	case refused != nil:
		return refused
	case errors.As(err, &unreached):
		return device.Faultf(device.Offline, "%s was not reached", site)
	}
	return device.Faultf(device.UnknownOutcome, "%s gave no answer that can be read", site)
}
