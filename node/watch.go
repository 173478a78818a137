package node

import (
	"context"
	"math"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/notify"
	"agentsite/device"
)

const (
	// endSlack is the largest change of the end of a lease or of a rest that is not sent again.
	endSlack = time.Second
	// A value that a permission's rate does not allow yet is tried again less and less often.
	chargeRetry    = time.Second
	chargeRetryMax = time.Minute
	// A watch with a length waits gatherTime for further changes after a first one: devices are
	// read at the same moments, and each update costs wake-ups here and elsewhere.
	gatherTime = 50 * time.Millisecond
)

// Watch implements agents.Site. It takes a place of the Subscriptions for as long as it runs.
func (n *Node) Watch(
	ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error,
) error {
	if err := known(p); err != nil {
		return err
	}
	asks, place, err := n.beginWatch(p, r)
	if err != nil {
		return err
	}
	defer place.Leave()
	return n.whileSeen(ctx, p, asks, func(ctx context.Context, seen func() error) error {
		w := newValueWatch(n, p, r)
		w.notes = n.hub.watchers.Join(w.changes(), nil)
		defer w.notes.Leave()
		return w.run(ctx, seen, emit)
	})
}

// beginWatch checks a request, and returns the asks that p has to keep the permission for, and the
// slot that the watch holds until it leaves.
func (n *Node) beginWatch(p agents.Principal, r agents.WatchRequest) (asks []agents.Ask, place Place, err error) {
	if r.OfferOnly {
		if err := agents.CheckNumber("every", &r.Every); err != nil {
			return nil, place, err
		}
		place, err = n.Hold(p, Subscriptions)
		return nil, place, err
	}
	ask := agents.Ask{Op: agents.OpWatch, Points: r.Points, Effect: agents.Reads}
	c := Call{who: p, Ask: ask, Terms: r.Terms, Args: none}
	wrong := n.enter(&c).planWatch(r)
	err = n.admit(&c, wrong)
	return []agents.Ask{ask}, c.place, err
}

// changes are those that a watch is told of, beside its points.
func (w *valueWatch) changes() agents.Change {
	return agents.Change{Tools: true, Prompts: true, Resources: true, Approvals: !w.offerOnly, Permissions: true}
}

func (v *view) planWatch(r agents.WatchRequest) error {
	if err := agents.CheckNumber("every", &r.Every); err != nil {
		return err
	}
	for i, address := range r.Points {
		if slices.Contains(r.Points[:i], address) {
			return device.Faultf(device.Invalid, "points: name each point once; %.60q comes twice", address)
		}
	}
	return v.checkPoints(r.Points)
}

// valueWatch is one Watch. Values are taken when an update is made, so that a slow watcher costs
// no more than the list of its points.
type valueWatch struct {
	node      *Node
	who       agents.Principal
	named     []string // as agents.WatchRequest has it, and what follows
	offerOnly bool
	every     float64
	notes     *notify.Watcher

	version uint64 // of who, when the view was taken
	view    *view
	status  bool // the stop's state may be told
	points  []watched
	outputs bool             // some of the points are
	told    []agents.Reading // what the last update told, whose place the next one uses; nil for a new one each time
	reuse   bool             // told
	asked   []string         // the points that charge counts, in memory that the next update reuses
	changed <-chan struct{}  // closed when an output or the stop may have changed

	stopped  bool      // as told
	handles  []string  // of the approvals, as told
	goodTill time.Time // when the next reading becomes stale; zero for none, as the following
	answerBy time.Time // when the next approval ends by itself
	chargeAt time.Time // when readings that a rate holds back are tried again
	backOff  time.Duration
}

func newValueWatch(n *Node, p agents.Principal, r agents.WatchRequest) valueWatch {
	return valueWatch{node: n, who: p, named: r.Points, offerOnly: r.OfferOnly, every: r.Every}
}

// watched is a point of a watch.
type watched struct {
	*point
	dirty          bool           // it may have to be told
	known          bool           // it was told since the snapshot
	number         uint64         // of the reading that was told
	quality        device.Quality // as told
	*watchedOutput                // nil of what is none
}

// watchedOutput is the state of an output in a watch.
type watchedOutput struct {
	moved bool                 // it differs from told, apart from the time that has passed
	told  *agents.OutputDetail // the state sent last, shared with the receiver; nil before the first
	at    time.Time            // when that was told
}

// run makes updates until ctx ends or emit fails.
func (w *valueWatch) run(ctx context.Context, seen func() error, emit func(agents.Update) error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	every := time.Duration(w.every * float64(time.Second))
	var last time.Time // when an update was told
	for first := true; ; first = false {
		if err := seen(); err != nil {
			return err
		}
		u, some, err := w.update(first)
		if err != nil {
			return err
		}
		if some {
			if err := emit(u); err != nil {
				return err
			}
			last = time.Now()
		}
		var due <-chan time.Time
		if next := earliest(w.goodTill, w.answerBy, w.chargeAt); !next.IsZero() {
			timer.Reset(time.Until(next) + 1)
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.notes.C:
		case <-w.changed:
		case <-due:
		}
		if every > 0 {
			timer.Reset(max(every-time.Since(last), min(every, gatherTime)))
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-timer.C:
			}
		}
	}
}

