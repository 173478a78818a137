package rule

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// moveTimeout bounds one move, and the release of everything at the end.
const moveTimeout = 10 * time.Second

// following is a Site that is asked what changed when it says that something did, as node.Node is.
// There is one watch for each rule, and a goroutine for each would have a stack that grew.
type following interface {
	Follow(p agents.Principal, r agents.WatchRequest, wake func()) (next func() (u agents.Update, some bool, due time.Time, err error), end func(), err error)
}

// live runs a Machine on a site as it is. Readings come by Follow, or by Watch where the site has
// none or points of another site are among them; due times come by a timer. All take turns by mu.
type live struct {
	site  agents.Site
	self  agents.Principal
	began time.Time
	rule  *Rule
	entry runnerEntry
	fail  func(error) // has end called, with why the rule is not followed any more
	over  atomic.Bool // fail was called

	watching sync.WaitGroup // a Watch

	mu       device.Mutex
	machine  *Machine                                                      // nil before the first turn
	points   [sha256.Size]byte                                             // those that the rule uses, as the machine was made for them
	next     func() (u agents.Update, some bool, due time.Time, err error) // of Follow; nil for a Watch
	unfollow func()
	updated  bool          // an update was told
	woken    atomic.Bool   // a turn is to come for what next has to tell
	stepAt   time.Duration // when the machine is asked although it is told nothing; 0 for never
	nextAt   time.Duration // when next is called although nobody was woken; 0 for never
	second   time.Duration // in which count updates were told
	count    int
	heldTo   time.Duration // the end of a second in which there were enough
	ended    bool
	spoilt   bool        // what the machine has of its outputs may be wrong
	leave    func()      // is called before it waits; nil outside turns
	noting   atomic.Bool // notes are being made
	skipped  string      // as logged
	refused  []device.FaultKind
}

// moment returns the present time. Readings that are older than the rule are before 0.
func (l *live) moment() Moment {
	m := Moment{Now: time.Since(l.began)}
	if l.rule.world.Now != nil {
		m.Wall, m.Sure = l.rule.world.Now()
		m.Wall = Local(m.Wall)
	}
	return m
}

// begin makes the machine for the points that the site has now, and begins to watch them.
func (l *live) begin(ctx context.Context) error {
	points, err := l.build(ctx)
	if err != nil {
		return err
	}
	if len(points) == 0 { // it goes by time alone, and no points would be all points
		l.stepAt = 1
		return nil
	}
	request := agents.WatchRequest{Points: points}
	site, ok := l.site.(following)
	if !ok || slices.ContainsFunc(points, isFar) {
		ctx, l.unfollow = context.WithCancel(ctx)
		l.watching.Go(func() { l.watch(ctx, request) })
		return nil
	}
	l.next, l.unfollow, err = site.Follow(l.self, request, func() {
		if l.woken.CompareAndSwap(false, true) {
			l.rule.wake(&l.entry)
		}
	})
	return err
}

// build makes the machine, and returns what it is to be told of.
func (l *live) build(ctx context.Context) (points []string, err error) {
	list, err := l.list(ctx)
	if err != nil {
		return nil, err
	}
	var away []string
	for _, m := range list.Missed {
		away = append(away, m.Site)
	}
	if l.machine, err = l.rule.NewMachine(l.self.ID, list.Points, away...); err != nil {
		var wrong *agent.Mistake
		if errors.As(err, &wrong) {
			err = fmt.Errorf("%s: %w", wrong.Key, wrong.Err)
		}
		return nil, err
	}
	l.points, l.refused = l.used(list.Points), make([]device.FaultKind, len(l.machine.outputs))
	points = slices.Clone(l.machine.Points())
	for _, output := range l.machine.Outputs() {
		if !slices.Contains(points, output) {
			points = append(points, output)
		}
	}
	return points, nil
}

// list lists the points. A rule that names none needs no permission to see any.
func (l *live) list(ctx context.Context) (agents.PointList, error) {
	if d, err := l.rule.Define(); err == nil && len(d.Reads) == 0 {
		return agents.PointList{}, nil
	}
	return l.site.Points(ctx, l.self, agents.SiteRequest{})
}

