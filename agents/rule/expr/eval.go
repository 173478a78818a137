package expr

import (
	"math"
	"time"

	"agentsite/device"
)

type op uint8

const (
	opConst op = iota
	opPoint
	opAge
	opKnown
	opWindow
	opNow
	opWeekday
	opSunrise
	opSunset
	opMonth
	opDate // as every year has it
	opDay  // with the year
	opHoliday
	opNot
	opAnd
	opOr
	opAdd
	opSubtract
	opMultiply
	opDivide
	opMin
	opMax
	opAbs
	opEqual
	opNotEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opBetween // of numbers and lengths: both ends belong
	opDuring  // of times of day: the end does not belong
	opDays    // of weekdays, months and dates of every year: both ends belong
)

// wait says how the result of a comparison changes while time passes.
type wait uint8

const (
	waitNone   wait = iota
	waitAge         // a is an age, the others are constants
	waitNow         // a is the time of day, the others are constant until midnight
	waitDay         // it is constant until midnight
	waitSecond      // anything else that changes
)

// node is a part of a program: an operation on a, b and c.
type node struct {
	op      op
	wait    wait        // of a comparison
	want    device.Type // of a point: other readings are unknown, all of them if it is TypeNone
	wraps   bool        // the sum is a time of day
	index   int32       // of the point or the window
	a, b, c *node
	val     device.Value // of a constant; of a window its length
}

// evaluation is the state of one evaluation. Numbers are finite; lengths and times of day are
// in nanoseconds, weekdays are 0 (Monday) to 6,
// dates numbers that order. The zero Value is unknown.
type evaluation struct {
	env                  Env
	uses                 *Uses
	next                 time.Duration // 0: none
	hasClock, clockKnown bool
	night                bool // the sun is always down
	t                    time.Time
	now                  float64
}

// soon lowers next to d.
func (e *evaluation) soon(d time.Duration) {
	if e.next == 0 || d < e.next {
		e.next = d
	}
}

// loadClock asks for the time of day once, and reports whether it is known.
func (e *evaluation) loadClock() bool {
	if !e.hasClock {
		e.hasClock = true
		if e.t, e.clockKnown = e.env.Clock(); e.clockKnown {
			e.now = timeOfDay(e.t)
		}
	}
	return e.clockKnown
}

func timeOfDay(t time.Time) float64 {
	h, m, s := t.Clock()
	return float64(time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second + time.Duration(t.Nanosecond()))
}

func (e *evaluation) eval(n *node) device.Value {
	switch n.op {
	case opConst:
		return n.val
	case opPoint, opAge, opKnown:
		return e.reading(n)
	case opWindow:
		e.soon(time.Duration(n.val.Number()) / 60)
		if f, known := e.env.Window(int(n.index)); known && n.want != device.TypeNone {
			return finite(f)
		}
		return device.Value{}
	case opNow, opWeekday, opSunrise, opSunset, opMonth, opDate, opDay:
		return e.clock(n.op)
	case opHoliday:
		if e.await(n, device.Value{}, device.Value{}, device.Value{}); !e.loadClock() {
			return device.Value{}
		}
		return device.Bool(e.uses.Holiday(e.t))
	case opNot:
		v := e.eval(n.a)
		if v.IsZero() {
			return v
		}
		return device.Bool(!v.Bool())
	case opAnd, opOr:
		return e.logic(n)
	case opAdd, opSubtract, opMultiply, opDivide, opMin, opMax, opAbs:
		return e.arithmetic(n)
	}
	return e.compare(n)
}

func (e *evaluation) reading(n *node) device.Value {
	v, age, known := e.env.Reading(int(n.index))
	switch {
	case n.op == opKnown:
		return device.Bool(known)
	case n.op == opAge && age >= 0:
		return device.Number(float64(age))
	case n.op == opPoint && known && v.Type() == n.want && v.Finite():
		return v
	}
	return device.Value{}
}

func (e *evaluation) clock(o op) device.Value {
	if !e.loadClock() {
		return device.Value{}
	}
	switch o {
	case opNow:
		return device.Number(e.now)
	case opWeekday:
		return device.Number(float64((e.t.Weekday() + 6) % 7))
	case opMonth:
		return device.Number(float64(e.t.Month()))
	case opDate:
		_, month, day := e.t.Date()
		return device.Number(dayNumber(0, month, day))
	case opDay:
		return device.Number(dayNumber(e.t.Date()))
	}
	rise, set, known := e.env.Sun()
	if !known {
		return device.Value{}
	}
	e.night = set.Before(rise)
	if o == opSunset {
		rise = set
	}
	rise = rise.In(e.t.Location())
	return device.Number(float64(date(rise).Sub(date(e.t))) + timeOfDay(rise)) // of the day of now, or of one beside it
}

