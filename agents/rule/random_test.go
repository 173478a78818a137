package rule_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents/rule"
	"agentsite/agents/rule/expr"
	"agentsite/device"
)

// condition is a random condition, and what it is by the whole history of a model.
type condition struct {
	text   string
	eval   func(m *model, k int) expr.Truth
	window time.Duration // the shortest; 0 for none
}

// part is how exactly a condition with windows is known in time.
func (c condition) part() time.Duration {
	if c.window == 0 {
		return time.Hour
	}
	return c.window / 60
}

// happened is an event, or a state that became on: when, and the entry that told it.
type happened struct {
	at    time.Duration
	entry int
}

// tellings returns the entries before k that tell a point.
func (m *model) tellings(point string, k int) (all []int) {
	i := slices.Index(m.points, point)
	for e := range m.entries[:k] {
		if told, ok := m.entries[e].what.(simTold); ok && told.i == i {
			all = append(all, e)
		}
	}
	return all
}

func (m *model) reading(e int) (r rule.Reading, at time.Duration) {
	r = m.entries[e].what.(simTold).r
	return r, m.entries[e].Now - r.Age
}

// seen returns the events that are known before k, of which the first may be older than all
// that was told.
func (m *model) seen(point string, k int) (all []happened) {
	for _, e := range m.tellings(point, k) {
		if r, at := m.reading(e); !r.Value.IsZero() && (all == nil || at > all[len(all)-1].at+20*time.Millisecond) {
			all = append(all, happened{at, e})
		}
	}
	return all
}

// events returns those of them that came while the rule was told of the point.
func (m *model) events(point string, k int) []happened {
	all, told := m.seen(point, k), m.tellings(point, k)
	if all != nil && all[0].entry == told[0] {
		return all[1:]
	}
	return all
}

// rises returns when a state became on.
func (m *model) rises(point string, k int) (all []happened) {
	told := m.tellings(point, k)
	for i := 1; i < len(told); i++ {
		before, _ := m.reading(told[i-1])
		if r, at := m.reading(told[i]); before.Known && before.Value == off && r.Value == on {
			all = append(all, happened{at, told[i]})
		}
	}
	return all
}

// span is the time from from to to, in which a point had a value.
type span struct {
	from, to time.Duration
	value    float64
}

// spans returns what a/t was from a time on until step k.
func (m *model) spans(from time.Duration, k int) (all []span) {
	told := m.tellings("a/t", k)
	for i, e := range told {
		r, at := m.reading(e)
		end := m.entries[k].Now
		if i+1 < len(told) {
			next, nextAt := m.reading(told[i+1])
			if end = nextAt; next.Value.IsZero() {
				end = m.entries[told[i+1]].Now
			}
		}
		if r.Known && end >= from {
			all = append(all, span{max(at, from), end, r.Value.Number()})
		}
	}
	return all
}

// since is where a window begins at step k: at a multiple of a 60th of its length.
func (m *model) since(length time.Duration, k int) time.Duration {
	const origin = -24 * time.Hour
	part := length / 60
	return (m.entries[k].Now-origin)/part*part - 60*part + origin
}

func less(a, b float64, known bool) expr.Truth {
	switch {
	case !known:
		return expr.Unknown
	case a < b:
		return expr.True
	}
	return expr.False
}

