package guard

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"agentsite/device"
)

// Expectation is the effect that an output has while it is away from safe: the readings of a point that
// show it. Good readings in a row, all taken after the move and over a tenth of By at least, confirm it, and each
// further one of them does again. It has failed when By has passed without, since the move or since the last
// reading that confirmed it. Without a Point there is no expectation.
type Expectation struct {
	Point  string       // address
	Within device.Range // an end may be infinite
	Is     device.Value // instead of Within, if that is not zero
	By     time.Duration
	Else   Otherwise
}

// Otherwise is the guard's action when an effect has failed.
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
	shows   bool // that reading shows it, and all since the time since
	since   Time
}

// vain is the time for which an effect has been missing: on earlier trips since the last rest, and since from.
type vain struct {
	used   time.Duration
	from   Time // valid if counts
	counts bool // the hardware is away from safe
}

// steady is the part of By over which readings have to show an effect: a pulse that is shorter does not.
const steady = 10

// await begins to await the effect, if the hardware is known to be away from safe, and is to stay there.
func (m *Machine) await(now Time, o *output) {
	if o.Expects.Point == "" || o.effect.awaited || o.goal == o.Safe || o.moving || o.have.IsZero() || o.have == o.Safe {
		return
	}
	if !o.vain.counts {
		o.vain.counts, o.vain.from = true, now
	}
	o.effect = effect{is: Awaited, awaited: true, due: o.hopeless(), last: now}
	m.checkEffect(now, o)
}

// hopeless returns when the effect has failed, while the hardware is away from safe.
func (o *output) hopeless() Time { return add(o.vain.from, o.Expects.By-o.vain.used) }

// failing reports whether the effect has failed and the output is not back at safe.
func (o *output) failing(now Time) bool {
	return o.vain.counts && o.Expects.Else != ElseAlarm && (o.effect.is == Failed || o.holder == "" && now >= o.hopeless())
}

// endVain ends a trip.
func (o *output) endVain(now Time) {
	if o.vain.counts && o.effect.is == Awaited {
		o.vain = vain{used: add(o.vain.used, now-o.vain.from)}
	} else {
		o.vain = vain{}
	}
}

// sees processes a reading of the point whose value shows the effect.
func (m *Machine) sees(now Time, o *output, good bool, v device.Value, age time.Duration) {
	m.checkEffect(now, o) // what comes too late does not count
	e, at := &o.effect, now-max(0, min(age, now))
	if !e.awaited || at <= e.last {
		return // it was taken before the move, or is told again
	}
	before := e.shows
	e.shows, e.last = good && shows(v, o.Expects.Within, o.Expects.Is), at
	due := add(at, o.Expects.By)
	switch {
	case !e.shows:
	case !before:
		e.since = at
	case at-e.since >= o.Expects.By/steady && due > now:
		e.is, e.due, o.vain.used, o.vain.from = Confirmed, due, 0, at
	}
}

// checkEffect decides whether the effect has failed.
func (m *Machine) checkEffect(now Time, o *output) {
	e := &o.effect
	if !e.awaited || e.is == Failed || now < e.due {
		return
	}
	e.is = Failed
	if o.Expects.Else == ElseAlarm {
		return // a later reading may confirm it
	}
	if o.Expects.Else == ElseLatch {
		m.latches[o.Output] = true
	}
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

// latch refuses the moves of these outputs until Reset, as after a failed effect. One that this machine does not have
// is refused as soon as it has.
func (m *Machine) latch(outputs []string) {
	for _, name := range outputs {
		m.latches[name] = true
	}
	for i := range m.outputs {
		m.remember(&m.outputs[i])
	}
}

// remember gives a latched output the effect that it is latched for.
func (m *Machine) remember(o *output) {
	if m.latched(o) {
		o.effect.is = Failed
	}
}

// latched reports whether an output waits for a reset.
func (m *Machine) latched(o *output) bool { return o.Expects.Else == ElseLatch && m.latches[o.Output] }

// The back-off of storing the latched outputs.
const keepFirst, keepLast = time.Second, time.Minute

// keepLatched stores which outputs wait for a reset, in a goroutine, because the disk may hang, and until that
// succeeds or the guard ends.
func (g *Guard) keepLatched() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keeping || maps.Equal(g.m.latches, g.kept) {
		return
	}
	g.keeping = true
	go func(ctx context.Context) {
		for pause := keepFirst; ; pause = min(2*pause, keepLast) {
			all, err := g.keep()
			if err == nil && all {
				return
			} else if err == nil {
				continue
			}
			slog.Error("a restart would forget which outputs wait for a reset: look after the data folder", "err", err)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
	}(g.driving)
}

// keep stores which outputs wait for a reset, and reports whether these are still all of them.
func (g *Guard) keep() (complete bool, err error) {
	g.latching.Lock()
	defer g.latching.Unlock()
	g.mu.Lock()
	all := maps.Clone(g.m.latches)
	g.mu.Unlock()
	if err := g.latch.Keep(slices.Sorted(maps.Keys(all))); err != nil {
		return false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept, g.keeping = all, !maps.Equal(all, g.m.latches)
	return !g.keeping, nil
}