// watch tells the machine what changes, in this goroutine.
func (l *live) watch(ctx context.Context, r agents.WatchRequest) {
	err := l.site.Watch(ctx, l.self, r, func(u agents.Update) error {
		held, err := l.take(ctx, u)
		if err != nil || held <= 0 {
			return err
		}
		select { // what comes meanwhile is evaluated together
		case <-ctx.Done():
		case <-time.After(held):
		}
		return nil
	})
	if err != nil && l.mu.LockContext(ctx) == nil {
		l.fail(err)
		l.mu.Unlock()
	}
}

// take is update for a Watch. Held is for how long no more is to be told.
func (l *live) take(ctx context.Context, u agents.Update) (held time.Duration, err error) {
	seen := time.Since(l.began)
	if err := l.mu.LockContext(ctx); err != nil {
		return 0, err
	}
	defer l.mu.Unlock()
	defer l.catch()
	err = l.update(ctx, u, seen)
	l.arm(ctx)
	return l.heldTo - time.Since(l.began), err
}

// turn does what is due. It calls leave before it waits for a move, or for another site.
func (l *live) turn(ctx context.Context, leave func()) {
	if !l.mu.TryLock() {
		leave()
		if l.mu.LockContext(ctx) != nil {
			return
		}
	}
	defer l.mu.Unlock()
	l.leave = leave
	defer func() { l.leave = nil }() // a Watch has moves outside turns
	if l.ended {
		return
	}
	defer l.catch()
	if l.machine == nil {
		l.leaveRunner() // other sites may be asked
		if err := l.begin(ctx); err != nil {
			l.fail(err)
			return
		}
	}
	defer l.arm(ctx)
	now := time.Since(l.began)
	if l.next != nil && now >= l.heldTo {
		l.woken.Store(false) // what changes from here on has another turn
		u, some, due, err := l.next()
		if l.nextAt = 0; !due.IsZero() {
			l.nextAt = due.Sub(l.began)
		}
		if err == nil && some {
			err = l.update(ctx, u, now)
		}
		if err != nil {
			l.nextAt, l.stepAt = 0, 0
			l.fail(err)
			return
		}
		if now < l.heldTo { // what comes meanwhile is evaluated together
			l.nextAt = l.heldTo
			l.woken.Store(true)
		}
	}
	if l.stepAt > 0 && time.Since(l.began) >= l.stepAt {
		l.step(ctx)
	}
}

// catch is deferred where the rule may panic: that ends it.
func (l *live) catch() {
	if p := recover(); p != nil {
		l.ended, l.spoilt = true, true
		l.fail(agent.NewDefect(l.self.ID, p))
	}
}

// leaveRunner has the other rules go on, before this one waits.
func (l *live) leaveRunner() {
	if l.leave != nil {
		l.leave()
	}
}

// arm sets when the next turn is, if there is one.
func (l *live) arm(ctx context.Context) {
	at := sooner(0)
	for _, next := range [...]time.Duration{l.stepAt, l.nextAt} {
		if next > 0 {
			at.in(next)
		}
	}
	var then time.Time
	if at > 0 && ctx.Err() == nil {
		then = l.began.Add(time.Duration(at))
	}
	l.rule.wakeAt(&l.entry, then)
}

var errPointsChanged = errors.New("the points that the rule uses were changed")

// update tells the machine what changed, and has it decide.
func (l *live) update(ctx context.Context, u agents.Update, seen time.Duration) error {
	if seen-l.second >= time.Second {
		l.second, l.count = seen, 0
	}
	if l.count++; l.count >= PerSecond {
		l.heldTo = l.second + time.Second
	}
	if u.Offer || !l.updated { // the points may have changed after begin listed them
		l.updated = true
		l.leaveRunner() // other sites may be asked
		list, err := l.site.Points(ctx, l.self, agents.SiteRequest{})
		if err != nil {
			return err
		}
		if l.used(list.Points) != l.points {
			return errPointsChanged
		}
	}
	m, now := l.machine, l.moment()
	waited := now.Now - seen // for a move that was under way
	for _, r := range u.Readings {
		l.tell(now, r.After(waited))
		i := slices.IndexFunc(m.outputs, func(o output) bool { return o.address == r.Point })
		if d := r.Detail; d != nil && i >= 0 {
			m.Output(now, seen, i, Lease{
				Holder: d.Holder, Why: d.Why, Effect: d.Effect, Rest: max(0, agent.Seconds(d.Rest)-waited),
				Known: r.Quality == device.Good, Others: d.Others, State: d.State,
			})
		}
	}
	l.step(ctx)
	return nil
}

