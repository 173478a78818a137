package guard

import (
	"time"

	"agentsite/device"
)

// Status is what an output is doing. Times are lengths from now, so that they
// can cross to another process or another clock.
type Status struct {
	Output string
	Value  device.Value  // the last that the hardware confirmed; zero while it is not known
	Goal   device.Value  // what a ramp leads to, else what it is to be
	Safe   bool          // known to be at its safe value
	Holder string        // "" when nobody holds it
	Left   time.Duration // of the lease
	Rest   time.Duration // before its own limits let it be moved again
	Why    string        // why its last lease ended; "" when it was returned, or has none
	Lacks  string        // what it requires and does not have
	Fault  string        // why the hardware did not follow
}

// Status reports output i.
func (m *Machine) Status(now Time, i int) Status {
	o := &m.outputs[i]
	s := Status{
		Output: o.Output, Value: o.have, Goal: o.goal, Safe: o.have == o.Safe && !o.moving,
		Holder: o.holder, Rest: o.wait(now), Why: endings[o.ended], Fault: o.fault,
	}
	if o.holder != "" {
		s.Left = max(0, o.until-now)
	}
	if l := o.lacking(now); l != none {
		s.Lacks = o.Requires.String() + ": " + o.Requires.why(l, o.told)
	}
	return s
}

// endings are the words for why a lease ended.
var endings = [...]string{
	byNobody:      "",
	byRelease:     "",
	byExpiry:      "its lease was over",
	byMaxOn:       "its max_on was spent",
	byDuty:        "its duty was spent",
	byStop:        "everything was sent to safe",
	byFault:       "the hardware did not follow",
	byInterlock:   "another output of its interlock was not known to be safe",
	byRequirement: "what it requires was not so",
}