// randomLeaf returns a condition without and, or and not.
func randomLeaf(r *rand.Rand) condition {
	n := float64(2 + r.IntN(6))
	length := []time.Duration{time.Minute, 10 * time.Minute}[r.IntN(2)]
	switch r.IntN(9) {
	case 0, 1, 2:
		return condition{fmt.Sprintf("a/t < %v Cel", n), func(m *model, k int) expr.Truth {
			told := m.tellings("a/t", k)
			if told == nil {
				return expr.Unknown
			}
			last, _ := m.reading(told[len(told)-1])
			return less(last.Value.Number(), n, last.Known)
		}, 0}
	case 3:
		return condition{"a/door is on", func(m *model, k int) expr.Truth {
			told := m.tellings("a/door", k)
			if told == nil {
				return expr.Unknown
			}
			last, _ := m.reading(told[len(told)-1])
			return less(-last.Value.Number(), 0, last.Known)
		}, 0}
	case 4:
		point := []string{"a/t", "a/button"}[r.IntN(2)]
		return condition{fmt.Sprintf("age(%s) < %v", point, device.FormatDuration(length)), func(m *model, k int) expr.Truth {
			var at []time.Duration
			if point == "a/button" {
				for _, e := range m.seen(point, k) {
					at = append(at, e.at)
				}
			} else {
				for _, e := range m.tellings(point, k) {
					if r, t := m.reading(e); !r.Value.IsZero() {
						at = append(at, t)
					}
				}
			}
			if at == nil {
				return expr.Unknown
			}
			return less(float64(m.entries[k].Now-at[len(at)-1]), float64(length), true)
		}, 0}
	case 5:
		return condition{"now between 6:00..18:00", func(m *model, k int) expr.Truth {
			h := m.entries[k].Wall.Hour()
			return less(0, float64(flag(h >= 6 && h < 18)), m.entries[k].Sure)
		}, 0}
	case 6:
		point := []string{"a/door", "a/button"}[r.IntN(2)]
		return condition{fmt.Sprintf("count(%s, %v) < 2", point, device.FormatDuration(length)), func(m *model, k int) expr.Truth {
			began, events := time.Duration(-1), m.events(point, k)
			if point == "a/door" {
				events = m.rises(point, k)
			}
			for _, e := range m.tellings(point, k) {
				if r, at := m.reading(e); r.Known {
					began = at
					break
				}
			}
			from, n := m.since(length, k), 0
			for _, e := range events {
				if e.at >= from {
					n++
				}
			}
			return less(float64(n), 2, began != -1 && m.entries[k].Now-began >= length)
		}, length}
	}
	f := []string{"mean", "least", "greatest", "change"}[r.IntN(4)]
	return condition{fmt.Sprintf("%s(a/t, %v) < %v Cel", f, device.FormatDuration(length), n), func(m *model, k int) expr.Truth {
		var first time.Duration = -1
		for _, e := range m.tellings("a/t", k) {
			if r, at := m.reading(e); r.Known {
				first = at
				break
			}
		}
		all := m.spans(m.since(length, k), k)
		if first == -1 || m.entries[k].Now-first < length || all == nil {
			return expr.Unknown
		}
		last := all[len(all)-1].value
		low, high, sum, time := last, last, 0.0, 0.0
		for _, s := range all {
			low, high = min(low, s.value), max(high, s.value)
			sum, time = sum+s.value*(s.to-s.from).Seconds(), time+(s.to-s.from).Seconds()
		}
		if time == 0 {
			sum, time = last, 1
		}
		return less(map[string]float64{"mean": sum / time, "least": low, "greatest": high, "change": last - all[0].value}[f], n, true)
	}, length}
}

// shorter returns the shorter of two windows, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func randomCondition(r *rand.Rand, depth int) condition {
	if depth == 0 || r.IntN(2) == 0 {
		return randomLeaf(r)
	}
	a, b := randomCondition(r, depth-1), randomCondition(r, depth-1)
	window := shorter(a.window, b.window)
	// The truth values are ordered false, unknown, true: and is the least, or the greatest.
	order := []expr.Truth{expr.False, expr.Unknown, expr.True}
	rank := func(t expr.Truth) int { return slices.Index(order, t) }
	switch r.IntN(3) {
	case 0:
		return condition{"not (" + a.text + ")", func(m *model, k int) expr.Truth { return order[2-rank(a.eval(m, k))] }, a.window}
	case 1:
		return condition{"(" + a.text + " and " + b.text + ")", func(m *model, k int) expr.Truth {
			return order[min(rank(a.eval(m, k)), rank(b.eval(m, k)))]
		}, window}
	}
	return condition{"(" + a.text + " or " + b.text + ")", func(m *model, k int) expr.Truth {
		return order[max(rank(a.eval(m, k)), rank(b.eval(m, k)))]
	}, window}
}

// randomRule returns a rule, its condition, and that of until:.
func randomRule(r *rand.Rand) (k ruleKeys, when, until condition) {
	when, until = randomCondition(r, 2), randomCondition(r, 1)
	if r.IntN(2) == 0 {
		k.When, k.Hold = when.text, map[string]device.Value{"a/heater": on}
		if r.IntN(3) == 0 {
			k.Hold["a/lamp"] = device.Number(40)
		}
		k.For = []time.Duration{0, 0, 5 * time.Second, 90 * time.Second}[r.IntN(4)]
		k.Resume = []time.Duration{0, 0, 3 * time.Minute}[r.IntN(3)]
		if r.IntN(2) == 0 {
			k.Until = until.text
			when.window = shorter(when.window, until.window)
		}
		return k, when, until
	}
	lengths := []time.Duration{0, 20 * time.Second, 7 * time.Minute}
	k.Do = doHeater(lengths[r.IntN(3)])
	if r.IntN(3) == 0 {
		k.Do = append(k.Do, rule.Step{Set: map[string]device.Value{"a/lamp": device.Number(40)}, For: lengths[r.IntN(3)]})
	}
	if r.IntN(2) == 0 {
		k.If = when.text
	}
	switch r.IntN(4) {
	case 0:
		k.Every = []time.Duration{time.Second, 30 * time.Second, 5 * time.Minute}[r.IntN(3)]
	case 1:
		k.At, k.Missed = "*/5 * * * *", []string{"", "run"}[r.IntN(2)]
	case 2:
		k.On = "a/button"
	case 3:
		k.On = "a/door"
	}
	return k, when, until
}

