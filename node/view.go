package node

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// view is a site as one principal sees it: no name of anything else is in its answers or
// errors. It is not changed once it is made.
type view struct {
	*site
	part  bool     // something may not be seen
	seen  []uint16 // by the number of a point, the operations that may name it, as bits; nil where all may
	whole uint16   // the operations that may be asked and name no point
	read  int      // how many points may be read
	bare  bool     // devices without points are seen
	// offered is what offer returns. It is made when it is asked for: each rule has a view, and asks
	// for none.
	offered atomic.Pointer[agents.Offer]
	peers   func(string) bool // holders whose names are told: for an agent of this site, the others; nil for none
	// wish reports whether its principal, a program, may ask an owner for what an ask needs; nil for all others.
	wish func(agents.Ask) bool
	// others tells an agent of this site of OutputDetail.Others; nil for anybody else.
	others func(guard.Status) bool
}

// seenReleased is the bit of a release in view.seen. The others are those of operations.
const seenReleased = 1 << agents.OpOwn

// newView makes the view of a principal that sees the asks for which sees returns true; nil sees
// all.
func newView(s *site, sees func(agents.Ask) bool) *view {
	v := &view{site: s, part: sees != nil, whole: math.MaxUint16, bare: true}
	if v.part {
		v.bare, v.whole = sees(agents.Ask{Op: agents.OpStatus}), 0
		for _, op := range []agents.Operation{agents.OpPoints, agents.OpStatus, agents.OpStop} {
			if sees(agents.Ask{Op: op, Effect: op.Effect()}) {
				v.whole |= 1 << op
			}
		}
		v.seen = make([]uint16, len(s.points))
		named := make([]string, 1)
		for i, p := range s.points {
			named[0] = p.Address
			for _, op := range []agents.Operation{agents.OpPoints, agents.OpRead, agents.OpHistory, agents.OpMove, agents.OpShow, agents.OpCapture, agents.OpStatus} {
				ask := agents.Ask{Op: op, Points: named, Effect: agents.Reads, Value: moving(p.Kind)}
				if (op != agents.OpMove || p.Kind.Output()) && sees(ask) {
					v.seen[i] |= 1 << op
				}
			}
			if sees(agents.Ask{Op: agents.OpMove, Points: named, Effect: agents.Reads}) {
				v.seen[i] |= seenReleased
			}
		}
	}
	for _, p := range s.points {
		if v.mayRead(p.Address) {
			v.read++
		}
	}
	return v
}

// offer returns what may be asked. The same pointer is the same offer.
func (v *view) offer() *agents.Offer {
	if o := v.offered.Load(); o != nil {
		return o
	}
	o, outputs := &agents.Offer{Descriptions: make(map[string]string)}, false
	for _, p := range v.site.points {
		if v.reads(p.Address) && p.Description != "" {
			o.Descriptions[p.Address] = p.Description
		}
		add := func(list *[]string, fits bool, op agents.Operation) {
			if fits && v.sees(op, p.Address) {
				*list = append(*list, p.Address)
			}
		}
		outputs = outputs || p.Kind.Output()
		add(&o.Read, readable(p.Kind), agents.OpRead)
		add(&o.History, readable(p.Kind), agents.OpHistory)
		add(&o.Switch, p.Kind == device.KindSwitch, agents.OpMove)
		add(&o.Level, p.Kind == device.KindLevel, agents.OpMove)
		add(&o.Release, p.Kind.Output(), agents.OpOwn)
		add(&o.Show, p.Kind == device.KindText, agents.OpShow)
		add(&o.Capture, p.Kind == device.KindImage, agents.OpCapture)
	}
	o.Points, o.Status, o.Stop = v.may(agents.OpPoints), v.may(agents.OpStatus), outputs && v.may(agents.OpStop)
	if v.wish != nil {
		o.Wishes = v.wishes(o)
	}
	v.offered.CompareAndSwap(nil, o)
	return v.offered.Load()
}

// may reports whether an operation that names no point may be asked.
func (v *view) may(op agents.Operation) bool { return v.whole&(1<<op) != 0 }

// sees reports whether an operation may name a point; OpOwn stands for a release.
func (v *view) sees(op agents.Operation, address string) bool {
	if !v.part {
		return true
	}
	p := v.byName[address]
	return p != nil && v.seen[p.number]&(1<<op) != 0
}

// reads reports whether a point may be told of wherever it comes up.
func (v *view) reads(address string) bool { return v.sees(agents.OpRead, address) }

// mayRead reports whether a point is there that may be read.
func (v *view) mayRead(address string) bool {
	p := v.byName[address]
	return p != nil && readable(p.Kind) && v.reads(address)
}

// list returns the visible data of the points, and an error for outputs that have no policy, which are left out. It is
// not kept: each agent of the site has a view.
func (v *view) list() (list []agents.Point, err error) {
	list = make([]agents.Point, 0, v.read)
	for _, p := range v.points {
		if !v.sees(agents.OpPoints, p.Address) {
			continue
		}
		o := agents.Point{
			Point: p.Address, Kind: p.Kind, Name: p.Title, Unit: p.Unit,
			Description: p.Description, Device: p.model, Values: p.Values,
		}
		r := p.Range
		if p.Kind.Output() {
			policy, missing := v.Outputs.Policy(p.Address)
			if missing != nil {
				err = missing
				continue
			}
			r = policy.Range
			o.Safe, o.MaxSeconds, o.Limits, o.Confirm = policy.Safe, seconds(policy.Longest()), v.limits(policy), p.confirms()
		}
		if r != (device.Range{}) {
			o.Min, o.Max = &r.Min, &r.Max
		}
		list = append(list, o)
	}
	return list, err
}

