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
	r := m.report()
	if m.programs[whenProgram] != nil && m.truth != expr.Unknown {
		for _, i := range m.programs[whenProgram].Decides((*env)(m)) {
			d := agent.Decided{Point: m.uses.Points[i]}
			if m.readings[i].known {
				d.Value = m.readings[i].value
			}
			r.Decided = append(r.Decided, d)
		}
	}
	if r.State == agent.Idle && r.Decided != nil { // "the condition is false"
		var is []string
		for _, d := range r.Decided {
			is = append(is, fmt.Sprintf("%s was %v", d.Point, d.Value))
		}
		r.Says += ": " + strings.Join(is, ", ")
	}
	if words := m.polar(); words != "" {
		r.Says += "; " + words
	}
	return r
}

// polar says that the sun does not cross the horizon today, where the rule goes by that; else "".
func (m *Machine) polar() string {
	uses := m.schedule != nil && m.schedule.UsesSun()
	for _, p := range m.programs {
		uses = uses || p != nil && p.UsesSun()
	}
	if !uses || !m.now.Sure || m.place == nil {
		return ""
	}
	if _, _, crosses := m.place.Sun(m.now.Wall); crosses {
		return ""
	}
	if rise, _ := m.place.Day(m.now.Wall); rise.Before(m.now.Wall) {
		return "no sunrise or sunset today: the sun is always up"
	}
	return "no sunrise or sunset today: the sun is always down"
}

func (m *Machine) report() agent.Report {
	now := m.now
	var holds, waits, yields, rests []string
	for i := range m.outputs {
		switch o := &m.outputs[i]; {
		case o.held:
			holds = append(holds, fmt.Sprintf("%s at %v", o.address, o.value))
		case o.yielded && (o.wanted || m.programs[whenProgram] != nil):
			yields = append(yields, o.address+m.yields(o))
		case o.wanted && o.formula != nil && o.formula.rests:
			rests = append(rests, m.rests(o))
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
	case m.nextStep() > 0:
		return agent.Report{State: agent.Waiting, Says: fmt.Sprintf("the next step begins in %v", whole(m.nextStep()))}
	case rests != nil:
		return agent.Report{State: agent.Waiting, Says: strings.Join(rests, "; ")}
	case m.programs[whenProgram] == nil && m.schedule != nil && !m.now.Sure:
		return agent.Report{State: agent.Waiting, Says: m.nextStart()}
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
	cause, of, w := m.cause(whenProgram)
	switch {
	case w != nil && w.some:
		return fmt.Sprintf("%s needs %v of readings, and has %v", cause, device.FormatDuration(w.length),
			whole(m.now.Now-w.began))
	case of != nil && of.seen && w == nil:
		return fmt.Sprintf("%s is unknown; it was read %v ago", cause, whole(m.now.Now-of.at))
	case of != nil && w == nil:
		return cause + " was not read yet"
	case cause == theTime:
		return cause + " is unknown: the clock is not set; check date, or run agentsite clock --set"
	}
	if cause == "" { // known since
		cause = "the condition"
	}
	return cause + " is unknown"
}

// theTime is the Cause of expr.Program for a clock that is not set.
const theTime = "the time of day"

// cause returns why a program's result is unknown: a point that has no good reading, a window of one
// that has, or something else.
func (m *Machine) cause(which int) (name string, of *reading, w *window) {
	name = m.programs[which].Cause((*env)(m))
	i := slices.Index(m.uses.Points, name)
	if i < 0 {
		return name, nil, nil
	}
	if of = &m.readings[i]; !of.known && !of.nothing {
		return name, of, nil
	}
	for k := range m.windows {
		if w := &m.windows[k]; int(w.point) == i && m.now.Now-w.began < w.length {
			return fmt.Sprintf("%v(%s, %v)", w.Func, name, device.FormatDuration(w.length)), of, w
		}
	}
	return name, of, nil
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
		says = "the clock is not set; check date, or run agentsite clock --set"
	case m.next != nil && !m.next.at.IsZero():
		says = "starts " + m.next.at.Format("2006-01-02 15:04 MST")
	}
	if m.skipped != "" {
		says += "; the last time nothing was moved: " + m.skipped
	}
	return says
}

func whole(d time.Duration) time.Duration { return max(0, d.Truncate(time.Second)) }
