package trial

import (
	"time"

	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/device/guard"
)

// outputs are the site's outputs in a guard without hardware: what it decides is so at once.
type outputs struct {
	*run
	m         *guard.Machine
	all       []output // in the order of the policies
	requiring []int    // of all, those with a requirement
	index     map[string]int
	ranks     map[string]int // of rules, by principal
	names     map[string]string
	next      time.Duration // of a Tick
	moves     []Move
	more      int
}

// output is the last state of an output.
type output struct {
	address string
	safe    device.Value
	tried   bool // a rule of the trial moves it
	point   int  // its index in run.points; valid if tried
	value   device.Value
	valueAt time.Duration // since when it is that
	goal    device.Value
	holder  string

	since time.Duration // up to here its time is accounted
	would Use
	was   past
}

func newOutputs(r *run) *outputs {
	g := &outputs{run: r, m: guard.NewMachine(r.Policies, false), index: make(map[string]int), ranks: make(map[string]int), names: make(map[string]string), next: never}
	for i, p := range r.Policies {
		g.index[p.Output] = i
		if p.Requires.Point != "" {
			g.requiring = append(g.requiring, i)
		}
		g.all = append(g.all, output{address: p.Output, safe: p.Safe, goal: p.Safe})
	}
	for _, of := range r.Rules {
		g.ranks[of.Self], g.names[of.Self] = of.Rank, of.Name
	}
	return g
}

// tick is due at next.
func (g *outputs) tick() {
	g.m.Tick(g.now)
	g.settle()
	if g.next <= g.now { // it is so at once, or never
		g.next = g.now + time.Millisecond
	}
}

// settle has the hardware follow, and notes what that changed.
func (g *outputs) settle() {
	for i := range g.all {
		g.settleOne(i)
	}
	g.schedule()
}

// settleSome is settle after what concerns one output, or none but those with requirements, of
// which a look may tell something new each time.
func (g *outputs) settleSome(i int) {
	if i >= 0 {
		g.settleOne(i)
	}
	for _, k := range g.requiring {
		g.settleOne(k)
	}
	g.schedule()
}

func (g *outputs) settleOne(i int) {
	if v, pending := g.m.Pending(i); pending {
		g.m.Applied(g.now, i, v, nil)
	}
	if g.all[i].tried {
		g.observe(i)
	}
}

func (g *outputs) schedule() {
	g.next = never
	if at, ok := g.m.Next(); ok {
		g.next = at
	}
	g.wake = min(g.wake, g.next)
}

// observe notes what changed of an output, and has the rules told that move or read it.
func (g *outputs) observe(i int) {
	o := &g.all[i]
	s := g.m.Status(g.now, i)
	g.account(i)
	if s.Goal != o.goal {
		by := s.Holder
		if by == "" {
			by = o.holder
		}
		if s.Goal != o.safe {
			o.would.Moves++
			if u := g.useOf(by, i); u != nil {
				u.total.Moves++
			}
		}
		if len(g.moves) < maxMoves {
			g.moves = append(g.moves, Move{Time: g.From.Add(g.now), Output: o.address, Value: s.Goal, Rule: g.names[by], Cause: s.Why})
		} else {
			g.more++
		}
	}
	moved := s.Value != o.value
	if moved {
		o.value, o.valueAt = s.Value, g.now
	}
	o.goal, o.holder = s.Goal, s.Holder
	now := leaseOf(s, g.now)
	for _, w := range g.points[o.point].watchers {
		if moved || !w.rule.slots[w.slot].lease.same(now) {
			g.markSlot(w)
		}
	}
}

// account adds the time since the last look.
func (g *outputs) account(i int) {
	o := &g.all[i]
	if passed := (g.now - o.since).Seconds(); passed > 0 && !o.value.IsZero() && o.value != o.safe {
		o.would.Seconds += passed
		if u := g.useOf(o.holder, i); u != nil {
			u.total.Seconds += passed
		}
	}
	o.since = g.now
}

// useOf returns what a rule did with an output; nil for none.
func (g *outputs) useOf(holder string, output int) *use {
	if holder == "" {
		return nil
	}
	for _, d := range g.rules {
		if d.Self != holder {
			continue
		}
		for i := range d.uses {
			if d.uses[i].output == output {
				return &d.uses[i]
			}
		}
	}
	return nil
}

// move makes an act, as the site does. A refused one is counted.
func (g *outputs) move(d *driven, a rule.Act) (left time.Duration, err error) {
	u := &d.uses[a.Output]
	i := u.output
	due := g.next <= g.now
	g.m.Tick(g.now) // an expired lease must not block the move
	if a.Value.IsZero() {
		err = g.m.Renew(g.now, d.Self, g.all[i].address, g.all[i].safe, 0)
	} else if err = g.decide(d.Self, i, a); err != nil && device.AsFault(err).Kind != device.Expired {
		u.refuse(g.From.Add(g.now).UTC(), err)
	}
	if due {
		g.settle()
	} else {
		g.settleSome(i)
	}
	if err != nil {
		return 0, err
	}
	return millis(g.m.Status(g.now, i).Left), nil
}

// decide is the way of a move through node.Move to the guard.
func (g *outputs) decide(self string, i int, a rule.Act) error {
	s, name := g.m.Status(g.now, i), g.all[i].address
	if s.Holder == self && s.Goal == a.Value && a.Key == "" {
		if err := g.m.Renew(g.now, self, name, a.Value, a.For); err == nil || device.AsFault(err).Kind != device.Expired {
			return err
		}
	}
	if a.Held && (s.Holder != self || s.Goal == a.Value) {
		return device.Faultf(device.Expired, "%s is not held by the caller any more", name)
	}
	above := s.Holder != self && g.ranks[s.Holder] > 0 && g.ranks[self] > g.ranks[s.Holder]
	err := g.m.Move(g.now, self, name, a.Value, a.For)
	if err == nil || !above || device.AsFault(err).Kind != device.Busy {
		return err
	}
	return g.m.MoveOver(g.now, self, s.Holder, name, a.Value, a.For)
}

// lease is the state of an output that a rule was told, and the time.
type lease struct {
	holder, ended string
	lacks         string
	left, rest    time.Duration
	ramps         bool
	at            time.Duration
	told          bool
}

func (g *outputs) lease(i int) lease { return leaseOf(g.m.Status(g.now, i), g.now) }

func leaseOf(s guard.Status, now time.Duration) lease {
	return lease{holder: s.Holder, ended: s.Why, lacks: s.Lacks, left: s.Left, rest: s.Rest, ramps: s.Goal != s.Value, at: now, told: true}
}

// same reports whether a later state of the output is what was told, but for the time that went
// by.
func (l lease) same(now lease) bool {
	passed := now.at - l.at
	return l.told && l.holder == now.holder && l.ended == now.ended && l.lacks == now.lacks && l.ramps == now.ramps &&
		near(now.left, l.left-passed) && near(now.rest, l.rest-passed)
}

// near reports whether two lengths are the same as far as a watch tells.
func near(a, b time.Duration) bool {
	d := max(a, 0) - max(b, 0)
	return -time.Second <= d && d <= time.Second
}

// millis is a length as a site tells it: to the millisecond, and 0 for without limit.
func millis(d time.Duration) time.Duration {
	if d == guard.Unlimited {
		return 0
	}
	return d.Round(time.Millisecond)
}
