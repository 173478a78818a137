// Package trial runs rules over the past: the machine that runs a rule on the site and the
// machine that decides in the guard, in virtual time, over stored readings.
//
// The past does not react: a heater that a rule would have held does not warm the room of last
// week. A trial begins as the site does after a start: rules are idle, outputs are safe and rest.
// Moves of others do not happen in it, and permissions are not asked.
package trial

import (
	"context"
	"math/bits"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/device/guard"
)

const (
	// MaxRules bounds the rules of a trial, and MaxLength its time.
	MaxRules  = 64
	MaxLength = 366 * 24 * time.Hour
)

// Source has the past readings of a site.
type Source interface {
	// Readings calls yield for what is stored of points between two times, until it returns
	// false: the index of the point, when it was read, and its value; none where it could not be
	// read, or is not known from then on. every is 0 for a reading as it was, and else the length
	// of time of which it is the last. The readings of a point come in the order of time, and
	// those of different points nearly so. Of a point that is no measurement the first is what it
	// was at from.
	Readings(points []string, from, to time.Time, yield func(point int, at time.Time, v device.Value, every time.Duration) bool)
}

// Request asks a site for a trial.
type Request struct {
	Rules []string  `json:"rules,omitzero"` // by name; all when left out
	From  time.Time `json:"from"`
	To    time.Time `json:"to,omitzero"` // now when left out
}

// Rule is a rule to try.
type Rule struct {
	Name string
	Self string // its principal
	Rank int    // a rule of a higher rank takes an output over from one of a lower
	Rule *rule.Rule
}

// Options configure a trial.
type Options struct {
	Rules    []Rule
	Points   []agents.Point // all of the site
	Policies []guard.Policy // of all outputs
	// GoodFor returns for how long a reading of a point is good without another one; 0 for
	// ever.
	GoodFor  func(point string) time.Duration
	Source   Source
	From, To time.Time
	Location *time.Location // of the wall clock; nil for UTC
}

func (o *Options) check() error {
	switch length := o.To.Sub(o.From); {
	case len(o.Rules) == 0:
		return device.Faultf(device.Invalid, "there is no rule to try; a rule is an agent of kind: rule in the configuration")
	case len(o.Rules) > MaxRules:
		return device.Faultf(device.Invalid, "a trial takes at most %d rules at once; name fewer", MaxRules)
	case length <= 0:
		return device.Faultf(device.Invalid, "the end of the trial must be after its start")
	case length > MaxLength:
		return device.Faultf(device.Invalid, "a trial is over at most %v; ask for a shorter time", device.FormatDuration(MaxLength))
	}
	return nil
}

// Run tries rules. It blocks until it is done, or returns ctx's error. A rule with a mistake is
// left out, and its result says so. The error is a device.Fault that is Invalid where the caller
// can mend it.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	if o.Location == nil {
		o.Location = time.UTC
	}
	o.From = o.From.In(o.Location).Round(0)
	if o.GoodFor == nil {
		o.GoodFor = func(string) time.Duration { return 0 }
	}
	r := &run{Options: o, ctx: ctx, round: 1, from: o.From.Unix(), index: make(map[string]int)}
	r.outputs = newOutputs(r)
	for _, of := range o.Rules {
		r.addRule(of)
	}
	r.begin()
	o.Source.Readings(r.addresses(), o.From, o.To, r.take)
	if r.advance(o.To.Sub(o.From)); r.err != nil {
		return Result{}, r.err
	}
	return r.result(), nil
}

// run is one trial.
type run struct {
	Options
	ctx     context.Context
	err     error
	from    int64 // From in seconds
	turns   int
	now     time.Duration // since From
	round   int           // is increased with now, and after each pass over the rules
	wake    time.Duration // when there is something to do next, at the earliest
	points  []point
	index   map[string]int // of points, by address
	rules   []*driven
	outputs *outputs
	ready   uint64        // bit by rule: it has something to do now
	next    time.Duration // when one of the others has, at the earliest
	stale   time.Duration // when the next reading becomes stale, at the earliest
	telling time.Duration // when the guard is told of a summary again, at the earliest
	count   int           // readings
}

// never is later than any trial.
const never = time.Duration(1<<63 - 1)

// moment returns the present time, as far as the rule needs it.
func (r *run) moment(d *driven) rule.Moment {
	m := rule.Moment{Now: r.now, Sure: true}
	if d.machine.UsesClock() {
		m.Wall = r.From.Add(r.now)
	}
	return m
}

