package guard

import (
	"fmt"
	"math"
	"slices"
	"time"

	"agentsite/device"
)

// Expectation is the effect that an output has while it is away from safe: the readings of a point that
// show it. Two good readings in a row, both taken after the move, confirm it, and each further one does again.
// It has failed when By has passed without, since the move or since it was confirmed last. Without a Point
// there is no expectation.
type Expectation struct {
	Point  string       // address
	Within device.Range // an end may be infinite
	Is     device.Value // instead of Within, if that is not zero
	By     time.Duration
	Else   Otherwise
}

// Otherwise is what the guard does when an effect has failed.
type Otherwise uint8

const (
	ElseSafe  Otherwise = iota // returns the output to safe
	ElseLatch                  // returns it to safe, and refuses its moves until an owner's reset
	ElseAlarm                  // leaves it as it is
)

// Effect says whether an output had the effect that is expected of it.
type Effect string

const (
	NoEffect  Effect = "" // none is expected, or the output has not been away from safe
	Awaited   Effect = "not confirmed"
	Confirmed Effect = "confirmed"
	Failed    Effect = "failed"
)

// effect is the state of an output's expectation. It is that of the last trip while the output is at safe.
type effect struct {
	is      Effect
	awaited bool // during a trip, once the hardware has confirmed the move away
	due     Time // when it has failed; valid if awaited
	last    Time // when the last reading was taken, or that move was confirmed
	shows   bool // that reading shows it
	latched bool // moves are refused until a reset
}

// moved begins to await the effect, when the hardware has left safe.
func (o *output) moved(now Time) {
	if o.Expects.Point == "" || o.effect.awaited || o.goal == o.Safe {
		return
	}
	o.effect = effect{is: Awaited, awaited: true, due: add(now, o.Expects.By), last: now}
}

// sees processes a reading of the point whose value shows the effect.
func (o *output) sees(now Time, good bool, v device.Value, age time.Duration) {
	o.checkEffect(now) // what comes too late does not count
	e, at := &o.effect, now-max(0, min(age, now))
	if !e.awaited || at <= e.last {
		return // it was taken before the move, or is told again
	}
	before := e.shows
	e.shows, e.last = good && shows(v, o.Expects.Within, o.Expects.Is), at
	if due := add(at, o.Expects.By); before && e.shows && due > now {
		e.is, e.due = Confirmed, due
	}
}

// checkEffect decides whether the effect has failed.
func (o *output) checkEffect(now Time) {
	e := &o.effect
	if !e.awaited || e.is == Failed || now < e.due {
		return
	}
	e.is = Failed
	if o.Expects.Else == ElseAlarm {
		return // a later reading may confirm it
	}
	e.latched = o.Expects.Else == ElseLatch
	o.toSafe(byEffect)
}

// shows reports whether a value is one of those that are asked for.
func shows(v device.Value, within device.Range, is device.Value) bool {
	if !is.IsZero() {
		return v == is
	}
	return v.Type() == device.TypeNumber && v.Finite() && within.Contains(v.Number())
}

// String formats an expectation: "flow/rate above 0.2 in 5s".
func (x Expectation) String() string {
	if x.Point == "" {
		return ""
	}
	what := "within " + x.Within.String()
	switch {
	case !x.Is.IsZero():
		what = x.Is.String()
	case math.IsInf(x.Within.Max, 1):
		what = "from " + device.Number(x.Within.Min).String()
	case math.IsInf(x.Within.Min, -1):
		what = "to " + device.Number(x.Within.Max).String()
	}
	return fmt.Sprintf("%s %s in %s", x.Point, what, device.FormatDuration(x.By))
}

// latch refuses the moves of these outputs until Reset, as after a failed effect.
func (m *Machine) latch(outputs []string) {
	for _, name := range outputs {
		if i, ok := m.index[name]; ok && m.outputs[i].Expects.Else == ElseLatch {
			m.outputs[i].effect = effect{is: Failed, latched: true}
		}
	}
}

// latched returns the outputs that wait for a reset.
func (m *Machine) latched() (all []string) {
	for i := range m.outputs {
		if m.outputs[i].effect.latched {
			all = append(all, m.outputs[i].Output)
		}
	}
	return all
}

// keepLatched stores which outputs wait for a reset, in a goroutine, because the disk may hang. After an error it
// is tried again at the next deadline.
func (g *Guard) keepLatched() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keeping || slices.Equal(g.m.latched(), g.kept) {
		return
	}
	g.keeping = true
	g.running.Go(func() {
		g.latching.Lock()
		defer g.latching.Unlock()
		g.mu.Lock()
		all := g.m.latched()
		g.mu.Unlock()
		err := g.latch.Keep(all)
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.keeping = false; err == nil {
			g.kept = all
		}
	})
}
