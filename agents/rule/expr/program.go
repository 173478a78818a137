package expr

import (
	"slices"
	"time"

	"agentsite/device"
)

// Point is what an expression needs to know of a point. An empty Kind means that the point's
// description is not known yet: its type and unit are not checked, and its value is unknown.
type Point struct {
	Kind   device.Kind
	Unit   string   // a UCUM code; "" where there is none
	Values []string // of a state that is a text; a state without Values is a bool
}

// WindowFunc is what a window says of the readings in it.
type WindowFunc uint8

const (
	Mean WindowFunc = iota
	Least
	Greatest
	Change // the last value minus the first
	Count  // of events, of turns to on, or of readings; a number without a unit
)

var windowNames = [...]string{"mean", "least", "greatest", "change", "count"}

// String returns the function's name in the language.
func (f WindowFunc) String() string { return windowNames[f] }

// Window is a function of a point's good values during the last Length, which is 1s to 24h. A
// value counts for as long as the point had it.
type Window struct {
	Point  int // the index in Program.Points
	Func   WindowFunc
	Length time.Duration
}

// Uses are the points and the windows that conditions use which are evaluated over the same readings,
// each once, in the order of their first use.
type Uses struct {
	Points  []string // addresses
	Windows []Window
	// Holiday reports whether the day of a local time is a holiday; nil where there is no list of them.
	Holiday func(t time.Time) bool
}

// Add returns the index of a point, which is added if it is new.
func (u *Uses) Add(address string) int {
	if i := slices.Index(u.Points, address); i >= 0 {
		return i
	}
	u.Points = append(u.Points, address)
	return len(u.Points) - 1
}

// Env answers what an evaluation asks. Its methods do not block. It is asked by one goroutine
// at a time; its answers do not change during an evaluation. Indices are those of
// Program.Points and Program.Windows.
type Env interface {
	// Reading returns the last reading of a point and its monotonic age. known means that its
	// quality is good. A reading that is stale or faulty has known false and its age; a point
	// that was never read has known false and a negative age.
	Reading(point int) (v device.Value, age time.Duration, known bool)
	// Window returns a window's value, in the unit of its point.
	Window(i int) (n float64, known bool)
	// Clock returns the local wall time; known is false while the clock is not set.
	Clock() (t time.Time, known bool)
	// Sun returns sunrise and sunset of the local day of Clock, which can be on the dates beside it.
	// Where the sun is always down that day, it set long ago and rises in a long time; where it is
	// always up, the reverse. known is false where the site's position is not configured.
	Sun() (rise, set time.Time, known bool)
}

// Truth is the result of an evaluation; the zero Truth is Unknown.
type Truth int8

const (
	Unknown Truth = iota
	False
	True
)

func (t Truth) String() string { return [...]string{"unknown", "false", "true"}[t] }

// Program is a compiled condition or formula. It is immutable and safe for concurrent use.
type Program struct {
	text      string
	root      *node
	uses      *Uses
	usesClock bool
	usesSun   bool
}

// Points returns the addresses of the points of its Uses.
func (p *Program) Points() []string { return slices.Clone(p.uses.Points) }

// Windows returns the windows of its Uses.
func (p *Program) Windows() []Window { return slices.Clone(p.uses.Windows) }

// UsesClock reports whether the time of day, the date, sunrise or sunset is used.
func (p *Program) UsesClock() bool { return p.usesClock }

// UsesSun reports whether sunrise or sunset is used.
func (p *Program) UsesSun() bool { return p.usesSun }

// String returns the source text.
func (p *Program) String() string { return p.text }

// Sense says how results depend on the readings of a point.
type Sense struct {
	Time   bool      // by when they were made: each reading counts
	Age    bool      // by the age of the last one: a repeated value counts, too
	Value  bool      // by what they are: each other value counts
	Bounds []float64 // else by where a number is among these, and by any other value that is no number
}

// Sense returns how results depend on the readings of a point, beside whether one is known.
func (p *Program) Sense(point int) Sense {
	var s Sense
	p.sense(p.root, int32(point), &s)
	return s
}