// earliest returns the first of some times; the zero Time is none.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// past reports whether a time is there and has come.
func past(t time.Time) bool { return !t.IsZero() && time.Since(t) >= 0 }

// update makes the next update, and reports whether there is anything in it.
func (w *valueWatch) update(first bool) (u agents.Update, changed bool, err error) {
	snapshot, asked := first, past(w.answerBy)
	w.notes.TakeFunc(func(c agents.Change) {
		if address, ok := c.Point(); ok {
			if p := w.find(address); p != nil {
				p.dirty = true
			}
		}
		snapshot = snapshot || c.Tools || c.Prompts || c.Resources
		asked = asked || c.Approvals
	})
	version := w.node.accessVersion(w.who)
	snapshot = snapshot || version != w.version
	w.version = version
	u.Offer = snapshot && !first
	if w.offerOnly {
		return u, snapshot, nil
	}
	if snapshot {
		w.look()
	}
	w.compareOutputs(snapshot)
	sweep := snapshot || past(w.goodTill)
	if sweep {
		w.goodTill = time.Time{}
	}
	some := false
	for i := range w.points {
		p := &w.points[i]
		if p.dirty || sweep {
			latest := w.node.hub.entry(p.Address)
			w.goodTill = earliest(w.goodTill, latest.goodUntil())
			moved := p.watchedOutput != nil && p.moved
			p.dirty = !p.known || moved || latest.Quality != p.quality || p.dirty && latest.number != p.number
		}
		some = some || p.dirty
	}
	if some {
		if u.Readings, err = w.readings(snapshot); err != nil {
			return u, false, err
		}
	} else { // a change that a rate held back was undone
		w.chargeAt, w.backOff = time.Time{}, 0
	}
	if snapshot || asked {
		u.Approvals = w.approvals(snapshot)
	}
	if stopped := w.view.Outputs.Stopped(); w.status && (snapshot || stopped != w.stopped) {
		w.stopped = stopped
		u.Stops = []agents.StopState{{Stopped: stopped}}
	}
	return u, snapshot || u.Readings != nil || u.Approvals != nil || u.Stops != nil, nil
}

// look takes the present view. Named points that are gone are left out.
func (w *valueWatch) look() {
	w.view, _ = w.node.seenBy(w.who)
	limits, _ := w.node.may(w.who, agents.Ask{Op: agents.OpStatus, Effect: agents.Reads})
	w.status = w.view.may(agents.OpStatus) && !limits.Confirm
	var points []string
	if len(w.named) > 0 {
		points = slices.DeleteFunc(slices.Clone(w.named), func(address string) bool { return !w.view.mayRead(address) })
	} else {
		points = w.view.offer().Read
	}
	uris := make([]string, len(points))
	w.points, w.outputs = make([]watched, len(points)), false
	for i, address := range points {
		of := w.view.point(address)
		w.points[i].point = of
		uris[i] = w.node.hub.uri(address)
		if of.Kind.Output() {
			w.points[i].watchedOutput, w.outputs = new(watchedOutput), true
		}
	}
	w.notes.Replace(uris)
	w.chargeAt, w.backOff = time.Time{}, 0
}

// find returns a point that is watched; nil for any other. A map would be most of a small watch.
func (w *valueWatch) find(address string) *watched {
	if w.view == nil {
		return nil
	}
	of := w.view.byName[address]
	for i := range w.points {
		if w.points[i].point == of {
			return &w.points[i]
		}
	}
	return nil
}

