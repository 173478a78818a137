package rule

import (
	"math"
	"time"

	"agentsite/agents/rule/expr"
	"agentsite/device"
)

// Moment is a time. Now is monotonic and orders everything. Wall is the local time of day; it
// counts only if it is Sure.
type Moment struct {
	Now  time.Duration
	Wall time.Time
	Sure bool
}

// Reading is a reading as a Machine is told of it.
type Reading struct {
	Value device.Value
	Age   time.Duration
	Known bool // it is of good quality
}

// Lease is the state of an output's lease, as a watch reports it. Why is the reason for the last
// return to safe; it is "" after a release, and for an output that had no lease.
type Lease struct {
	Holder string
	Why    string
	Effect string        // as agents.Output has it
	Rest   time.Duration // until its own limits permit a move
	Known  bool          // its value is known
	Others bool          // its holder, or the last caller to release it, is neither an owner nor an agent of the site
	State  int64         // as agents.OutputDetail has it
}

// Act is a move that a Machine wants. Without a value it is a release.
type Act struct {
	Output int // its index in Outputs
	Value  device.Value
	For    time.Duration // 0 leaves it to the output
	Held   bool          // only while the rule holds the output: a renewal, or its release
	Key    string        // makes the move once; "" for none
}

const (
	// lateAt is how late an occurrence of at: may run, and missedAt with missed: run. The former
	// is for clocks that are set in small steps.
	lateAt, missedAt = time.Minute, time.Hour
	// maxSetBack is how far a clock may be set back without what has run running again.
	maxSetBack = 25 * time.Hour
	// sameEvent is how far apart in time two readings of one event may seem.
	sameEvent = 20 * time.Millisecond
)

// Machine decides what one rule does. It is plain state: its methods take the present time,
// do no I/O and do not block; Tell and Step allocate nothing once a rule has settled. It is not
// safe for concurrent use.
//
// At first a rule is idle: it holds nothing, and what it knows of the past counts for nothing.
type Machine struct {
	*compiled
	self string // the principal

	now      Moment
	readings []reading
	windows  []window // of uses.Windows
	outputs  []output
	acts     []Act

	active bool // a level holds its outputs
	// pending: the condition is true, and not yet for as long as it has to be
	pending bool
	truth   expr.Truth    // of the condition, when it was looked at last
	fired   bool          // the event of on: came
	began   bool          // the first Step was made
	touched bool          // something was told that may change what Step does
	summed  bool          // the last Step asked for a window, which changes by itself
	since   time.Duration // from when the condition has been true; valid if pending
	due     time.Duration // when Step has something to do by itself; 0 for never
	every   time.Duration // when every: is due next
	next    *occurrence   // of at:; nil without it
	skipped string        // why the last trigger moved nothing; "" if it did
}

// occurrence is the next one of at:.
type occurrence struct {
	at      time.Time     // zero while that is not known
	key     string        // its
	lookAt  time.Duration // when it is looked up again, where there is none
	sure    bool          // the clock has been
	looked  time.Duration // when it was not; 0 for never
	wall    time.Time     // of the Step before
	ranLast time.Time     // the last occurrence that ran
}

// reading is the latest reading of a point.
type reading struct {
	value   device.Value
	at      time.Duration // of Moment.Now
	seen    bool          // it ever had a value
	known   bool
	nothing bool // of an event: it had not happened when it was told last

	asked     bool    // the last Step asked for it
	low, high float64 // numbers between these are the same to it
}

// env is a Machine as its programs ask it.
type env Machine

func (e *env) Reading(i int) (v device.Value, age time.Duration, known bool) {
	r := &e.readings[i]
	r.asked = true
	if !r.seen {
		return v, -1, false
	}
	return r.value, max(0, e.now.Now-r.at), r.known
}

func (e *env) Window(i int) (float64, bool) {
	e.summed = true
	return e.windows[i].value(e.now.Now)
}

func (e *env) Clock() (time.Time, bool) { return e.now.Wall, e.now.Sure }

func (e *env) Sun() (rise, set time.Time, known bool) {
	if !e.now.Sure || e.place == nil {
		return rise, set, false
	}
	rise, set = e.place.Day(e.now.Wall)
	return rise, set, true
}

// newMachine returns the idle machine of a rule whose principal is self.
func newMachine(c *compiled, self string) *Machine {
	m := &Machine{
		compiled: c, self: self, touched: true,
		readings: make([]reading, len(c.points)), windows: make([]window, len(c.uses.Windows)), outputs: make([]output, len(c.targets)),
	}
	for i, w := range c.uses.Windows {
		m.windows[i] = newWindow(w)
	}
	for i := range c.targets {
		m.outputs[i] = output{target: &c.targets[i], index: i}
	}
	if c.schedule != nil {
		m.next = new(occurrence)
	}
	return m
}

