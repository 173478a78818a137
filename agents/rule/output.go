package rule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

const (
	// leaseTime is the longest lease that a rule asks for. It renews at two thirds, so that a
	// rule that is not run any more lets go within it.
	leaseTime = 5 * time.Minute
	// A refused move is asked for again after a time that doubles from the one to the other,
	// and at once when the output's limits have come to permit it.
	retryMin, retryMax = 5 * time.Second, time.Minute
	// An output whose effect failed is asked for again after a time that doubles from the one to the other, until
	// the effect is confirmed: a pump does not run dry for five seconds, again and again.
	effectMin, effectMax = time.Minute, time.Hour
	// restSlack is how much later than the guard says an output is asked for: times are told to
	// the millisecond.
	restSlack = 50 * time.Millisecond
	// othersTime is the longest time that a rule yields to a caller other than an owner: one call
	// of an agent or a grantee must not end frost protection for the night.
	othersTime = 10 * time.Minute
	// sameEnd is how much longer a lease has to become for a renewal to have had an effect.
	sameEnd = time.Second
	// onceFor is how long a step without for: is asked for again where it is refused. What was
	// started is not to happen hours later.
	onceFor = time.Minute
)

// target is an output with the value that a rule gives it.
type target struct {
	key     string // of its step in the rule
	address string
	value   device.Value
	length  time.Duration // of a step's for:; 0 leaves it to the output
	delay   time.Duration // of the waits before its step
	longest time.Duration // of one lease
	formula *formula      // that gives the value; nil for none
}

// output is what a rule does with one output.
type output struct {
	*target
	index int

	until  time.Duration // when it is not wanted any more; 0 for as long as the rule is active
	key    string
	wanted bool
	// startAt is the time at which the step of the output begins after a wait, 0 for none. startKey is
	// its key then.
	startAt  time.Duration
	startKey string
	once     bool // one lease, whose length the output chooses
	// replay: a move with a key was accepted, and the output was not seen to be held since. If
	// it is not, the answer was that of an earlier run, whose lease has ended.
	replay  bool
	earlier bool // replay, also of a move without for:, where the answer's state does not show that it is new

	held    bool
	doubt   bool          // it is not held, and lease does not say why yet
	end     time.Duration // of the lease
	renewAt time.Duration
	done    time.Duration // when the last move was accepted: what was seen before counts less

	tryAt   time.Duration
	backOff time.Duration
	refused string // why the last move was refused; "" if it was not
	// noEffect is the time for which it was left alone after its effect failed last, noEffectTo until when.
	noEffect, noEffectTo time.Duration
	fault                device.FaultKind

	lease     Lease         // as told last
	told      time.Duration // when that was seen
	state     int64         // the latest that was told or answered, as agents.OutputDetail has it
	runs      []int32       // of guards that it was of before
	restsTo   time.Duration // when its limits permit a move
	yieldedAt time.Duration
	yielded   bool // somebody took the output over, or released it
	wasFalse  bool // the condition was, since then
	toOthers  bool // to a caller other than an owner
	plain     bool // moves are asked for without a length: a permission has a shorter one
}

// maxRuns is how many former runs of a guard are known; a state of an earlier one is told no more.
const maxRuns = 8

// outdated reports whether a state is older than the latest one known, which it becomes otherwise. A
// guard that is started again has another run, and no state of its former run is told as a new one.
func (o *output) outdated(state int64) bool {
	run, of := int32(state>>32), int32(o.state>>32)
	switch {
	case state == 0:
		return false
	case run == of && state < o.state, slices.Contains(o.runs, run):
		return true
	case run != of && o.state != 0:
		o.runs = append(o.runs[max(0, len(o.runs)-maxRuns+1):], of)
	}
	o.state = state
	return false
}

// behind reports whether the lease as told last is older than the last answer, or may be.
func (o *output) behind() bool {
	if o.lease.State == 0 || o.state == 0 {
		return o.told < o.done
	}
	return o.lease.State != o.state
}