// hidden stands for names that the caller may not see.
const hidden = "something that you may not see"

// named returns the holder of an output as far as p may know it. A principal with a partial view
// is told only its own name, and an agent of this site also those of other agents.
func (v *view) named(p agents.Principal, holder string) string {
	if !v.part || holder == "" || holder == p.ID || v.peers != nil && v.peers(holder) {
		return holder
	}
	return "somebody else"
}

// limits returns an output's limits without those on points that are not seen.
func (v *view) limits(p guard.Policy) string {
	if p.Requires.Point != "" && !v.reads(p.Requires.Point) {
		p.Requires = guard.Requirement{}
	}
	if p.Expects.Point != "" && !v.reads(p.Expects.Point) {
		p.Expects = guard.Expectation{}
	}
	for _, q := range v.points {
		if p.Interlock.Group == "" || !q.Kind.Output() {
			continue
		}
		other, _ := v.Outputs.Policy(q.Address) // the zero Policy where that is not known
		if other.Interlock.Group == p.Interlock.Group && !v.reads(q.Address) {
			p.Interlock = guard.Interlock{}
		}
	}
	return p.Limits()
}

// lacks returns the unmet requirement of an output, or that it waits for its owner.
func (v *view) lacks(s guard.Status) string {
	if s.Latched {
		return "its owner: it had not its effect, and waits for agentsite reset"
	}
	if s.Lacks == "" {
		return ""
	}
	if p, err := v.Outputs.Policy(s.Output); err != nil || !v.reads(p.Requires.Point) {
		return hidden
	}
	return s.Lacks
}

// redact returns an error as p may hear it: without names that p does not see. When a point that it does
// not see lets go of an interlock is told to agents of this site alone, which wait for that.
func (v *view) redact(p agents.Principal, err error) error {
	if err == nil || !v.part {
		return err
	}
	f := device.AsFault(err)
	if !slices.ContainsFunc(f.Names, func(name string) bool { return name != p.ID && !v.reads(name) }) {
		return err
	}
	out := &device.Fault{Kind: f.Kind, Msg: f.Short}
	if v.peers != nil || !v.hides(f) {
		out.After = f.After
	}
	return out
}

// hides reports whether a fault names a point that is not seen.
func (v *view) hides(f *device.Fault) bool {
	return slices.ContainsFunc(f.Names, func(name string) bool { return v.byName[name] != nil && !v.reads(name) })
}

// state returns the current state of an output as far as p may know it.
func (v *view) state(p agents.Principal, s guard.Status) agents.OutputState {
	return agents.OutputState{
		Goal: goal(s), Holder: v.named(p, s.Holder), Left: seconds(s.Left), Rest: seconds(s.Rest), Needs: v.lacks(s),
		Fault: s.Fault, Why: s.Why, Effect: string(s.Effect), Latched: s.Latched,
	}
}

// allowances returns what is left of an output's max_on and duty.
func (v *view) allowances(s guard.Status) (maxOn, duty agents.Allowance) {
	p, err := v.Outputs.Policy(s.Output)
	if err == nil && p.MaxOn != guard.Unlimited {
		maxOn = agents.Allowance{Left: seconds(s.MaxOn), Of: seconds(p.MaxOn)}
	}
	if err == nil && p.Duty.Window > 0 {
		duty = agents.Allowance{
			Left: seconds(s.Duty), Of: seconds(p.Duty.Away), Within: seconds(p.Duty.Window), Assumed: seconds(s.Assumed),
		}
	}
	return maxOn, duty
}

// output returns where an output is.
func (v *view) output(s guard.Status) agents.Output {
	policy, _ := v.Outputs.Policy(s.Output)
	return agents.Output{Output: s.Output, Value: s.Value, Goal: goal(s), Safe: policy.Safe, Left: seconds(s.Left), State: s.State, Effect: string(s.Effect)}
}

// proof returns where an output is, what was written to it, and what was measured since, with ages in whole
// seconds.
func (v *view) proof(s guard.Status) agents.Proof {
	set, measured := s.SetAge.Truncate(time.Second), s.MeasuredAge.Truncate(time.Second)
	return agents.Proof{
		Answer: v.output(s), Asked: s.Goal, Set: aged(s.Set, set), Measured: aged(s.Measured, measured),
	}
}

// aged is a value as it is told; none where nothing is known.
func aged(v device.Value, age time.Duration) agents.Aged {
	if v.IsZero() {
		return agents.Aged{}
	}
	return agents.Aged{Value: v, Age: seconds(age)}
}

// goal returns where a ramp leads; none where an output is that far or nobody knows where.
func goal(s guard.Status) device.Value {
	if s.Goal == s.Value || s.Value.IsZero() {
		return device.Value{}
	}
	return s.Goal
}

// idle reports whether an output is safe and nobody has asked for anything else.
func (v *view) idle(output string) bool {
	s, ok := v.Outputs.StatusOf(output)
	return ok && s.Safe && s.Holder == ""
}
