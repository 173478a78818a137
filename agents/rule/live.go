package rule

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// moveTimeout bounds one move, and the release of everything at the end.
const moveTimeout = 10 * time.Second

// live runs a Machine on a site as it is. Readings come by Watch, in one goroutine; due times
// come by a timer. Both take turns by mu.
type live struct {
	machine *Machine
	site    agents.Site
	self    agents.Principal
	world   World
	began   time.Time
	due     time.Duration  // when the machine is to step next; 0 for when it is told something
	points  []agents.Point // of the site, as the machine was made for them

	mu      device.Mutex
	timer   *time.Timer
	ended   bool
	skipped string // as logged
	refused []device.FaultKind
}

// moment returns the present time. Readings that are older than the rule are before 0.
func (l *live) moment() Moment {
	m := Moment{Now: time.Since(l.began)}
	if l.world.Now != nil {
		m.Wall, m.Sure = l.world.Now()
		m.Wall = m.Wall.Local()
	}
	return m
}

func (l *live) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	l.refused = make([]device.FaultKind, len(l.machine.outputs))
	l.timer = time.AfterFunc(time.Hour, func() {
		if l.mu.LockContext(ctx) == nil {
			defer l.mu.Unlock()
			l.step(ctx)
		}
	})
	defer l.end(ctx)
	defer cancel() // for a timer that is in a move still
	points := slices.Clone(l.machine.Points())
	for _, output := range l.machine.Outputs() {
		if !slices.Contains(points, output) {
			points = append(points, output)
		}
	}
	var second time.Duration // in which count evaluations were made
	count := 0
	return l.site.Watch(ctx, l.self, agents.WatchRequest{Points: points}, func(u agents.Update) error {
		seen := time.Since(l.began)
		if seen-second >= time.Second {
			second, count = seen, 0
		}
		count++
		if err := l.update(ctx, u, seen); err != nil || count < PerSecond {
			return err
		}
		select { // what comes meanwhile is evaluated together
		case <-ctx.Done():
		case <-time.After(second + time.Second - time.Since(l.began)):
		}
		return nil
	})
}

var errPointsChanged = errors.New("the points that the rule uses were changed")

// update tells the machine what changed, and has it decide.
func (l *live) update(ctx context.Context, u agents.Update, seen time.Duration) error {
	if err := l.mu.LockContext(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	if u.Offer {
		list, err := l.site.Points(ctx, l.self, agents.SiteRequest{})
		if err != nil {
			return err
		}
		if !l.same(list.Points) {
			return errPointsChanged
		}
	}
	m, now := l.machine, l.moment()
	waited := now.Now - seen // for a move that was under way
	for _, r := range u.Readings {
		l.tell(now, r.After(waited))
		i := slices.IndexFunc(m.outputs, func(o output) bool { return o.address == r.Point })
		if d := r.Detail; d != nil && i >= 0 {
			m.Output(now, seen, i, Lease{Holder: d.Holder, Ended: d.Ended, Rest: max(0, length(d.Rest)-waited), Known: r.Quality == device.Good, Others: d.Others})
		}
	}
	l.step(ctx)
	return nil
}

func (l *live) tell(now Moment, r agents.Reading) {
	if i, ok := l.machine.index[r.Point]; ok {
		l.machine.Tell(now.Now, i, &Reading{Value: r.Value, Age: length(r.Age), Known: r.Quality == device.Good})
	}
}

// refresh tells the ages of the points. A watch tells no reading that has the value of the one
// before, so that a point that was read a moment ago would seem to be old.
func (l *live) refresh(ctx context.Context) {
	var points []string
	for i, address := range l.machine.points {
		if l.machine.kind[i] != device.KindEvent {
			points = append(points, address)
		}
	}
	if points == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	if all, err := l.site.Read(ctx, l.self, agents.ReadRequest{Points: points}); err == nil {
		now := l.moment()
		for _, r := range all.Readings {
			l.tell(now, r)
		}
	}
}

// length returns a length in seconds, as a site tells it.
func length(seconds float64) time.Duration {
	return time.Duration(min(max(seconds, 0), 1e9) * float64(time.Second))
}

// same reports whether the points that the rule uses are as they were.
func (l *live) same(points []agents.Point) bool {
	pick := func(all []agents.Point) []agents.Point {
		return slices.DeleteFunc(slices.Clone(all), func(p agents.Point) bool {
			return !slices.Contains(l.machine.points, p.Point) && !slices.Contains(l.machine.Outputs(), p.Point)
		})
	}
	return slices.EqualFunc(pick(points), pick(l.points), func(a, b agents.Point) bool { return reflect.DeepEqual(a, b) })
}

// step makes what the machine decides, and sets the timer for what is due next.
func (l *live) step(ctx context.Context) {
	if l.ended || ctx.Err() != nil {
		return
	}
	if l.due > 0 && time.Since(l.began) >= l.due {
		l.refresh(ctx)
	}
	for range MaxRounds {
		acts, next := l.machine.Step(l.moment())
		slices.SortStableFunc(acts, func(a, b Act) int { return l.far(a) - l.far(b) }) // another site may hang
		for _, a := range acts {
			left, err := l.move(ctx, a)
			l.machine.Done(l.moment(), a, left, err)
		}
		if len(acts) == 0 {
			l.schedule(next)
			l.log()
			return
		}
	}
	l.schedule(RoundsPause)
	l.log()
}

// schedule sets the timer for when the machine is to be asked again.
func (l *live) schedule(next time.Duration) {
	l.due = 0
	if next > 0 {
		l.due = time.Since(l.began) + next
	}
	if next = l.machine.NextLook(time.Now(), next); next == 0 {
		l.timer.Stop()
		return
	}
	l.timer.Reset(next)
}

// far is more for an output of another site than for one of this site.
func (l *live) far(a Act) int { return strings.Count(l.machine.targets[a.Output].address, "/") }

// move makes one act, and returns for how long the output is held then.
func (l *live) move(ctx context.Context, a Act) (left time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	r := agents.MoveRequest{Output: l.machine.targets[a.Output].address, Value: a.Value, Terms: agents.Terms{Held: a.Held}}
	if a.For > 0 {
		seconds := a.For.Seconds()
		r.For = &seconds
	}
	if a.Key != "" {
		r.Key = &a.Key
	}
	out, err := l.site.Move(ctx, l.self, r)
	return length(out.Left), err
}

// end releases what the rule holds, whatever ended it.
func (l *live) end(ctx context.Context) {
	l.timer.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	if l.mu.LockContext(ctx) != nil {
		return // a move hangs; leases end by themselves
	}
	defer l.mu.Unlock()
	l.ended = true
	var all sync.WaitGroup
	for _, a := range l.machine.Release() { // all at once: another site may hang
		all.Go(func() { l.move(ctx, a) })
	}
	all.Wait()
}

// log writes one line when an output is refused, for each kind of reason, and one when a trigger
// moves nothing. The sentences of a refusal have times that change.
func (l *live) log() {
	m := l.machine
	for i := range m.outputs {
		var fault device.FaultKind
		why := m.outputs[i].refused
		if why != "" {
			fault = m.outputs[i].fault
		}
		if fault != l.refused[i] {
			l.refused[i] = fault
			if why != "" {
				slog.Info("rule waits for an output", "rule", l.self.ID, "output", m.outputs[i].address, "why", why)
			}
		}
	}
	if m.skipped != l.skipped {
		l.skipped = m.skipped
		if m.skipped != "" {
			slog.Info("rule was started and moved nothing", "rule", l.self.ID, "why", m.skipped)
		}
	}
}
