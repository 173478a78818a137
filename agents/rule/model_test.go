package rule_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/agents/rule"
	"agentsite/agents/rule/expr"
	"agentsite/device"
)

// model says what a rule does, from all that its Machine was ever told. It keeps no state: each
// answer is found by looking back over the entries. cache has answers about a prefix of them,
// which later entries do not change.
type model struct {
	keys        ruleKeys
	when, until condition // or if:
	points      []string
	targets     []modelTarget
	entries     []entry
	cache       map[[3]int]int
}

type modelTarget struct {
	value           device.Value
	length, longest time.Duration
}

// entry is what the Machine was told, or a step; what is one of the types of sim.log.
type entry struct {
	rule.Moment
	what any
}

const questions = 7 // that memo is asked

// memo answers question q about output o and the entries before k.
func (m *model) memo(q, o, k int, answer func() int) int {
	key := [3]int{q, o, k}
	v, ok := m.cache[key]
	if !ok {
		v = answer()
		m.cache[key] = v
	}
	return v
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (m *model) step(k int) bool { _, ok := m.entries[k].what.([]rule.Act); return ok }

// back finds the last entry before k of which ok says so; -1 for none.
func (m *model) back(k int, ok func(e int) bool) int {
	for k--; k >= 0 && !ok(k); k-- {
	}
	return k
}

// truth is of the condition, or of until:, at step k.
func (m *model) truth(k int) expr.Truth {
	return expr.Truth(m.memo(0, 0, k, func() int { return int(m.when.eval(m, k)) }))
}

func (m *model) ends(k int) bool {
	if m.keys.Until == "" {
		return m.truth(k) != expr.True
	}
	return m.memo(1, 0, k, func() int { return flag(m.until.eval(m, k) != expr.False) }) == 1
}

// starts returns the steps up to k at which the rule began to want its outputs, and for each
// the step at which a level ended, or -1.
func (m *model) starts(k int) (all [][2]int) {
	if m.keys.When == "" {
		for s := 0; s <= k; s++ {
			if m.step(s) && m.memo(2, 0, s, func() int { return flag(m.fires(s) && (m.keys.If == "" || m.truth(s) == expr.True)) }) == 1 {
				all = append(all, [2]int{s, -1})
			}
		}
		return all
	}
	since, begun := -1, -1
	for s := 0; s <= k; s++ {
		if !m.step(s) {
			continue
		}
		if begun >= 0 && m.ends(s) {
			all, begun, since = append(all, [2]int{begun, s}), -1, -1
		}
		switch {
		case begun >= 0:
		case m.truth(s) != expr.True:
			since = -1
		default:
			if since < 0 {
				since = s
			}
			if m.entries[s].Now-m.entries[since].Now >= m.keys.For && (m.keys.Until == "" || !m.ends(s)) {
				begun = s
			}
		}
	}
	if begun >= 0 {
		all = append(all, [2]int{begun, -1})
	}
	return all
}

// fires reports whether on:, every: or at: starts the steps at step s.
func (m *model) fires(s int) bool {
	before := m.back(s, m.step)
	switch {
	case m.keys.Every > 0:
		first := slices.IndexFunc(m.entries, func(e entry) bool { _, ok := e.what.([]rule.Act); return ok })
		if before < 0 {
			return false
		}
		n := func(k int) time.Duration { return (m.entries[k].Now - m.entries[first].Now) / m.keys.Every }
		return n(s) > n(before)
	case m.keys.At != "":
		return m.occurrence(s) != ""
	}
	events, rises := m.events(m.keys.On, s), m.rises(m.keys.On, s)
	if m.keys.On == "a/door" {
		events = rises
	}
	return slices.ContainsFunc(events, func(e happened) bool { return e.entry > before })
}

// occurrence returns the key of the occurrence of */5 * * * * that runs at step s.
func (m *model) occurrence(s int) string {
	const every = 5 * time.Minute
	late := time.Minute
	if m.keys.Missed != "" {
		late = time.Hour
	}
	var ran, due time.Time
	sure, looked := false, time.Duration(-1) // when the clock was last seen not to be set
	for k := 0; k <= s; k++ {
		if !m.step(k) {
			continue
		}
		wall := m.entries[k].Wall
		if !m.entries[k].Sure {
			sure, looked = false, m.entries[k].Now
			continue
		}
		if ran.Sub(wall) >= 25*time.Hour {
			ran = time.Time{}
		}
		last := wall.Truncate(every)
		within := late
		if !sure && m.keys.Missed == "" {
			within = min(m.entries[k].Now-looked, late+time.Second)
		}
		runs := (sure && !wall.Before(due) || !sure && (m.keys.Missed != "" || looked >= 0)) && wall.Sub(last) <= within && last.After(ran)
		if runs {
			ran = last
			if k == s {
				return last.Format("2006-01-02T15:04")
			}
		}
		from := wall
		if ran.After(from) {
			from = ran
		}
		sure, due = true, from.Truncate(every).Add(every)
	}
	return ""
}

func (m *model) done(e, o int) (d simDone, ok bool) {
	d, ok = m.entries[e].what.(simDone)
	return d, ok && d.act.Output == o
}

func (m *model) lease(e, o int) (l simOutputTold, ok bool) {
	l, ok = m.entries[e].what.(simOutputTold)
	return l, ok && l.i == o
}

func (m *model) accepted(o, k int) int {
	if k == 0 {
		return -1
	}
	return m.memo(6, o, k, func() int {
		if d, ok := m.done(k-1, o); ok && d.err == nil && !d.act.Value.IsZero() {
			return k - 1
		}
		return m.accepted(o, k-1)
	})
}

// acceptedAt is the time of that, and until when the lease lasts.
func (m *model) acceptedAt(o, k int) (at, end time.Duration) {
	if a := m.accepted(o, k); a >= 0 {
		at = m.entries[a].Now
		end = at + m.entries[a].what.(simDone).left
	}
	return at, end
}

// told returns the last lease that the Machine was told of an output before step k.
func (m *model) told(o, k int) (l simOutputTold, at time.Duration) {
	if e := m.back(k, func(e int) bool { _, ok := m.lease(e, o); return ok }); e >= 0 {
		l, at = m.entries[e].what.(simOutputTold), m.entries[e].Now
	}
	return l, at
}

func (m *model) once(o int) bool { return m.keys.When == "" && m.targets[o].length == 0 }

func person(holder string) bool {
	return holder != "" && holder != selfID && !strings.HasPrefix(holder, "rule:")
}

// refused is the kind of fault with which entry e refused output o; "" for any other entry. A
// renewal of what is not held any more is no refusal but a loss.
func (m *model) refused(e, o int) device.FaultKind {
	if d, ok := m.done(e, o); ok && d.err != nil && !d.act.Value.IsZero() && !(d.act.Held && device.AsFault(d.err).Kind == device.Expired) {
		return device.AsFault(d.err).Kind
	}
	return ""
}

// plain reports whether entry e is the refusal after which no length is asked for any more.
func (m *model) plain(e, o int) bool {
	kind := m.refused(e, o)
	return (kind == device.Denied || kind == device.Invalid) && m.entries[e].what.(simDone).act.For > 0
}

func (m *model) held(o, k int) bool {
	return m.memo(3, o, k, func() int {
		a := m.accepted(o, k)
		if a < 0 || m.once(o) {
			return 0
		}
		at, end := m.acceptedAt(o, k)
		for e := a + 1; e < k; e++ {
			d, isDone := m.done(e, o)
			l, isLease := m.lease(e, o)
			switch {
			case isDone && m.refused(e, o) == "", isDone && (!d.act.Held || m.entries[e].Now >= end || m.pushedOut(e, o)),
				isLease && l.l.Holder != selfID && l.seen >= at:
				return 0
			}
		}
		return 1
	}) == 1
}

// pushedOut reports whether entry e refuses because of a person, to whom the rule yields.
func (m *model) pushedOut(e, o int) bool {
	l, _ := m.told(o, e)
	return m.refused(e, o) == device.Busy && person(l.l.Holder)
}

// The ways in which a lease is lost.
const (
	notLost = iota
	inDoubt
	toYield
	toRetry
	givenUp
)

// loss says how entry e lost a lease, or says more of how it was lost.
func (m *model) loss(e, o int) int {
	return m.memo(4, o, e, func() int {
		at, _ := m.acceptedAt(o, e)
		d, isDone := m.done(e, o)
		l, isLease := m.lease(e, o)
		switch {
		case isDone && d.act.Held && !d.act.Value.IsZero() && d.err != nil && m.refused(e, o) == "":
			l, _ = m.told(o, e)
		case isLease && l.l.Holder != selfID && l.seen >= at && (m.held(o, e) || m.doubt(o, e)):
		default:
			return notLost
		}
		a := m.accepted(o, e)
		switch confirmed := slices.ContainsFunc(m.entries[a+1:e+1], func(x entry) bool {
			l, ok := x.what.(simOutputTold)
			return ok && l.i == o && l.l.Holder == selfID
		}); {
		case m.entries[a].what.(simDone).act.Key != "" && !confirmed && m.held(o, e):
			return givenUp
		case l.l.Holder == selfID || l.seen < at:
			return inDoubt
		case person(l.l.Holder) || l.l.Holder == "" && l.l.Why == "":
			return toYield
		}
		return toRetry
	})
}

func (m *model) doubt(o, k int) bool {
	return m.memo(5, o, k, func() int {
		e := m.back(k, func(e int) bool { return e == m.accepted(o, k) || m.loss(e, o) != notLost || m.pushedOut(e, o) })
		return flag(e >= 0 && m.loss(e, o) == inDoubt)
	}) == 1
}

// yields reports whether output o is left to somebody else at step k, and when it was taken up
// again, -1 for never.
func (m *model) yields(o, k int) (is bool, resumed int) {
	y := m.back(k, func(e int) bool { return m.loss(e, o) == toYield || m.pushedOut(e, o) })
	if y < 0 {
		return false, -1
	}
	starts, wasFalse := m.starts(k), false
	for s := y + 1; s <= k; s++ {
		if !m.step(s) {
			continue
		}
		if m.keys.When == "" {
			if slices.ContainsFunc(starts, func(i [2]int) bool { return i[0] == s }) {
				return false, s
			}
			continue
		}
		active := slices.ContainsFunc(starts, func(i [2]int) bool { return i[0] <= s && (i[1] < 0 || s < i[1]) })
		wasFalse = wasFalse || m.truth(s) == expr.False && !active
		long := m.keys.Resume > 0 && m.entries[s].Now-m.entries[y].Now >= m.keys.Resume
		if l, _ := m.told(o, s); l.l.Holder == "" && (wasFalse || long) {
			return false, s
		}
	}
	return true, -1
}

// restUntil returns until when an output rests as far as was told before k.
func (m *model) restUntil(o, k int) time.Duration {
	if l, at := m.told(o, k); l.l.Rest > 0 {
		return at + l.l.Rest + 50*time.Millisecond
	}
	return 0
}

// times returns from when a move is asked for at step k, and a renewal.
func (m *model) times(o, k, wanted, resumed int) (try, renew time.Duration) {
	tries, renewed := false, false
	for e := k; e >= 0 && !(tries && renewed); e-- {
		now := m.entries[e].Now
		setTry := func(t time.Duration) {
			if !tries {
				tries, try = true, t
			}
		}
		setRenew := func(t time.Duration) {
			if !renewed {
				renewed, renew = true, t
			}
		}
		if e == wanted || e == resumed {
			setTry(now)
			if e == wanted && m.held(o, e) {
				setRenew(now)
			}
		}
		if d, ok := m.done(e, o); ok && d.err == nil && !d.act.Value.IsZero() {
			at, end := m.acceptedAt(o, e)
			if d.act.Held && now+d.left < end+time.Second && now >= at+2*time.Second {
				setRenew(now + d.left + time.Second)
			} else {
				setRenew(now + max(d.left*2/3, time.Second))
			}
		}
		switch {
		case m.plain(e, o):
			setRenew(now)
		case m.refused(e, o) != "":
			n := 0
			for r := e; r >= 0 && !(r == wanted || r == resumed || m.loss(r, o) == toRetry) && r != m.accepted(o, e); r-- {
				if m.refused(r, o) != "" && !m.plain(r, o) {
					n++
				}
			}
			setTry(max(now+min(5*time.Second<<min(n-1, 10), time.Minute), m.restUntil(o, e)))
			_, end := m.acceptedAt(o, e)
			setRenew(min(now+5*time.Second, end+time.Second))
		}
		switch m.loss(e, o) {
		case inDoubt:
			setTry(now + 5*time.Second)
		case toRetry:
			setTry(max(now, m.restUntil(o, e+1)))
		}
		if l, ok := m.lease(e, o); ok && !m.held(o, e) {
			before, _ := m.told(o, e)
			switch {
			case l.l.Rest > 0:
				setTry(m.restUntil(o, e+1))
			case before.l.Rest > 0 || !before.l.Known && l.l.Known || before.l.Holder != "" && l.l.Holder == "":
				setTry(now)
			}
		}
	}
	return try, renew
}

// acts returns what the Machine is to move at step k.
func (m *model) acts(k int) (all []rule.Act) {
	starts, now := m.starts(k), m.entries[k].Now
	for o, t := range m.targets {
		start, wanted, until, key := -1, false, time.Duration(0), ""
		if n := len(starts); n > 0 {
			start = starts[n-1][0]
			answered := m.accepted(o, k) > start
			switch begun := m.entries[start].Now; {
			case m.keys.When != "":
				wanted = starts[n-1][1] < 0
			case t.length == 0:
				unknown := m.back(k, func(e int) bool { return e > start && m.refused(e, o) == device.Offline }) >= 0
				wanted = now < begun+time.Minute && !answered && !unknown // it may have moved
			default:
				until = begun + t.length
				wanted = now < until && m.back(k, func(e int) bool { return e > start && m.loss(e, o) == givenUp }) < 0
			}
			if m.keys.At != "" && !answered {
				if key = m.occurrence(start); key != "" {
					key += fmt.Sprint("/", o)
				}
			}
		}
		yields, resumed := m.yields(o, k)
		try, renew := m.times(o, k, start, resumed)
		length := 5 * time.Minute
		if t.longest > 0 {
			length = min(length, t.longest)
		}
		if until > 0 {
			length = min(length, max(until-now, time.Second))
		}
		if m.once(o) || m.back(k, func(e int) bool { return m.plain(e, o) }) >= 0 {
			length = 0
		}
		switch held := m.held(o, k); {
		case held && !wanted:
			all = append(all, rule.Act{Output: o, Held: true})
		case !wanted || yields:
		case held && now >= renew:
			all = append(all, rule.Act{Output: o, Value: t.value, For: length, Held: true})
		case !held && now >= try:
			all = append(all, rule.Act{Output: o, Value: t.value, For: length, Key: key})
		}
	}
	return all
}