// random does something, and has the Machine step.
func (s *sim) random(r *rand.Rand, longest time.Duration) string {
	o := r.IntN(len(s.outputs))
	out := &s.outputs[o]
	before, seen, line := *out, s.now.Now-1, ""
	say := func(format string, args ...any) { line = fmt.Sprintf(format, args...) }
	switch r.IntN(16) {
	case 0, 1, 2:
		v := device.Number(r.Float64() * 9)
		if r.IntN(6) == 0 {
			v = device.Value{}
		}
		say("a/t %v", v)
		s.tell("a/t", v, 0)
	case 3:
		v := []device.Value{on, off, {}}[r.IntN(3)]
		say("a/door %v", v)
		s.tell("a/door", v, 0)
	case 4, 5:
		v, age := device.Text("pressed"), time.Duration(0)
		if r.IntN(8) == 0 {
			v = device.Value{}
		}
		say("a/button %v", v)
		s.tell("a/button", v, age)
		for range r.IntN(3) { // again, with an age that is rounded
			s.tell("a/button", v, time.Duration(r.Int64N(int64(19*time.Millisecond))))
		}
	case 6:
		out.refuse = []device.FaultKind{"", "", device.Busy, device.Denied, device.Unsafe, device.Offline}[r.IntN(6)]
		say("output %d refuses as %q", o, out.refuse)
	case 7:
		holder := []string{"ann", "rule:high", "somebody else"}[r.IntN(3)]
		out.holder, out.ended, out.end = holder, "", s.now.Now+time.Duration(1+r.Int64N(int64(3*time.Minute)))
		say("output %d is taken by %s until %v", o, holder, out.end-time.Second)
	case 8:
		out.holder, out.ended = "", []string{"", "everything was sent to safe"}[r.IntN(2)]
		say("output %d ended: %q", o, out.ended)
	case 9:
		out.rest, out.unread = s.now.Now+time.Duration(r.Int64N(int64(2*time.Minute))), r.IntN(2) == 0
		say("output %d rests until %v, unread: %v", o, out.rest-time.Second, out.unread)
	case 10:
		out.limit, out.longest = 0, 0
		if r.IntN(2) == 0 {
			out.limit = s.now.Now + time.Duration(1+r.Int64N(int64(10*time.Minute)))
		} else {
			out.longest = time.Duration(int64(2*time.Second) + r.Int64N(int64(2*time.Minute)))
		}
		say("output %d has limits until %v and of %v", o, out.limit, out.longest)
	case 11:
		s.now.Wall = s.now.Wall.Add(time.Duration(r.Int64N(int64(3*time.Hour)) - int64(90*time.Minute)))
		if s.now.Sure = r.IntN(4) > 0; r.IntN(8) == 0 {
			s.now.Wall = s.now.Wall.Add(-30 * time.Hour)
		}
		say("the clock: %v %v", s.now.Wall, s.now.Sure)
	case 12:
		s.late = r.IntN(3) == 0
		say("late: %v", s.late)
	default:
		d := time.Duration(r.Int64N(int64(min(longest, []time.Duration{time.Second, time.Minute, 10 * time.Minute}[r.IntN(3)]))))
		say("wait %v", d)
		s.pass(d, 0)
	}
	if !s.late || r.IntN(3) == 0 {
		for i := range s.outputs {
			age := time.Duration(0)
			if r.IntN(6) == 0 {
				age = time.Duration(r.Int64N(int64(10 * time.Second)))
			}
			if r.IntN(4) > 0 {
				s.tellOutput(i, age)
			}
		}
	}
	s.decide()
	if r.IntN(5) == 0 { // an update that was under way
		s.tellLease(o, before, seen)
		s.decide()
	}
	return line
}

