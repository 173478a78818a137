package rule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/rule/expr"
	"agentsite/device"
)

// Report says what the rule does now, and why. It waits for a move that is under way.
func (r *Rule) Report(ctx context.Context) agent.Report {
	l := r.running.Load()
	if l == nil {
		return agent.Report{}
	}
	if l.mu.LockContext(ctx) != nil {
		return agent.Report{State: agent.Waiting, Says: "a move has not been answered yet"}
	}
	defer l.mu.Unlock()
	if l.machine == nil {
		return agent.Report{}
	}
	return l.machine.Report(l.moment())
}

// Report says what the rule does now, and why.
func (m *Machine) Report(now Moment) agent.Report {
	m.now = now
	var holds, waits, yields []string
	for i := range m.outputs {
		switch o := &m.outputs[i]; {
		case o.held:
			holds = append(holds, fmt.Sprintf("%s at %v", o.address, o.value))
		case o.yielded && (o.wanted || m.programs[whenProgram] != nil):
			yields = append(yields, o.address+m.yields(o))
		case o.wanted && o.refused != "":
			waits = append(waits, o.refused)
		case o.wanted:
			waits = append(waits, o.address+" has not followed yet")
		}
	}
	switch {
	case waits != nil:
		return agent.Report{State: agent.Waiting, Says: strings.Join(waits, "; ")}
	case yields != nil:
		return agent.Report{State: agent.Yielding, Says: strings.Join(yields, "; ")}
	case holds != nil:
		return agent.Report{State: agent.Holding, Says: strings.Join(holds, ", ")}
	case m.programs[whenProgram] == nil:
		return agent.Report{State: agent.Idle, Says: m.nextStart()}
	}
	switch {
	case m.pending:
		return agent.Report{State: agent.Waiting, Says: fmt.Sprintf("the condition has been true for %v of %v", whole(now.Now-m.since), device.FormatDuration(m.hold))}
	case m.truth == expr.Unknown:
		return agent.Report{State: agent.Waiting, Says: m.unknown()}
	}
	return agent.Report{State: agent.Idle, Says: "the condition is false"}
}

// yields says until when an output is left to somebody else.
func (m *Machine) yields(o *output) string {
	says := " was moved by somebody else, and the condition has not been false since"
	if o.lease.Holder != "" {
		says = " is held by somebody else"
	}
	if patience := o.patience(m); patience > 0 {
		says += fmt.Sprintf("; it is taken up again after %v", device.FormatDuration(patience))
	}
	return says
}

// unknown says what is not known, and since when.
func (m *Machine) unknown() string {
	cause := m.programs[whenProgram].Cause((*env)(m))
	if i := slices.Index(m.uses.Points, cause); i >= 0 {
		if r := m.readings[i]; r.seen {
			return fmt.Sprintf("%s is unknown; it was read %v ago", cause, whole(m.now.Now-r.at))
		}
		return cause + " was not read yet"
	}
	return strings.TrimSpace(cause + " is unknown")
}

// nextStart says when a rule without a condition starts next.
func (m *Machine) nextStart() string {
	says := ""
	switch {
	case m.on >= 0:
		says = "waits for " + m.uses.Points[m.on]
	case m.period > 0:
		says = "starts in " + whole(m.every-m.now.Now).String()
	case !m.now.Sure:
		says = "the clock is not set"
	case m.next != nil && !m.next.at.IsZero():
		says = "starts " + m.next.at.Format("2006-01-02 15:04 MST")
	}
	if m.skipped != "" {
		says += "; the last time nothing was moved: " + m.skipped
	}
	return says
}

func whole(d time.Duration) time.Duration { return max(0, d.Truncate(time.Second)) }
