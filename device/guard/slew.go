package guard

import (
	"math"
	"time"

	"agentsite/device"
)

const (
	// A ramp over the whole range takes this number of steps, or fewer if they would be faster than
	// minStep. A servo moves smoothly, without unnecessary wake-ups.
	steps   = 100
	minStep = 20 * time.Millisecond
	maxStep = 24 * time.Hour / steps
)

// pace is the size and interval of a ramp's steps.
func (p Policy) pace() (step float64, every time.Duration) {
	step = (p.Range.Max - p.Range.Min) / steps
	every = time.Duration(step / p.Slew.PerSecond * float64(time.Second))
	if every < minStep {
		every, step = minStep, p.Slew.PerSecond*minStep.Seconds()
	}
	return step, every
}

// ramp returns the longest time of an output's ramp to safe; 0 without such a ramp.
func (p Policy) ramp() time.Duration {
	if !p.Slew.Ramp {
		return 0
	}
	step, every := p.pace()
	return time.Duration(math.Ceil((p.Range.Max-p.Range.Min)/step)) * every
}

// ramping reports whether the next step waits only for its time. It also waits for the
// hardware to confirm the last step, so that slow hardware gets no larger steps.
func (o *output) ramping() bool { return o.want != o.goal && o.have == o.want }

// step takes the next step towards the goal if it is due.
func (o *output) step(now Time) {
	if !o.ramping() || now < o.nextStep {
		return
	}
	step, every := o.pace()
	from, to := o.want.Number(), o.goal.Number()
	next := from + math.Copysign(step, to-from)
	if tidy := device.Tidy(next); math.Abs(tidy-next) < step/10 {
		next = tidy
	}
	if math.Abs(to-from) <= step || (next-from)*(to-next) <= 0 {
		next = to
	}
	o.want, o.nextStep = device.Number(next), add(now, every)
}