// addRule adds a rule with the points that it is told of.
func (r *run) addRule(of Rule) {
	d := &driven{Rule: of, bit: 1 << len(r.rules), ready: never, look: never}
	r.rules = append(r.rules, d)
	if used, err := of.Rule.Define(); err == nil {
		if i := slices.IndexFunc(used.Reads, func(address string) bool { return strings.Count(address, "/") > 1 }); i >= 0 {
			d.mistake = "it uses " + used.Reads[i] + ", and the past of other sites is not stored here"
			return
		}
	}
	m, err := of.Rule.NewMachine(of.Self, r.Points)
	if err != nil {
		d.mistake = err.Error()
		return
	}
	uses := make([]use, len(m.Outputs()))
	for i, address := range m.Outputs() {
		k, ok := r.outputs.index[address]
		if !ok {
			d.mistake = "nothing is known of the limits of " + address
			return
		}
		uses[i].output, r.outputs.all[k].tried = k, true
	}
	d.machine, d.uses = m, uses
	for i, address := range m.Points() {
		d.slots = append(d.slots, slot{point: r.point(address), input: i, output: -1})
	}
	for i, address := range m.Outputs() {
		p := r.point(address)
		k := d.slot(p)
		if k < 0 {
			k = len(d.slots)
			d.slots = append(d.slots, slot{point: p, input: -1})
		}
		d.slots[k].output = i
		r.outputs.all[uses[i].output].point = p
	}
	for k, s := range d.slots {
		r.points[s.point].watchers = append(r.points[s.point].watchers, watcher{d, k})
	}
}

// point returns the index of a point, which is added if it is new.
func (r *run) point(address string) int {
	if i, ok := r.index[address]; ok {
		return i
	}
	p := point{address: address, goodFor: r.GoodFor(address), staleAt: never, output: -1}
	for _, of := range r.Points {
		if of.Point == address {
			p.kind = of.Kind
		}
	}
	if i, ok := r.outputs.index[address]; ok {
		p.output = i
	}
	r.index[address] = len(r.points)
	r.points = append(r.points, p)
	return len(r.points) - 1
}

// begin makes the first moment: outputs are known to be safe, and each rule is told everything.
func (r *run) begin() {
	for i, p := range r.Policies {
		if p.Requires.Point == "" || !r.outputs.all[i].tried {
			continue
		}
		q := &r.points[r.point(p.Requires.Point)]
		if q.requiring == nil || p.Requires.MaxAge < q.maxAge {
			q.maxAge = p.Requires.MaxAge
		}
		q.requiring = append(q.requiring, i)
	}
	for i := range r.points {
		if p := &r.points[i]; p.output >= 0 && !r.outputs.all[p.output].tried {
			p.output = -1 // as it was
		}
	}
	r.stale, r.telling, r.next = never, never, never
	r.outputs.settle()
	for _, d := range r.rules {
		if d.machine == nil {
			continue
		}
		for k := range d.slots {
			r.markSlot(watcher{d, k})
		}
	}
	r.wake = 0
}

func (r *run) addresses() []string {
	all := make([]string, len(r.points))
	for i := range r.points {
		all[i] = r.points[i].address
	}
	return all
}

// since is t.Sub(r.From) without the limits of what a Duration holds, which take long to check.
func (r *run) since(t time.Time) time.Duration {
	return time.Duration(t.Unix()-r.from)*time.Second + time.Duration(t.Nanosecond()-r.From.Nanosecond())
}

// take takes a stored reading in. What comes with an earlier time than the one before was read
// then, and is told now.
func (r *run) take(point int, read time.Time, v device.Value, every time.Duration) bool {
	at := r.since(read)
	if at > r.now {
		r.advance(at)
	}
	r.count++
	p := &r.points[point]
	if p.output >= 0 {
		r.outputs.all[p.output].was.take(at, v, r.outputs.all[p.output].safe)
	} else {
		r.put(p, at, v, every)
	}
	return r.err == nil
}

// advance lets time pass, and does what is due before its end.
func (r *run) advance(to time.Duration) {
	for r.wake < to && r.err == nil {
		if r.turns++; r.turns%1024 == 0 {
			r.err = r.ctx.Err()
		}
		r.passTo(r.wake)
		r.turn()
	}
	r.passTo(to)
	if r.turns++; r.turns%1024 == 0 && r.err == nil {
		r.err = r.ctx.Err()
	}
}

// passTo advances the virtual time.
func (r *run) passTo(now time.Duration) {
	if now > r.now {
		r.now = now
		r.round++
	}
}

// turn does what is due now, and finds out what is due next.
func (r *run) turn() {
	for {
		if r.now >= r.stale {
			r.markStale()
		}
		if r.now >= r.telling {
			r.retell()
		}
		if r.outputs.next <= r.now {
			r.outputs.tick()
		}
		if r.next <= r.now {
			r.findReady()
		}
		if r.ready == 0 {
			break
		}
		for passed := uint64(0); r.ready&^passed != 0; { // those that come to be ready before it have the next turn
			i := bits.TrailingZeros64(r.ready &^ passed)
			passed = 2<<i - 1
			d := r.rules[i]
			r.ready &^= d.bit
			if d.dirty() && r.tellableAt(d) <= r.now {
				r.update(d)
			} else {
				r.step(d)
			}
		}
		r.round++
	}
	r.wake = min(r.stale, r.telling, r.outputs.next, r.next)
}

// readyAt notes when a rule has something to do, which may be before it was to have.
func (r *run) readyAt(d *driven, at time.Duration) {
	if d.ready = at; at <= r.now {
		r.ready |= d.bit
	} else {
		r.next = min(r.next, at)
	}
}

// findReady finds the rules that have something to do now.
func (r *run) findReady() {
	r.next = never
	for _, d := range r.rules {
		r.readyAt(d, d.ready)
	}
}