// compareOutputs marks the outputs of which more has changed than the time that is left.
func (w *valueWatch) compareOutputs(snapshot bool) {
	if snapshot || isClosed(w.changed) {
		w.changed = nil
		if w.outputs || w.status {
			w.changed = w.view.Outputs.Changed() // before the state: nothing is missed
		}
	} else if !slices.ContainsFunc(w.points, func(p watched) bool { return p.dirty && p.Kind.Output() }) {
		return
	}
	if !w.outputs {
		return
	}
	now := time.Now()
	for i := range w.points { // not by Status, a list of all outputs for each of 64 rules
		p := &w.points[i]
		if !p.Kind.Output() {
			continue
		}
		s, ok := w.view.Outputs.StatusOf(p.Address)
		if !ok {
			continue
		}
		p.moved = p.told == nil
		if d := w.view.doing(w.who, s); !p.moved {
			p.moved = differs(p.told.After(now.Sub(p.at)), d)
		}
		p.dirty = p.dirty || p.moved
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// differs reports whether the state of an output differs from the one that was sent, apart from small
// differences of lengths.
func differs(told, now agents.OutputDetail) bool {
	for _, l := range [...]struct{ told, now *float64 }{
		{&told.Left, &now.Left}, {&told.Rest, &now.Rest},
		{&told.MaxOn.Left, &now.MaxOn.Left}, {&told.Duty.Left, &now.Duty.Left},
	} {
		if math.Abs(*l.told-*l.now) > endSlack.Seconds() {
			return true
		}
		*l.told = *l.now
	}
	told.Duty.Assumed, told.Set.Age, told.Measured.Age = now.Duty.Assumed, now.Set.Age, now.Measured.Age
	return told != now
}

// readings returns those that are to be told and that the permission pays for.
func (w *valueWatch) readings(snapshot bool) ([]agents.Reading, error) {
	now := time.Now()
	held, err := w.charge(now)
	if err != nil {
		return nil, err
	}
	some := 0
	for i := range w.points {
		if w.points[i].dirty {
			some++
		}
	}
	out := slices.Grow(w.told[:0], some)
	for i := range w.points {
		p := &w.points[i]
		if !p.dirty {
			continue
		}
		if held != nil && held(p.Address) {
			if snapshot {
				out = append(out, agents.Reading{Point: p.Address, Unit: p.Unit, Quality: device.Stale, Why: HeldBack})
			}
			continue
		}
		latest := w.node.hub.entry(p.Address) // it may be newer than the one above
		w.goodTill = earliest(w.goodTill, latest.goodUntil())
		r := p.reading(latest.Reading)
		if p.Kind.Output() {
			p.told, p.at, p.moved = new(agents.OutputDetail), now, false
			if s, ok := w.view.Outputs.StatusOf(p.Address); ok {
				*p.told = w.view.doing(w.who, s)
			}
			r.Detail = p.told
		}
		p.number, p.quality, p.known, p.dirty = latest.number, latest.Quality, true, false
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, nil
	}
	if w.reuse && !snapshot { // which is longer than what follows
		w.told = out
	}
	return out, nil
}

// charge charges the permissions for the readings that are to be told, as Read would. Held
// reports which of them wait, because a rate is used up; nil is for none.
func (w *valueWatch) charge(now time.Time) (held func(address string) bool, err error) {
	if w.node.free(w.who) {
		return nil, nil
	}
	all := func(string) bool { return true }
	if now.Before(w.chargeAt) {
		return all, nil
	}
	w.asked = w.asked[:0]
	for _, p := range w.points {
		if p.dirty {
			w.asked = append(w.asked, p.Address)
		}
	}
	points := w.asked
	var late []string
	switch err = w.take(points); {
	case err == nil:
	case device.AsFault(err).Kind == device.Busy:
		late = points
	case len(points) > 1 && err != errConfirm: // each by another permission
		for _, address := range points {
			switch err := w.take([]string{address}); {
			case err == nil:
			case device.AsFault(err).Kind == device.Busy:
				late = append(late, address)
			default:
				return nil, err
			}
		}
	default:
		return nil, err
	}
	if late == nil {
		w.chargeAt, w.backOff = time.Time{}, 0
		return nil, nil
	}
	w.backOff = min(max(chargeRetry, 2*w.backOff), chargeRetryMax)
	w.chargeAt = now.Add(w.backOff)
	return func(address string) bool { return slices.Contains(late, address) }, nil
}

// take charges one read.
func (w *valueWatch) take(points []string) error {
	return w.node.charge(w.who, agents.Ask{Op: agents.OpRead, Points: points, Effect: agents.Reads})
}

// approvals returns the calls that wait for an owner; nil where those were told.
func (w *valueWatch) approvals(snapshot bool) []agents.Approval {
	who := w.who.ID
	var wishes []Wish
	if w.node.owns(w.who) {
		who, wishes = "", w.node.wishes()
	}
	waiting := w.node.requests.waiting(who)
	w.answerBy = time.Time{}
	if len(waiting) > 0 {
		w.answerBy = time.Now().Add(waiting[0].Left)
	}
	handles := make([]string, len(waiting))
	for i, r := range waiting {
		handles[i] = r.Handle
	}
	for _, wish := range wishes { // an owner's program then asks for them
		handles = append(handles, wish.Handle)
		w.answerBy = earliest(w.answerBy, time.Now().Add(wish.Left))
	}
	if !snapshot && slices.Equal(handles, w.handles) {
		return nil
	}
	w.handles = handles
	out := make([]agents.Approval, len(waiting))
	for i, r := range waiting {
		out[i] = agents.Approval{
			Handle: r.Handle, Caller: r.Who, Tool: r.Tool, Args: string(r.Args), Left: seconds(r.Left), Holds: seconds(r.Holds),
		}
	}
	return out
}