// Tell tells a reading of point i of Points. A reading that is not told again is still what it
// was told to be. Of an event, a reading that is known and has no value says that it has not
// happened yet.
func (m *Machine) Tell(now time.Duration, i int, r *Reading) {
	is, some := &m.readings[i], !r.Value.IsZero()
	known, at := r.Known && some, is.at
	if some {
		at = now - r.Age
	}
	m.touched = m.touched || is.asked && m.matters(i, is, r, known)
	if m.points[i].plain {
		is.tell(r, at, known)
		return
	}
	event := m.points[i].event
	came := known && (is.nothing || is.seen) && (!is.seen || at > is.at+sameEvent)
	if event && is.seen && !came {
		at = is.at // ages are rounded: the time of one event is not to drift
	}
	released := m.toggle && event && is.value.Bool() && r.Value == device.Bool(false) // the end of a press that counted
	rose := is.known && !is.value.Bool() && known && r.Value.Bool()
	if i == m.on && !released && (came && (event || r.Value.Type() != device.TypeBool) || rose && !event) {
		m.fired, m.touched = true, true
	}
	is.tell(r, at, known)
	for k := range m.windows {
		w := &m.windows[k]
		switch {
		case int(w.point) != i:
		case w.Func != expr.Count:
			w.hold(at, now, is.value.Number(), known)
		case event && is.nothing:
			w.watch(now)
		case known:
			w.watch(at)
			if (came && is.value.Type() != device.TypeBool || came && event || rose && !event) && now-at <= w.length {
				w.count(at)
			}
		}
	}
}

func (is *reading) tell(r *Reading, at time.Duration, known bool) {
	some := !r.Value.IsZero()
	if some {
		is.value, is.seen = r.Value, true
	}
	is.at, is.known, is.nothing = at, known, r.Known && !some
}

// matters reports whether a reading after another one may change what Step does.
func (m *Machine) matters(i int, was *reading, r *Reading, known bool) bool {
	s, v := &m.points[i], &r.Value
	switch {
	case s.Time || known != was.known:
		return true
	case !known:
		return false
	case !s.Value && v.Type() == device.TypeNumber && was.low < v.Number() && v.Number() < was.high:
		return false
	}
	return *v != was.value
}

// between sets among which numbers the value of a point is.
func (r *reading) between(bounds []float64) {
	n := r.value.Number()
	r.low, r.high = math.Inf(-1), math.Inf(1)
	for _, b := range bounds {
		if b <= n {
			r.low = max(r.low, b)
		}
		if b >= n {
			r.high = min(r.high, b)
		}
	}
}

// eval evaluates one of the rule's expressions; next as Program.Eval has it.
func (m *Machine) eval(which int) (expr.Truth, time.Duration) {
	return m.programs[which].Eval((*env)(m))
}

// Settled reports whether Step would do nothing now, and have the same to do at the same time as it
// said last.
func (m *Machine) Settled(now time.Duration) bool {
	return !m.touched && m.steady && !m.summed && (m.due == 0 || now < m.due)
}

// Step decides. It returns the moves to make, in this order, each of which is answered by Done
// before the next Step; they are valid until then. Next is after how long Step has something to
// do although nothing is told; 0 for nothing.
func (m *Machine) Step(now Moment) (acts []Act, next time.Duration) {
	m.now, m.acts = now, m.acts[:0]
	if m.Settled(now.Now) {
		if m.due == 0 {
			return nil, 0
		}
		return nil, max(m.due-now.Now, time.Millisecond)
	}
	m.touched, m.summed = false, false
	for i := range m.readings {
		m.readings[i].asked = false
	}
	due := sooner(0)
	if m.programs[whenProgram] != nil {
		m.stepLevel(&due)
	} else {
		m.stepEdge(&due)
	}
	for i := range m.outputs {
		m.outputs[i].step(m, &due)
	}
	m.began = true
	m.touched = len(m.acts) > 0
	for i := range m.readings {
		if r := &m.readings[i]; r.asked && r.known {
			r.between(m.points[i].Bounds)
		}
	}
	if m.due = 0; due > 0 {
		m.due = now.Now + time.Duration(due)
	}
	return m.acts, time.Duration(due)
}

// sooner is the earliest of some lengths of time, of which 0 is none.
type sooner time.Duration

func (s *sooner) in(d time.Duration) {
	if d = max(d, time.Millisecond); *s == 0 || d < time.Duration(*s) {
		*s = sooner(d)
	}
}

// stepLevel begins and ends the hold of a rule with when.
func (m *Machine) stepLevel(due *sooner) {
	truth, again := m.eval(whenProgram)
	if again > 0 {
		due.in(again)
	}
	m.truth = truth
	m.stepHold(truth, due)
	for i := range m.outputs { // with until:, the rule may want its outputs while when: is false
		m.outputs[i].resume(m, truth == expr.False && !m.active)
	}
}

