package events

import (
	"cmp"
	"context"
	"slices"
	"time"

	"agentsite/agents/event"
	"agentsite/agents/rule/expr"
	"agentsite/device"
	"agentsite/node/history"
	"agentsite/node/occurrence"
)

// teller makes one page of events from records.
type teller struct {
	source  *Source
	plan    *plan
	request event.Request
	state   state
	page    event.Page
	about   [][]string    // the points of each of the page's events
	due     time.Duration // after which there may be more without a record; 0 for never

	run   uint64 // of this process, for a history in memory only; 0 otherwise
	wall  time.Time
	sure  bool
	now   int64 // recorded time
	floor int64 // recorded time before which nothing is told
	at    int64 // recorded time at which the condition is evaluated
}

// tell makes the page.
func (t *teller) tell(ctx context.Context) error {
	s, pl := t.source, t.plan
	fresh, now := s.History.Marks(pl.addresses)
	t.now = now.At
	t.wall, t.sure = s.Now()
	if now.Run == 0 {
		t.run = s.run
	}
	whole := t.begin(fresh, now)
	marks := make([]history.Mark, len(t.state.slots))
	far := false
	for i := range marks {
		marks[i] = t.state.slots[i].Mark
		far = far || now.At-marks[i].At > 2*time.Minute.Milliseconds() || marks[i].Run != now.Run
	}
	if far { // on the card
		leave, err := s.Node.ReadPast(ctx, pl.who)
		if err != nil {
			return err
		}
		defer leave()
	}
	held := false // records wait for earlier ones
	ordered := pl.when != nil && len(pl.points) > 1
	all := s.History.After(pl.addresses, marks, func(e history.Entry) bool {
		if ctx.Err() != nil { // days of many points take a small board many seconds
			return false
		}
		if held = ordered && e.At > t.now-settle.Milliseconds() && e.Run == now.Run; held {
			t.wake(e.At + settle.Milliseconds())
			return false
		}
		return t.take(e)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !t.page.More && !held {
		for i := range t.state.slots { // what comes is after what was looked at
			x := &t.state.slots[i]
			if x.Run != fresh[i].Run {
				t.restarted(fresh[i].Run)
			}
			if x.Run != fresh[i].Run || fresh[i].At > x.At {
				x.Mark = fresh[i]
			}
		}
		t.lapse(t.now-settle.Milliseconds(), history.Entry{
			Point: -1, Wall: t.wall, Sure: t.sure, Mark: history.Mark{Run: now.Run, At: t.now},
		})
	}
	if !t.page.More {
		t.state.replay = 0
	} else {
		t.state.replay += uint16(len(t.page.Events))
	}
	t.page.Truncated = t.page.Truncated || !whole || !all
	t.page.Next = t.state.pause(t.next(), len(t.page.Events))
	t.page.Cursor = s.seal.close(pl, &t.state)
	return nil
}

// begin completes the state of a cursor, or makes that of now. It reports whether what happened since is known.
func (t *teller) begin(fresh []history.Mark, now history.Mark) (whole bool) {
	pl, st := t.plan, &t.state
	none := t.request.Cursor == ""
	whole = true
	slots := make([]slot, len(pl.points))
	for i, address := range pl.addresses {
		if k := slices.IndexFunc(st.slots, func(x slot) bool { return x.point == address }); k >= 0 {
			slots[i] = st.slots[k]
		} else {
			slots[i] = t.present(i, fresh[i])
		}
	}
	st.slots = slots
	if none {
		st.run, t.floor = t.source.run, now.At+1
		t.at = now.At
		st.met = pl.when != nil && t.eval(pl.when) == expr.True
		return true
	}
	t.floor = now.At - maxReplay.Milliseconds()
	// of an earlier process, whose last minute may not be stored: the next run has its number then
	if st.run != t.source.run {
		st.run, whole = t.source.run, false
		for i := range st.slots {
			if st.slots[i].Run >= now.Run {
				st.slots[i] = slot{point: st.slots[i].point, Mark: history.Mark{Run: now.Run}}
				st.since = 0
			}
		}
	}
	if st.replay >= maxChain {
		t.floor, whole = now.At+1, false
	}
	for _, x := range st.slots {
		whole = whole && x.At >= now.At-maxReplay.Milliseconds()
	}
	if t.request.MaxAge > 0 {
		t.floor = max(t.floor, now.At-t.request.MaxAge.Milliseconds())
	}
	return whole
}

// present returns the slot of a point as it is now.
func (t *teller) present(i int, m history.Mark) slot {
	x := slot{point: t.plan.addresses[i], Mark: m}
	if r, ok := t.source.Hub.Latest(x.point); ok && r.Quality == device.Good {
		x.value, x.made = r.Value, t.now-time.Since(r.At).Milliseconds()
		x.held = r.Holder != ""
	}
	return x
}

// take goes on by one record. It reports whether there is room for more events.
func (t *teller) take(e history.Entry) bool {
	if len(t.page.Events) >= t.request.Max {
		t.page.More = true
		return false
	}
	st, pl := &t.state, t.plan
	x := &st.slots[e.Point]
	if e.Run != x.Run {
		t.restarted(e.Run)
	}
	if t.lapse(e.At, e); len(t.page.Events) >= t.request.Max {
		t.page.More = true
		return false
	}
	before := *x
	x.Mark, x.value, x.made, x.held = e.Mark, e.Value, e.At, e.Holder != ""
	t.at = e.At
	switch pl.name {
	case ButtonPressed:
		if e.Value == device.Bool(false) { // it was let go
			break
		}
		t.emit(e, e.Mark, readingOf(pl, e.Point, e.Value, e.Wall))
	case PointChanged:
		switch {
		case st.since != 0 || st.told != 0 && e.At-st.told < settle.Milliseconds():
			st.since = e.At
		case e.Value != before.value:
			st.told = e.At
			t.emit(e, e.Mark, readingOf(pl, e.Point, e.Value, e.Wall))
		}
	case OutputMoved:
		if x.held && !e.Value.IsZero() && (!before.held || e.Value != before.value) {
			t.emit(e, e.Mark, t.output(e, e.Holder, false))
		}
	case OutputReturned:
		if returned, broke := occurrence.Return(before.held, device.Change{Holder: e.Holder, Cause: e.Cause}); returned {
			t.emit(e, e.Mark, t.output(e, "", broke))
		}
	default:
		t.evaluate(e)
	}
	return true
}

// restarted forgets the values of earlier runs: what they are in another one is not known before they are read.
func (t *teller) restarted(run uint32) {
	for i := range t.state.slots {
		if x := &t.state.slots[i]; x.Run != run {
			x.value, x.held = device.Value{}, false
		}
	}
	t.state.since = 0
}

// evaluate goes on with the condition after a record.
func (t *teller) evaluate(e history.Entry) {
	st, pl := &t.state, t.plan
	truth := t.eval(pl.when)
	switch {
	case st.met:
		st.met = pl.until == nil && truth != expr.False || pl.until != nil && t.eval(pl.until) != expr.True
	case truth != expr.True:
		st.since = 0
	case pl.hold == 0:
		st.met = true
		t.emit(e, e.Mark, t.condition(e.Wall))
	case st.since == 0:
		st.since = e.At
	}
}

// lapse tells what became due by a moment of recorded time: a condition that was true for long enough, or a change that
// came too soon after another.
func (t *teller) lapse(until int64, e history.Entry) {
	st, pl := &t.state, t.plan
	if st.since == 0 {
		return
	}
	wall := func(at int64) time.Time { return e.Wall.Add(-time.Duration(e.At-at) * time.Millisecond) }
	if pl.name == PointChanged {
		due := st.told + settle.Milliseconds()
		if until < due {
			t.wake(due + settle.Milliseconds())
			return
		}
		x := &st.slots[0]
		at := history.Mark{Run: x.Run, At: st.since}
		st.since, st.told = 0, at.At
		e.Point, e.Value, e.Wall = 0, x.value, wall(at.At)
		t.emit(e, at, readingOf(pl, 0, x.value, e.Wall))
		return
	}
	due := st.since + pl.hold
	if until < due {
		t.at = until
		if t.eval(pl.when) != expr.True { // a reading became stale
			st.since = 0
			return
		}
		t.wake(due + settle.Milliseconds())
		return
	}
	t.at = due
	begun := st.since
	if st.since = 0; t.eval(pl.when) != expr.True {
		return
	}
	st.met = true
	e.Wall = wall(due)
	e.Point = -1
	t.emit(e, history.Mark{Run: e.Run, At: due}, t.condition(wall(begun)))
}

// wake sets due to a moment of recorded time.
func (t *teller) wake(at int64) {
	t.due = max(time.Duration(at-t.now)*time.Millisecond, time.Millisecond)
}

// emit adds an event to the page, unless it is too old.
func (t *teller) emit(e history.Entry, m history.Mark, data any) {
	if m.At < t.floor {
		t.page.Truncated = t.page.Truncated || t.request.MaxAge == 0
		return
	}
	pl := t.plan
	about, read, v := "", pl.addresses, e.Value
	if e.Point >= 0 && pl.when == nil {
		about, read = pl.addresses[e.Point], pl.addresses[e.Point:e.Point+1]
	} else {
		v, m.N = device.Value{}, 0
	}
	t.about = append(t.about, read)
	t.page.Events = append(t.page.Events, event.Event{
		ID: pl.id(t.run, about, m, v), Name: pl.name, At: e.Wall, Sure: e.Sure, Data: encode(data),
		Cursor: t.source.seal.close(pl, &t.state),
	})
}

// next returns after what time a point of the request may be read again.
func (t *teller) next() time.Duration {
	if t.plan.when == nil {
		return nextPoll
	}
	next := time.Duration(0)
	for _, good := range t.plan.goodFor {
		period := max(time.Second, time.Duration(good)*time.Millisecond/3)
		if good > 0 && (next == 0 || period < next) {
			next = period
		}
	}
	return cmp.Or(next, nextPoll)
}

type readingData struct {
	When    string `json:"when,omitzero"`
	Point   string `json:"point"`
	Value   any    `json:"value,omitzero"`
	Unit    string `json:"unit,omitzero"`
	Quality string `json:"quality"`
	Since   string `json:"since"`
}

func readingOf(pl *plan, point int, v device.Value, since time.Time) readingData {
	d := readingData{
		Point: pl.addresses[point], Value: v.Any(), Unit: pl.points[point].Unit, Quality: string(device.Good),
		Since: since.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
	if v.IsZero() {
		d.Quality = string(device.Bad)
	}
	return d
}

// condition returns the data of a condition that is true, with the first point that decides it.
func (t *teller) condition(since time.Time) readingData {
	point := 0
	if all := t.plan.when.Decides(t); len(all) > 0 {
		point = all[0]
	}
	d := readingOf(t.plan, point, t.state.slots[point].value, since)
	d.When = t.plan.args.When
	return d
}

type outputData struct {
	Output  string `json:"output"`
	Value   any    `json:"value,omitzero"`
	Safe    any    `json:"safe"`
	Because string `json:"because,omitzero"`
	Broke   bool   `json:"broke,omitzero"`
	Holder  string `json:"holder,omitzero"`
}

func (t *teller) output(e history.Entry, holder string, broke bool) outputData {
	d := outputData{
		Output: t.plan.addresses[e.Point], Value: e.Value.Any(), Safe: t.plan.points[e.Point].Safe.Any(), Broke: broke,
	}
	if holder == "" {
		d.Because = e.Cause
	}
	if p := t.plan.who; holder == p.ID || t.source.Node.Owner(p) == nil {
		d.Holder = holder
	}
	return d
}

func (t *teller) eval(p *expr.Program) expr.Truth {
	truth, _ := p.Eval(t)
	return truth
}

// Reading implements expr.Env.
func (t *teller) Reading(point int) (v device.Value, age time.Duration, known bool) {
	x := &t.state.slots[point]
	if x.value.IsZero() {
		return x.value, -1, false
	}
	old := t.at - x.made
	good := t.plan.goodFor[point]
	return x.value, time.Duration(old) * time.Millisecond, good == 0 || old <= good
}

// Window implements expr.Env. There are none.
func (t *teller) Window(int) (float64, bool) { return 0, false }

// Clock implements expr.Env.
func (t *teller) Clock() (time.Time, bool) { return time.Time{}, false }

// Sun implements expr.Env.
func (t *teller) Sun() (rise, set time.Time, known bool) { return time.Time{}, time.Time{}, false }