// sleeps checks that nothing changes by time alone before the Machine wants to step: at some
// time before it, a step would move nothing, and find the conditions as they were. The value of
// a window may be late by a 60th of its length.
func (m *model) sleeps(r *rand.Rand, s *sim) {
	k := len(m.entries) - 1
	wait := 2 * time.Hour
	if s.due > 0 {
		wait = s.due - s.now.Now
	}
	if wait -= time.Millisecond; wait <= 0 { // it does not ask for less
		return
	}
	u := entry{s.now, []rule.Act{}}
	d := time.Duration(r.Int64N(int64(wait)))
	if r.IntN(2) == 0 {
		d = wait - 1
	}
	u.Now, u.Wall = u.Now+d, u.Wall.Add(d)
	defer func() {
		m.entries = m.entries[:k+1]
		for q := range questions {
			for o := range m.targets {
				delete(m.cache, [3]int{q, o, k + 1})
			}
		}
	}()
	m.entries = append(m.entries, u)
	acts := m.acts(k + 1)
	same := len(acts) == 0
	if m.keys.When != "" {
		same = same && m.truth(k) == m.truth(k+1) && slices.Equal(m.starts(k), m.starts(k+1))
	}
	if longest := 10 * time.Minute; !same && (m.when.window == 0 || d > longest/60) {
		s.t.Errorf("at %v the machine slept for %v, and after %v there was something to do: %+v", s.now.Now-time.Second, wait, d, acts)
	}
}

// TestModel compares a Machine with the model over random rules and what happens to them.
func TestModel(t *testing.T) {
	steps := 10_000
	if os.Getenv("SOAK") != "" {
		steps = 1_000_000
	}
	acts, start := 0, time.Now()
	for seed := uint64(1); steps > 0; seed++ {
		n, moved := runModel(t, seed)
		steps -= n
		acts += moved
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d acts, %v", acts, time.Since(start))
}

func runModel(t *testing.T, seed uint64) (steps, acts int) {
	r := rand.New(rand.NewPCG(seed, 0))
	m := &model{cache: make(map[[3]int]int)}
	m.keys, m.when, m.until = randomRule(r)
	s := newSim(t, m.keys)
	m.points = s.m.Points()
	for _, output := range s.m.Outputs() {
		target := modelTarget{value: m.keys.Hold[output]}
		if output == "a/lamp" {
			target.longest = 2 * time.Minute
		}
		for _, step := range m.keys.Do {
			if v, ok := step.Set[output]; ok {
				target.value, target.length = v, step.For
			}
		}
		m.targets = append(m.targets, target)
	}
	var script []string
	add := func(what any) { m.entries = append(m.entries, entry{s.now, what}) }
	s.log = func(what any) {
		got, step := what.([]rule.Act)
		if !step {
			add(what)
			return
		}
		got = slices.Clone(got)
		add(got)
		steps++
		acts += len(got)
		k := len(m.entries) - 1
		if want := m.acts(k); !slices.Equal(got, want) {
			t.Fatalf("seed %d, step %d at %v of %+v\n%s\ngot  %+v\nwant %+v", seed, steps, s.now.Now-time.Second, m.keys, strings.Join(script, "\n"), got, want)
		}
		for i, a := range got {
			if slices.ContainsFunc(got[:i], func(b rule.Act) bool { return a.Output == b.Output }) {
				t.Errorf("two acts on one output: %+v", got)
			}
		}
	}
	s.restart(m.keys) // which the model is told of
	s.decide()
	longest := 40 * m.when.part() // so that there are not too many steps
	if m.keys.Every > 0 {
		longest = min(longest, 40*m.keys.Every)
	}
	for range 60 {
		line := s.random(r, longest)
		script = append(script, fmt.Sprint(s.now.Now-time.Second, " ", line))
		if m.sleeps(r, s); t.Failed() {
			t.Fatalf("%+v\n%s", m.keys, strings.Join(script, "\n"))
		}
	}
	s.log, s.steps = nil, 0
	for i := range s.outputs { // a lease of two seconds takes thousands of renewals
		s.outputs[i].longest = 0
	}
	s.pass(time.Hour, 0)
	limit := 1500 + 2*int(time.Hour/m.when.part())
	if m.keys.Every > 0 {
		limit += 2 * int(time.Hour/m.keys.Every)
	}
	if s.steps > limit {
		t.Errorf("seed %d: %+v took %d steps in an hour, more than %d", seed, m.keys, s.steps, limit)
	}
	return steps, acts
}