// date returns the date of t, as midnight in UTC.
func date(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// during returns the bounds of a time of the day as such. With one bound by a sun that is always down,
// its rise and its set are at noon.
func (e *evaluation) during(lo, hi float64) (float64, float64) {
	never := func(n float64) bool { return math.Abs(n) > 30*day }
	if never(lo) && never(hi) {
		return lo, hi
	}
	of := func(n float64) float64 {
		switch {
		case never(n) && e.night:
			return day / 2
		case never(n):
			return n
		}
		return math.Mod(math.Mod(n, day)+day, day)
	}
	return of(lo), of(hi)
}

// logic is Kleene's. What one operand decides does not depend on the other, so neither does next.
func (e *evaluation) logic(n *node) device.Value {
	decides := device.Bool(n.op == opOr)
	a := e.eval(n.a)
	if a == decides {
		return a
	}
	b := e.eval(n.b)
	if b == decides || !a.IsZero() {
		return b
	}
	return a
}

func (e *evaluation) arithmetic(n *node) device.Value {
	a := e.eval(n.a)
	b := a
	if n.b != nil {
		b = e.eval(n.b)
	}
	if a.IsZero() || b.IsZero() {
		return device.Value{}
	}
	x, y := a.Number(), b.Number()
	switch n.op {
	case opAdd:
		x += y
	case opSubtract:
		x -= y
	case opMultiply:
		x *= y
	case opDivide:
		x /= y // by zero it is not finite
	case opMin:
		x = min(x, y)
	case opMax:
		x = max(x, y)
	case opAbs:
		x = math.Abs(x)
	}
	if n.wraps {
		if x = math.Mod(x, day); x < 0 {
			x += day
		}
	}
	return finite(x)
}

func (e *evaluation) compare(n *node) device.Value {
	a, b := e.eval(n.a), e.eval(n.b)
	c := b
	if n.c != nil {
		c = e.eval(n.c)
	}
	if n.op == opDuring && !b.IsZero() && !c.IsZero() {
		lo, hi := e.during(b.Number(), c.Number())
		b, c = device.Number(lo), device.Number(hi)
	}
	e.await(n, a, b, c)
	if a.IsZero() || b.IsZero() || c.IsZero() {
		return device.Value{}
	}
	x, lo, hi := a.Number(), b.Number(), c.Number()
	var is bool
	switch n.op {
	case opEqual:
		is = a == b
	case opNotEqual:
		is = a != b
	case opLess:
		is = x < lo
	case opLessEqual:
		is = x <= lo
	case opGreater:
		is = x > lo
	case opGreaterEqual:
		is = x >= lo
	case opBetween:
		is = x >= lo && x <= hi
	case opDuring:
		is = x >= lo && x < hi || lo > hi && (x >= lo || x < hi)
	case opDays:
		is = x >= lo && x <= hi || lo > hi && (x >= lo || x <= hi)
	}
	return device.Bool(is)
}

// await lowers next to when a comparison of a with the bounds b and c may change.
func (e *evaluation) await(n *node, a, b, c device.Value) {
	switch n.wait {
	case waitAge:
		if !a.IsZero() {
			e.bounds(n, a, b, c)
		}
	case waitSecond:
		e.soon(time.Second)
	case waitNow, waitDay:
		if !e.loadClock() {
			e.soon(time.Minute)
			return
		}
		// The offset from UTC is constant until the zone's end, and so is the length of an hour.
		if _, end := e.t.ZoneBounds(); !end.IsZero() {
			e.soon(max(1, end.Sub(e.t)))
		}
		e.soon(time.Duration(day - e.now))
		if n.wait == waitNow {
			e.bounds(n, a, b, c)
		}
	}
}

// bounds lowers next to when a, which grows by a nanosecond each nanosecond, passes b or c.
func (e *evaluation) bounds(n *node, a, b, c device.Value) {
	for i, bound := range [...]device.Value{b, c} {
		if bound.IsZero() {
			continue
		}
		at := math.Ceil(bound.Number())
		if n.op == opLessEqual || n.op == opGreater || n.op == opBetween && i == 1 {
			at = math.Floor(bound.Number()) + 1 // the bound itself does not change the result
		}
		if d := at - a.Number(); d > 0 && d < math.MaxInt64 {
			e.soon(time.Duration(d))
		}
	}
}