func (p *Program) sense(n *node, point int32, s *Sense) {
	if n == nil {
		return
	}
	switch {
	case n.op == opPoint && n.index == point:
		s.Value = true
	case n.op == opAge && n.index == point:
		s.Time, s.Age = true, true
	case n.op == opWindow && p.uses.Windows[n.index].Point == int(point):
		s.Time, s.Age = true, s.Age || p.uses.Windows[n.index].Func == Count
	case n.op >= opEqual && n.op <= opBetween && n.a.op == opPoint && n.b.op == opConst && (n.c == nil || n.c.op == opConst):
		if n.a.index != point {
			return
		}
		if s.Bounds = append(s.Bounds, n.b.val.Number()); n.c != nil {
			s.Bounds = append(s.Bounds, n.c.val.Number())
		}
		return
	}
	for _, child := range [...]*node{n.a, n.b, n.c} {
		p.sense(child, point, s)
	}
}

// Steady reports whether the result changes by time alone only when Eval says exactly, or by a
// window: the time of day is not used, nor an age otherwise than compared with a constant.
func (p *Program) Steady() bool { return !p.usesClock && p.root.steady() }

func (n *node) steady() bool {
	return n == nil || n.wait != waitSecond && n.a.steady() && n.b.steady() && n.c.steady()
}

// minNext bounds how often a caller evaluates because time passes.
const minNext = 10 * time.Millisecond

// Eval evaluates the condition. It allocates nothing and evaluates each node at most once.
//
// next is after how long the result may change although no reading comes, at least 10ms; 0 if
// only readings can change it. It is exact for an age or the time of day that is compared with
// constants or the sun (or earlier: at midnight, and where the time zone's offset changes), 1s
// where an age or the time of day is a part of arithmetic, a 60th of a window's length, and 1m
// while the clock is not set. A change of a reading's quality, and a step of the clock, count as
// a reading: the caller then evaluates again.
func (p *Program) Eval(env Env) (result Truth, next time.Duration) {
	e := evaluation{env: env, uses: p.uses}
	v := e.eval(p.root)
	if e.next > 0 {
		next = max(e.next, minNext)
	}
	switch {
	case v.Type() != device.TypeBool:
		return Unknown, next
	case v.Bool():
		return True, next
	}
	return False, next
}

// Cause returns why the result is unknown: the address of the first point that decided it, "the
// time of day", "sunrise", "sunset", "a division by zero" or "a number out of range". It
// returns "" if the result is known. It may allocate.
func (p *Program) Cause(env Env) string {
	e := evaluation{env: env, uses: p.uses}
	return e.cause(p, p.root)
}

// Decides returns the indices of the points on which a known result depends as it is: of an "and" that is
// false the first part that is false, of an "or" that is true the first that is true. It may allocate.
func (p *Program) Decides(env Env) (points []int) {
	e := evaluation{env: env, uses: p.uses}
	e.decides(p.root, func(point int) {
		if !slices.Contains(points, point) {
			points = append(points, point)
		}
	})
	return points
}

func (e *evaluation) decides(n *node, found func(point int)) {
	if n == nil {
		return
	}
	switch n.op {
	case opPoint, opAge, opKnown:
		found(int(n.index))
	case opWindow:
		found(e.uses.Windows[n.index].Point)
	case opAnd, opOr:
		if v := e.eval(n); v == device.Bool(n.op == opOr) {
			if e.eval(n.a) == v {
				e.decides(n.a, found)
			} else {
				e.decides(n.b, found)
			}
			return
		}
	}
	for _, child := range [...]*node{n.a, n.b, n.c} {
		e.decides(child, found)
	}
}

func (e *evaluation) cause(p *Program, n *node) string {
	if n == nil || !e.eval(n).IsZero() {
		return ""
	}
	for _, child := range [...]*node{n.a, n.b, n.c} {
		if c := e.cause(p, child); c != "" {
			return c
		}
	}
	switch n.op {
	case opPoint, opAge:
		return p.uses.Points[n.index]
	case opWindow:
		return p.uses.Points[p.uses.Windows[n.index].Point]
	case opNow, opWeekday, opSunrise, opSunset, opMonth, opDate, opDay, opHoliday:
		switch {
		case n.op == opSunrise && e.loadClock():
			return "sunrise"
		case n.op == opSunset && e.loadClock():
			return "sunset"
		}
		return "the time of day"
	case opDivide:
		if e.eval(n.b).Number() == 0 {
			return "a division by zero"
		}
	}
	return "a number out of range"
}