func (l *live) tell(now Moment, r agents.Reading) {
	if i := slices.Index(l.machine.Points(), r.Point); i >= 0 {
		l.machine.Tell(now.Now, i, &Reading{Value: r.Value, Age: agent.Seconds(r.Age), Known: r.Quality == device.Good})
	}
}

// refresh tells the ages of the points, where they count. A watch tells no reading that has the value
// of the one before, so that a point that was read a moment ago would seem to be old. While updates
// are held back it tells all points.
func (l *live) refresh(ctx context.Context) {
	held := time.Since(l.began) < l.heldTo
	var points []string
	for i, address := range l.machine.Points() {
		if u := &l.machine.points[i]; (u.Age || held) && !u.event {
			points = append(points, address)
		}
	}
	if points == nil {
		return
	}
	if slices.ContainsFunc(points, isFar) {
		l.leaveRunner()
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

// used returns a digest of the points that the rule uses.
func (l *live) used(points []agents.Point) (digest [sha256.Size]byte) {
	h := sha256.New()
	outputs := l.machine.Outputs()
	for i := range points { // a Point is large, and would be copied twice
		if p := &points[i]; slices.Contains(l.machine.Points(), p.Point) || slices.Contains(outputs, p.Point) {
			json.MarshalWrite(h, p) // of numbers and texts, so that there is no error
		}
	}
	h.Sum(digest[:0])
	return digest
}

// step makes what the machine decides, and sets the timer for what is due next.
func (l *live) step(ctx context.Context) {
	if l.ended || ctx.Err() != nil {
		return
	}
	for range MaxRounds {
		now := l.moment()
		if !l.machine.Settled(now.Now) { // any age may be asked for
			l.refresh(ctx)
			now = l.moment()
		}
		acts, next := l.machine.Step(now)
		l.makeNotes(ctx, l.machine.Notes())
		if len(acts) > 0 {
			l.leaveRunner()
		}
		slices.SortStableFunc(acts, func(a, b Act) int { return l.far(a) - l.far(b) }) // another site may hang
		for _, a := range acts {
			out, err := l.move(ctx, a)
			if err != nil && (ctx.Err() != nil || a.Value.IsZero() && device.AsFault(err).Kind != device.Expired) {
				l.spoilt = true // the output may still be held
			}
			l.machine.Done(l.moment(), a, agent.Seconds(out.Left), out.State, err)
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

// schedule notes when the machine is to be asked again.
func (l *live) schedule(next time.Duration) {
	l.stepAt = 0
	if next = l.machine.NextLook(time.Now(), next); next > 0 {
		l.stepAt = time.Since(l.began) + next
	}
}

// isFar reports whether an address is that of another site's point.
func isFar(address string) bool { return strings.Count(address, "/") > 1 }

// far is more for an output of another site than for one of this site.
func (l *live) far(a Act) int {
	if isFar(l.machine.targets[a.Output].address) {
		return 1
	}
	return 0
}

// move makes one act, and returns how the output is then.
func (l *live) move(ctx context.Context, a Act) (agents.Output, error) {
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
	return l.site.Move(ctx, l.self, r)
}

// end releases what the rule holds, whatever ended it.
func (l *live) end(ctx context.Context) {
	l.rule.remove(&l.entry)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	if l.mu.LockContext(ctx) != nil { // a move hangs; leases end by themselves
		go func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.leaveSite()
		}()
		return
	}
	l.leaveSite()
	var all sync.WaitGroup
	if l.machine != nil {
		var acts []Act
		if !l.spoilt {
			acts = l.machine.Release()
		} else {
			for i := range l.machine.outputs {
				acts = append(acts, Act{Output: i, Held: true})
			}
		}
		for _, a := range acts { // all at once: another site may hang
			all.Go(func() {
				var defect error
				defer agent.Recover(l.self.ID, &defect)
				l.move(ctx, a)
			})
		}
	}
	all.Wait()
	l.mu.Unlock()
	l.watching.Wait()
}

// leaveSite has no turn do anything any more.
func (l *live) leaveSite() {
	if l.ended = true; l.unfollow != nil {
		l.unfollow()
	}
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