// stepHold is stepLevel with what the condition is.
func (m *Machine) stepHold(truth expr.Truth, due *sooner) {
	if m.active {
		over := truth != expr.True
		if m.programs[untilProgram] != nil {
			until, again := m.eval(untilProgram)
			if again > 0 {
				due.in(again)
			}
			over = until != expr.False
		}
		if !over {
			return
		}
		m.active, m.pending = false, false
		for i := range m.outputs {
			m.outputs[i].wanted = false
		}
		// The condition may be true still; then its time begins anew.
	}
	if truth != expr.True {
		m.pending = false
		return
	}
	if !m.pending {
		m.pending, m.since = true, m.now.Now
	}
	if left := m.hold - (m.now.Now - m.since); left > 0 {
		due.in(left)
		return
	}
	if m.programs[untilProgram] != nil {
		// A hold that would end at once does not begin: both conditions are true, or one is not known.
		until, again := m.eval(untilProgram)
		if again > 0 {
			due.in(again)
		}
		if until != expr.False {
			return
		}
	}
	m.active, m.pending = true, false
	for i := range m.outputs {
		m.outputs[i].want(m, 0, "")
	}
}

// stepEdge runs the steps of a rule with on, at or every.
func (m *Machine) stepEdge(due *sooner) {
	fired, key := m.fired, ""
	m.fired = false
	m.stepWaits(due)
	if m.period > 0 {
		if !m.began {
			m.every = m.now.Now + m.period
		}
		if m.now.Now >= m.every {
			fired = true
			m.every += (m.now.Now-m.every)/m.period*m.period + m.period
		}
		due.in(m.every - m.now.Now)
	}
	if m.schedule != nil {
		if at, occurred := m.stepSchedule(due); occurred {
			fired, key = true, at
		}
	}
	if !fired {
		return
	}
	m.skipped = ""
	if m.toggle && m.letGo() {
		return
	}
	if m.programs[ifProgram] != nil {
		switch truth, _ := m.eval(ifProgram); truth {
		case expr.Unknown:
			cause, _, _ := m.cause(ifProgram)
			m.skipped = cause + " was unknown"
			return
		case expr.False:
			m.skipped = "if: was false"
			return
		}
	}
	m.start(key)
	m.stepWaits(due)
}

// letGo ends what the rule holds or is about to, and reports whether there was any of it.
func (m *Machine) letGo() (some bool) {
	some = m.endWaits()
	for i := range m.outputs {
		o := &m.outputs[i]
		some = some || o.held || o.wanted && !o.yielded
	}
	for i := range m.outputs {
		m.outputs[i].wanted = m.outputs[i].wanted && !some
	}
	return some
}

// stepSchedule reports whether an occurrence of at: is due, and its key. Of several that the
// clock was set forward over, the last counts.
func (m *Machine) stepSchedule(due *sooner) (key string, occurred bool) {
	next := m.next
	if !m.now.Sure {
		next.at, next.sure, next.looked = time.Time{}, false, max(m.now.Now, 1)
		return "", false
	}
	wall := m.now.Wall
	if next.ranLast.Sub(wall) >= maxSetBack {
		next.ranLast = time.Time{}
	}
	passed := !next.at.IsZero() && !wall.Before(next.at)
	if passed || !next.sure && (m.missed || next.looked > 0) {
		late := lateAt
		switch {
		case m.missed:
			late = missedAt
		case !passed: // the clock became known since then
			late = min(m.now.Now-next.looked, lateAt+time.Second)
		}
		at, name, ok := m.schedule.Last(wall, wall.Add(-late), m.place)
		if ok && at.After(next.ranLast) {
			key, occurred, next.ranLast = name, true, at
		} else if passed {
			m.skipped = "the clock was set forward over " + next.key
		}
	}
	if passed || !next.sure || wall.Before(next.wall) || wall.Location() != next.wall.Location() {
		next.at, next.lookAt = time.Time{}, m.now.Now
	}
	next.sure, next.wall = true, wall
	if next.at.IsZero() && m.now.Now >= next.lookAt {
		// A clock that was set back does not have what has run run again.
		from := wall
		if next.ranLast.After(from) {
			from = next.ranLast
		}
		next.at, next.key, _ = m.schedule.Next(from, m.place)
		next.lookAt = m.now.Now + time.Hour
	}
	if next.at.IsZero() {
		due.in(next.lookAt - m.now.Now)
	} else {
		due.in(min(next.at.Sub(wall), time.Hour))
	}
	return key, occurred
}

// Release returns the releases of all that the rule holds, and leaves it idle for good.
func (m *Machine) Release() (acts []Act) {
	for i := range m.outputs {
		if m.outputs[i].held {
			acts = append(acts, Act{Output: i, Held: true})
		}
	}
	return acts
}
