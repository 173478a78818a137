package rule

import (
	"fmt"
	"time"

	"agentsite/agents/rule/expr"
	"agentsite/device"
)

// addWait checks a step that waits, and returns how long the steps after it wait in all.
func (r *Rule) addWait(key string, s Step, before time.Duration, last bool) (time.Duration, error) {
	switch {
	case s.Set != nil || s.Follow != nil || s.For != 0:
		return 0, mistake(key, "wait: is a step of its own, as in do: [{ set: { valve/relay: on }, for: 10m }, { wait: 5s }, { set: { pump/relay: on }, for: 9m }]")
	case last:
		return 0, mistake(key, "no step comes after the last wait:; remove it")
	case s.Wait < 0 || before+s.Wait > maxLength:
		return 0, mistake(key, "the steps wait for %v in all at most", device.FormatDuration(maxLength))
	}
	return before + s.Wait, nil
}

// start begins the steps, and has those after a wait begin later. What an earlier start has still to
// begin, it begins anew.
func (m *Machine) start(key string) {
	for i := range m.outputs {
		o := &m.outputs[i]
		o.yielded = false
		if o.delay > 0 {
			o.startAt, o.startKey = m.now.Now+o.delay, key
		} else {
			o.want(m, o.length, key)
		}
	}
	m.startNotes(key)
}

// stepWaits begins the steps whose wait is over. Where something is not as it was to be by then, they and
// all later ones are left out.
func (m *Machine) stepWaits(due *sooner) {
	for i := range m.outputs {
		o := &m.outputs[i]
		left := o.startAt - m.now.Now
		switch {
		case o.startAt == 0:
		case left > 0:
			due.in(left)
		default:
			if m.breakWaits(o.delay) {
				return
			}
			o.startAt = 0
			o.want(m, o.length, o.startKey)
		}
	}
	m.stepNotes(due)
}

// breakWaits leaves out the steps that wait, if the one after a wait of delay in all is not made.
func (m *Machine) breakWaits(delay time.Duration) bool {
	why := m.breaks(delay)
	if why != "" {
		m.skipped = why
		m.endWaits()
	}
	return why != ""
}

// madeBefore is the reason for leaving out the steps after a move that this run may not hold.
const madeBefore = " was moved before a restart"

// wasReturned reports whether somebody moved an output of a step without for:, after that step.
func (o *output) wasReturned(m *Machine) bool {
	l := &o.lease
	return o.formula == nil && !o.wanted && o.end > o.done && !o.behind() &&
		l.Holder != m.self && (l.Holder != "" || l.Why == "")
}

// breaks says why the step after a wait of delay in all is not made; "" if it is.
func (m *Machine) breaks(delay time.Duration) string {
	for i := range m.outputs {
		switch o := &m.outputs[i]; {
		case o.yielded:
			return o.address + " was moved by somebody else during a wait"
		case o.delay >= delay:
		case o.earlier:
			return o.address + madeBefore
		case o.once && o.wasReturned(m):
			return o.address + " was moved by somebody else during a wait"
		case o.refused != "", o.wanted && !o.held && !(o.formula != nil && o.formula.rests):
			return o.address + " did not follow before the wait was over"
		}
	}
	if m.programs[ifProgram] != nil {
		if truth, _ := m.eval(ifProgram); truth != expr.True {
			return fmt.Sprintf("if: was %v after a wait", truth)
		}
	}
	return ""
}

// endWaits leaves out all steps that wait, and reports whether there was one.
func (m *Machine) endWaits() (some bool) {
	for i := range m.outputs {
		some = some || m.outputs[i].startAt > 0
		m.outputs[i].startAt = 0
	}
	for i := range m.notes {
		m.notes[i].waits = false
	}
	return some
}

// nextStep returns after how long the next step begins that waits; 0 for none.
func (m *Machine) nextStep() time.Duration {
	var next sooner
	for i := range m.outputs {
		if at := m.outputs[i].startAt; at > 0 {
			next.in(at - m.now.Now)
		}
	}
	for i := range m.notes {
		if n := &m.notes[i]; n.waits {
			next.in(n.at - m.now.Now)
		}
	}
	return time.Duration(next)
}
