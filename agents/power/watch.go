package power

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule/expr"
	"agentsite/device"
)

// watch is the state of a condition over time. The readings of one look are those of its last.
type watch struct {
	*Agent
	program *expr.Program
	ask     func(context.Context) (agents.Readings, error)

	readings []reading // of the program's points
	since    time.Time // since when the condition has been true; zero while it is not
	told     bool      // that the machine will be powered off
	toldAt   time.Time // when that was told last
	asked    time.Time // when that was asked for last
}

// reading is the last reading of a point.
type reading struct {
	agents.Reading
	at    time.Time
	count int // how many there were since the condition is true; they are counted of numbers only
}

// step looks at the condition. It reports whether it is true, so that it is to be looked at again soon.
func (w *watch) step(ctx context.Context) bool {
	if err := w.read(ctx); err != nil {
		w.clear("its points cannot be read: " + err.Error())
		return false
	}
	switch truth, _ := w.program.Eval(w); truth {
	case expr.True:
	case expr.Unknown:
		w.clear(w.program.Cause(w) + " is not known")
		return false
	default:
		w.clear("")
		return false
	}
	now := time.Now()
	if w.since.IsZero() {
		w.since = now
		for i := range w.readings {
			w.readings[i].count = 1
		}
	}
	due := now.Add(max(w.since.Add(w.For).Sub(now), w.world.Start.Add(notBefore).Sub(now)))
	left := max(0, due.Sub(now))
	if w.asked.IsZero() {
		w.Say(agent.Waiting, "%s: the machine is powered off in %s, if that stays so", w.OffWhen,
			device.FormatDuration(left.Round(time.Second)))
	}
	if !w.told && (left == 0 || w.toldAt.IsZero() || now.Sub(w.toldAt) >= tellPause) {
		w.told, w.toldAt = true, now
		slog.Warn("the machine will be powered off", "when", w.OffWhen, "left", left)
		w.world.Tell(true, w.OffWhen, left)
	}
	if left > 0 || !w.sure() || !w.asked.IsZero() && now.Sub(w.asked) < offTimeout {
		return true
	}
	w.asked = now
	w.off(ctx)
	return true
}

// sure reports whether all numbers of the condition were measured often enough.
func (w *watch) sure() bool {
	for _, r := range w.readings {
		if r.Value.Type() == device.TypeNumber && r.count < minReadings {
			return false
		}
	}
	return true
}

// off asks for the end of the machine. The service manager then ends the site, which brings its outputs to
// safe and closes its files, as at any end.
func (w *watch) off(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	w.world.Note("the machine is powered off: " + w.OffWhen)
	slog.Warn("the machine is powered off", "when", w.OffWhen)
	if err := w.world.Off(ctx); err != nil {
		w.Say(agent.Failed, "the machine cannot be powered off: %v", err)
		slog.Error("the machine cannot be powered off", "err", err)
		w.world.Note("the machine was not powered off: " + err.Error())
		return
	}
	w.Say(agent.Running, "the machine is powered off")
}

// clear begins anew, because the condition is not true. why is "" where it is false.
func (w *watch) clear(why string) {
	if w.told {
		slog.Info("the machine will not be powered off", "why", why)
		w.world.Tell(false, why, 0)
	}
	w.since, w.asked, w.told = time.Time{}, time.Time{}, false
	w.Say(agent.Idle, "")
	if why != "" {
		w.Say(agent.Waiting, "the machine is not powered off, whatever else is true: %s", why)
	}
}

// read reads the points of the condition.
func (w *watch) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	got, err := w.ask(ctx)
	points := w.program.Points()
	if err == nil && len(got.Readings) != len(points) {
		err = errors.New("some do not answer")
	}
	if err != nil {
		return err
	}
	if w.readings == nil {
		w.readings = make([]reading, len(points))
	}
	now := time.Now()
	for i, r := range got.Readings {
		last := &w.readings[i]
		// the age has less than the clock's resolution
		if at := now.Add(-agent.Seconds(r.Age)); at.Sub(last.at) > 100*time.Millisecond {
			last.at = at
			last.count++
		}
		last.Reading = r
	}
	return nil
}

// Reading implements expr.Env.
func (w *watch) Reading(point int) (v device.Value, age time.Duration, known bool) {
	r := &w.readings[point]
	if r.Time == "" && r.Quality != device.Good {
		return device.Value{}, -1, false
	}
	return r.Value, agent.Seconds(r.Age), r.Quality == device.Good
}

// Window implements expr.Env. There are none.
func (w *watch) Window(int) (float64, bool) { return 0, false }

// Clock implements expr.Env.
func (w *watch) Clock() (time.Time, bool) { return time.Time{}, false }

// Sun implements expr.Env.
func (w *watch) Sun() (rise, set time.Time, known bool) { return time.Time{}, time.Time{}, false }
