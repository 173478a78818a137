package rule

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule/expr"
	"agentsite/device"
)

// followPause is the shortest time between two values of an output that follows a formula: each is a
// move, which is charged and journalled. After a refused one it is retryMax.
const followPause = 10 * time.Second

// formula computes the value of a level.
type formula struct {
	program   *expr.Program
	unit      string  // of the output, "" where it is not known
	low, high float64 // of the output; infinite where that is not known
	grain     float64 // a smaller change moves nothing
	safe      device.Value

	rests    bool         // the output is left at safe
	held     device.Value // as the last move was accepted
	changeAt time.Duration
}

// addFollowed adds the outputs of follow: of the hold or of a step.
func (r *Rule) addFollowed(c *compiled, key string, s Step, delay time.Duration, known Points) error {
	for _, address := range slices.Sorted(maps.Keys(s.Follow)) {
		f := &formula{low: math.Inf(-1), high: math.Inf(1)}
		p, ok := known.find(address)
		wanted := "?"
		switch {
		case !ok:
			return mistake(key, "there is no output %.60q%s", address, device.Suggest(address, known.names(), "output"))
		case isFar(address):
			return mistake(key, "%s is an output of another site, which follows no formula of this one; write a rule there",
				address)
		case p != nil && p.Kind != device.KindLevel:
			return mistake(key, "%s is a %s; a formula moves a level", address, p.Kind)
		case p != nil:
			if p.Confirm != "" {
				return mistake(key, "each move of %s takes its owner's approval, so that it can follow nothing; remove \"confirm: owner\" from it", address)
			}
			wanted, f.unit, f.safe = p.Unit, p.Unit, p.Safe
			if p.Min != nil && p.Max != nil {
				f.low, f.high, f.grain = *p.Min, *p.Max, (*p.Max-*p.Min)/100
			}
		}
		compile := func(u *expr.Uses, lookup func(string) (expr.Point, bool)) (*expr.Program, error) {
			return u.CompileNumber(s.Follow[address], wanted, lookup, known.names)
		}
		program, err := known.compile(&c.uses, compile)
		if err != nil {
			return mistake(key, "%s: %w", address, err)
		}
		f.program = program
		t := target{address: address, length: s.For, delay: delay, formula: f}
		if p != nil {
			t.longest = agent.Seconds(p.MaxSeconds)
		}
		if err := c.addTarget(key, t); err != nil {
			return err
		}
	}
	return nil
}

// point describes the output for the rule's own tests.
func (f *formula) point(address string) agents.Point {
	p := agents.Point{Point: address, Kind: device.KindLevel, Unit: f.unit, Safe: f.safe}
	if !math.IsInf(f.low, 0) {
		p.Min, p.Max = &f.low, &f.high
	}
	return p
}

// value returns the value for n, as a number that people would write.
func (f *formula) value(n float64) device.Value {
	if f.grain > 0 {
		if places := -int(math.Floor(math.Log10(f.grain))); places > 0 {
			n = math.Round(n*math.Pow10(places)) / math.Pow10(places)
		} else {
			n = math.Round(n/math.Pow10(-places)) * math.Pow10(-places)
		}
	}
	return device.Number(min(max(n, f.low), f.high))
}

// follow sets the value of an output by its formula, and reports whether that is another one than it
// is held at. Where the formula is unknown or comes to the safe value, the output is left at safe.
func (o *output) follow(m *Machine, due *sooner) (changed bool) {
	f := o.formula
	if f == nil || !o.wanted {
		return false
	}
	n, known, again := f.program.Number((*env)(m))
	if again > 0 {
		due.in(again)
	}
	if !known {
		f.rests = true
		return false
	}
	n = min(max(n, f.low), f.high)
	is := f.safe
	if o.held {
		is = f.held
	}
	v := f.value(n)
	if v == is || !is.IsZero() && math.Abs(n-is.Number()) < f.grain && !(o.held && m.now.Now >= o.renewAt) {
		f.rests = !o.held
		o.value = f.held
		return false
	}
	if left := f.changeAt - m.now.Now; left > 0 {
		due.in(left)
		f.rests, o.value = !o.held, f.held
		return false
	}
	f.rests, o.value = v == f.safe, v
	return o.held && !f.rests
}

// moved notes an act of the output that was accepted, or refused.
func (f *formula) moved(o *output, now time.Duration, a Act, refused bool) {
	switch {
	case f == nil:
	case refused && a.Held && a.Value != f.held: // it is held where it was
		o.value, f.changeAt = f.held, now+retryMax
	case !refused && a.Value != f.held:
		f.held, f.changeAt = a.Value, now+followPause
	}
}

// rests says why an output that the rule wants is left at safe.
func (m *Machine) rests(o *output) string {
	if cause := o.formula.program.Cause((*env)(m)); cause != "" {
		return strings.TrimSpace(cause + " is unknown")
	}
	return fmt.Sprintf("%s is at its safe value, as its formula says", o.address)
}
