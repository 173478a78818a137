package guard

import (
	"math"
	"time"

	"agentsite/device"
)

const (
	// A ramp over the whole range takes so many steps, or fewer where they would come
	// faster than every minStep: a servo moves smoothly, and the processor is woken
	// no more often than that takes.
	steps   = 100
	minStep = 20 * time.Millisecond
	maxStep = 24 * time.Hour / steps
)

// pace is how a ramp goes: a step at a time.
func (p Policy) pace() (step float64, every time.Duration) {
	step = (p.Range.Max - p.Range.Min) / steps
	every = time.Duration(step / p.Slew.PerSecond * float64(time.Second))
	if every < minStep {
		every, step = minStep, p.Slew.PerSecond*minStep.Seconds()
	}
	return step, every
}

// ramp is how long an output whose ramp is the safe way takes to safe at most, and
// nothing for any other.
func (p Policy) ramp() time.Duration {
	if !p.Slew.Ramp {
		return 0
	}
	step, every := p.pace()
	return time.Duration(math.Ceil((p.Range.Max-p.Range.Min)/step)) * every
}

// ramping reports whether the next step waits for nothing but its time. A step that
// the hardware has not confirmed holds up the next: a slow one is never made to jump.
func (o *output) ramping() bool { return o.want != o.goal && o.have == o.want }

// step brings the output nearer to its goal, when it is time for that.
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