// want begins to want the output, for a length or until the rule ends that.
func (o *output) want(m *Machine, length time.Duration, key string) {
	if key != "" { // each output's move is a call of its own
		key += "/" + strconv.Itoa(o.index)
	}
	o.wanted, o.key, o.until, o.once = true, key, 0, false
	switch {
	case length > 0:
		o.until = m.now.Now + length
	case m.programs[whenProgram] == nil:
		o.once, o.until = true, m.now.Now+onceFor
	}
	o.tryAt, o.backOff = m.now.Now, 0
	if o.held { // an edge that comes again renews
		o.renewAt = m.now.Now
	}
}

// yield leaves the output to somebody else.
func (o *output) yield(m *Machine) {
	o.held, o.doubt = false, false
	o.yielded, o.wasFalse, o.yieldedAt, o.toOthers = true, false, m.now.Now, o.lease.Others
}

// patience is for how long a rule may yield at most, once the other has let go; 0 for until its
// condition was false.
func (o *output) patience(m *Machine) time.Duration {
	if o.toOthers && (m.resume == 0 || m.resume > othersTime) {
		return othersTime
	}
	return m.resume
}

// resume takes the output up again where who took it over has ended that: once the condition
// was false, or after the time that the rule names.
func (o *output) resume(m *Machine, isFalse bool) {
	if !o.yielded {
		return
	}
	o.wasFalse = o.wasFalse || isFalse
	patience := o.patience(m)
	long := patience > 0 && m.now.Now-o.yieldedAt >= patience
	if o.lease.Holder == "" && (o.wasFalse || long) {
		o.yielded, o.tryAt, o.backOff = false, m.now.Now, 0
	}
}

// step appends what is to be done with the output now to m.acts.
func (o *output) step(m *Machine, due *sooner) {
	now := m.now.Now
	if o.wanted && o.until > 0 && now >= o.until {
		o.wanted = false
	}
	if patience := o.patience(m); o.yielded && patience > 0 {
		if left := patience - (now - o.yieldedAt); left > 0 {
			due.in(left)
		}
	}
	changed := o.follow(m, due)
	rests := o.formula != nil && o.formula.rests
	switch {
	case o.held && (!o.wanted || rests):
		m.acts = append(m.acts, Act{Output: o.index, Held: true})
	case !o.wanted || o.yielded || rests:
	case o.held && (changed || now >= o.renewAt):
		m.acts = append(m.acts, Act{Output: o.index, Value: o.value, For: o.ask(now), Held: true})
	case o.held:
		due.in(o.renewAt - now)
	case now >= max(o.tryAt, o.noEffectTo):
		m.acts = append(m.acts, Act{Output: o.index, Value: o.value, For: o.ask(now), Key: o.key})
	default:
		due.in(max(o.tryAt, o.noEffectTo) - now)
	}
	if o.wanted && o.until > 0 {
		due.in(o.until - now)
	}
}

// ask returns the length of lease to ask for.
func (o *output) ask(now time.Duration) time.Duration {
	length := leaseTime
	if o.longest > 0 {
		length = min(length, o.longest)
	}
	if o.until > 0 {
		length = min(length, max(o.until-now, time.Second))
	}
	if o.plain || o.once {
		return 0
	}
	return length
}

// Done tells what came of an act: how long the output is held now and its state then, or the fault.
func (m *Machine) Done(now Moment, a Act, left time.Duration, state int64, err error) {
	m.now, m.touched = now, true
	o := &m.outputs[a.Output]
	fresh := state == 0 && o.lease.Holder == m.self
	if err == nil && (a.Key == "" || o.state == 0 || state>>32 == o.state>>32) { // else an answer of an earlier run
		fresh = fresh || o.state != 0 && state >= o.state
		o.outdated(state)
	}
	o.formula.moved(o, now.Now, a, err != nil)
	switch {
	case a.Value.IsZero():
		o.held, o.refused = false, ""
	case err == nil:
		o.accept(now.Now, a, left, fresh)
	case a.Held && device.AsFault(err).Kind == device.Expired:
		o.held = false
		o.leaseEnded(m)
	default:
		o.refuse(m, a, err)
	}
}

func (o *output) accept(now time.Duration, a Act, left time.Duration, fresh bool) {
	before, done := o.end, o.done
	o.replay, o.doubt = a.Key != "" && !o.once, false
	o.earlier = a.Key != "" && left > 0 && !fresh
	o.held, o.refused, o.backOff, o.end, o.done, o.key = true, "", 0, now+left, now, ""
	o.renewAt = now + max(left*2/3, time.Second)
	if a.Held && o.end < before+sameEnd && now >= done+2*sameEnd { // its limits end it then
		o.renewAt = o.end + sameEnd
	}
	if o.once {
		o.wanted, o.held = false, false
	}
}

func (o *output) refuse(m *Machine, a Act, err error) {
	f := device.AsFault(err)
	o.refused, o.fault = f.Msg, f.Kind
	if o.once && (f.Kind == device.UnknownOutcome || f.Kind == device.Offline) {
		o.wanted = false // it may have moved, and is not to move twice
		return
	}
	if a.Held && m.now.Now < o.end { // it is held still, and nothing is known of another renewal
		o.renewAt = min(m.now.Now+retryMin, o.end+sameEnd)
	} else {
		o.held = false
	}
	if (f.Kind == device.Denied || f.Kind == device.Invalid) && !o.plain && a.For > 0 {
		o.plain, o.renewAt = true, m.now.Now // at once, without a length
		return
	}
	if f.Kind == device.Busy && o.lease.Holder != "" && !isRule(o.lease.Holder) && o.lease.Holder != m.self {
		o.yield(m)
	}
	o.backOff = min(max(2*o.backOff, retryMin), retryMax)
	o.tryAt = max(m.now.Now+o.backOff, o.restsTo)
}

// isRule reports whether a holder is another rule, which wins by its priority and not because
// a person wants to have it so.
func isRule(holder string) bool { return strings.HasPrefix(holder, KindName+":") }

// Output tells how output i of Outputs is, as it was seen at a time. A state that is older than the
// one known is ignored. Without an order, what was seen before the last act was answered may be older.
func (m *Machine) Output(now Moment, seen time.Duration, i int, l Lease) {
	m.now = now
	o := &m.outputs[i]
	if o.outdated(l.State) {
		return
	}
	m.touched = true
	permitted := o.lease.Rest > 0 && l.Rest <= 0 || !o.lease.Known && l.Known || o.lease.Holder != "" && l.Holder == ""
	o.lease, o.told, o.restsTo = l, seen, 0
	if l.Effect == "" || l.Effect == agents.EffectConfirmed { // also after an owner's reset
		o.noEffect, o.noEffectTo = 0, 0
	}
	if l.Rest > 0 {
		o.restsTo = now.Now + l.Rest + restSlack
	}
	switch {
	case o.held:
	case l.Rest > 0: // until then it is refused
		o.tryAt = o.restsTo
	case permitted:
		o.tryAt = now.Now
	}
	if o.yielded && o.toOthers && l.Holder != "" && l.Holder != m.self && !l.Others && !isRule(l.Holder) {
		o.yield(m) // to an owner now
	}
	if l.Holder == m.self {
		o.replay, o.earlier = false, false
	} else if (o.held || o.doubt) && !(l.State == 0 && seen < o.done) {
		o.held = false
		o.leaseEnded(m)
	}
}

// leaseEnded finds out how a lease ended that the rule did not end.
func (o *output) leaseEnded(m *Machine) {
	l := o.lease
	o.doubt = false
	switch {
	case o.replay:
		o.wanted, o.replay = false, false
		if m.endWaits() {
			m.skipped = o.address + madeBefore
		}
	case l.Holder == m.self || o.behind(): // that is not known yet
		o.doubt = true
		o.tryAt = m.now.Now + retryMin
	case l.Holder != "" && !isRule(l.Holder), l.Holder == "" && l.Why == "":
		o.yield(m)
	default: // a limit, a stop or a fault ended it
		o.backOff = 0
		o.tryAt = max(m.now.Now, o.restsTo)
		if l.Effect == agents.EffectFailed {
			o.noEffect = min(max(2*o.noEffect, effectMin), effectMax)
			o.noEffectTo = m.now.Now + o.noEffect
			o.refused = fmt.Sprintf("%s had not the effect that its owner expects, and is left alone for %v", o.address,
				device.FormatDuration(o.noEffect))
		}
	}
}
