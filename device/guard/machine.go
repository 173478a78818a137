package guard

import (
	"fmt"
	"time"

	"agentsite/device"
)

// Time is the running time of the guard. It is monotonic: no decision depends on a wall
// clock.
type Time = time.Duration

// moment is the After of a refusal because of a change in progress.
const moment = time.Second

// Machine decides the target of every output. It is plain state: every method takes the
// present Time, which must not go backwards, and none does I/O, blocks or locks. The initial
// state of an output is unknown with the target safe, so that a new machine first has
// everything driven to safe.
type Machine struct {
	outputs []output
	index   map[string]int
	stopped bool            // the emergency stop is latched
	parked  bool            // the process is ending: no more moves
	last    int64           // number of the latest change of a lease that Status has reported
	latches map[string]bool // the outputs that wait for a reset since their effect failed; also those of other plans
}

// NewMachine returns a machine for the policies, which must be valid. stopped is true if the
// emergency stop is latched.
func NewMachine(policies []Policy, stopped bool) *Machine {
	m := &Machine{stopped: stopped, latches: make(map[string]bool)}
	m.Adopt(0, policies)
	return m
}

// Adopt replaces the outputs by those of these policies, which must be valid. An output with
// an unchanged policy keeps its state, with its lease and used limits. The state of any
// other is unknown, as after a start.
func (m *Machine) Adopt(now Time, policies []Policy) {
	before := *m
	m.outputs, m.index = nil, make(map[string]int, len(policies))
	var unknown []int
	for i, p := range policies {
		m.index[p.Output] = i
		if k, there := before.index[p.Output]; there && before.outputs[k].Policy == p && !before.outputs[k].retired {
			m.outputs = append(m.outputs, before.outputs[k])
		} else {
			o := newOutput(now, p)
			if there {
				o.ended = byPlan
			}
			m.remember(&o)
			m.outputs, unknown = append(m.outputs, o), append(unknown, i)
		}
	}
	for _, i := range unknown {
		m.releaseInterlocked(&m.outputs[i])
	}
}

// Retire returns an output to safe that the next Adopt removes, and refuses its moves.
func (m *Machine) Retire(name string) {
	if i, err := m.find(name); err == nil {
		m.outputs[i].retired = true
		m.outputs[i].toSafe(byPlan)
	}
}

// Move gives holder a lease on the output at value v for a time; zero means DefaultFor, or
// the nearest time that the policy allows. A renewal is a Move by the same holder. max_on
// and duty can end the lease earlier. A move to the safe value is a Release.
func (m *Machine) Move(now Time, holder, name string, v device.Value, length time.Duration) error {
	o, length, err := m.permit(now, holder, name, v, length)
	if err != nil {
		return err
	}
	if v == o.Safe {
		o.toSafe(byRelease)
		return nil
	}
	o.leave(now)
	if v != o.goal {
		o.changed = now
		if o.rate != nil {
			o.rate.use(now, bins)
		}
	}
	o.goal, o.holder = v, holder
	if o.Slew.PerSecond == 0 {
		o.want = v
	}
	o.step(now)
	left, end := o.left(now)
	if length < left {
		left, end = length, byExpiry
	}
	o.until, o.ends, o.ended = add(now, left), end, byNobody
	m.await(now, o)
	return nil
}

// Renew is Move for the holder of the output, at the current value or to safe, which ends the
// lease. It refuses a caller that does not hold the output any more as Expired, so that a late call
// neither begins a lease nor ends another's.
func (m *Machine) Renew(now Time, holder, name string, v device.Value, length time.Duration) error {
	i, err := m.find(name)
	if err != nil {
		return err
	}
	if o := &m.outputs[i]; holder == "" || o.holder != holder || v != o.goal && v != o.Safe {
		return device.Faultf(device.Expired, "%s is not held at %v by the caller any more; move it", name, v)
	}
	return m.Move(now, holder, name, v, length)
}

// MoveOver is Move for a holder that the caller has found to outrank from: the lease of from is
// holder's then. A refused one leaves it as it is.
func (m *Machine) MoveOver(now Time, holder, from, name string, v device.Value, length time.Duration) error {
	i, err := m.find(name)
	if err != nil {
		return err
	}
	o := &m.outputs[i]
	if holder == "" || from == "" || o.holder != from {
		return m.Move(now, holder, name, v, length)
	}
	o.holder = holder
	if err = m.Move(now, holder, name, v, length); err != nil {
		o.holder = from
	}
	return err
}

// Try returns the fault that Move would return now, and moves nothing.
func (m *Machine) Try(now Time, holder, name string, v device.Value, length time.Duration) error {
	_, _, err := m.permit(now, holder, name, v, length)
	return err
}

// permit returns why a Move is refused, or the output and the length of its lease. A move to
// safe is never refused.
func (m *Machine) permit(now Time, holder, name string, v device.Value, length time.Duration) (*output, time.Duration, error) {
	i, err := m.find(name)
	if err != nil {
		return nil, 0, err
	}
	o := &m.outputs[i]
	if err := o.Check(v); err != nil {
		return nil, 0, err
	}
	if v == o.Safe {
		return o, 0, nil
	}
	if length < 0 || length > o.Longest() {
		return nil, 0, device.Faultf(device.Invalid, "%s can be held for at most %v at a time", name, o.Longest())
	}
	if err := m.refuse(now, holder, o); err != nil {
		return nil, 0, err
	}
	if v != o.goal {
		if err := o.refuseChange(now); err != nil {
			return nil, 0, err
		}
	}
	if length == 0 {
		length = o.Usual()
	}
	if kept := o.kept(now, v); length < kept {
		return nil, 0, device.Faultf(device.Invalid, "%s keeps a value for min_on, %v: ask for %v or longer", name, o.MinOn, roundUp(kept))
	}
	if o.holder == "" {
		if err := m.interlocked(now, o); err != nil {
			return nil, 0, err
		}
	}
	return o, length, nil
}

// refuse returns why holder may not move o away from safe now.
func (m *Machine) refuse(now Time, holder string, o *output) error {
	left, end := o.left(now)
	wait := o.restLeft(now)
	switch {
	case o.retired:
		return device.Faultf(device.Unavailable, "the configuration of %s is being changed; try again in a moment",
			o.Output).In(moment)
	case m.parked:
		return device.Faultf(device.Unavailable, "the site is stopping; outputs stay safe")
	case m.stopped:
		return device.Faultf(device.Unsafe, "the emergency stop is latched: outputs stay safe until an owner runs agentsite reset")
	case holder == "":
		return device.Faultf(device.Denied, "nobody may hold %s", o.Output)
	case o.fault != "":
		return device.Faultf(device.Offline, "%s did not follow its last command and is being driven to safe: %s", o.Output, o.fault)
	case m.latched(o):
		return device.Faultf(device.Unsafe, "%s had not its effect, %v; see to that, and then an owner runs agentsite reset", o.Output, o.Expects).
			Naming(o.Output+" had not the effect that it has to have; its owner has to see to that", o.Expects.Point)
	case !o.required(now):
		return device.Faultf(device.Unsafe, "%s needs %s, and %s; see to that first", o.Output, o.Requires, o.Requires.why(o.lacks, o.told)).
			Naming(o.Output+" needs something else first, which its owner knows; try again later", o.Requires.Point)
	case o.away && (left <= 0 || o.holder == "" && o.MinOff > 0 || o.failing(now)): // its rest has not begun
		return device.Faultf(device.Unsafe, "%s is on its way to safe and rests there for %v; try again later", o.Output, max(o.MinOff, o.Rest))
	case wait > 0 && o.spent():
		return device.Faultf(device.Unsafe, "%s rests at safe after its max_on or a start; try again in %v",
			o.Output, roundUp(wait)).In(wait)
	case wait > 0:
		return device.Faultf(device.Unsafe, "%s rests at safe for min_off, %v, each time; try again in %v",
			o.Output, o.MinOff, roundUp(wait)).In(wait)
	case o.holder != "" && o.holder != holder:
		return device.Faultf(device.Busy, "%s is held by %s for another %v; wait, or return it to safe first", o.Output, o.holder, roundUp(o.until-now)).
			Naming(fmt.Sprintf("%s is held by somebody else for another %v; wait, or return it to safe first", o.Output, device.FormatDuration(roundUp(o.until-now))), o.holder).In(o.until - now)
	case end == byDuty && left < max(o.MinOn, 1) && !o.away && left+time.Duration(o.duty.assumed(now)) >= max(o.MinOn, 1):
		return device.Faultf(device.Unsafe, "%s may be away from safe for its %v in %v, and it has just started: the time before counts as used; try again in %v", o.Output, o.Duty.Away, o.Duty.Window, roundUp(o.dutyWait(now))).In(o.dutyWait(now))
	case end == byDuty && left < max(o.MinOn, 1) && !o.away:
		return device.Faultf(device.Unsafe, "%s has been away from safe for its %v in %v; try again in %v",
			o.Output, o.Duty.Away, o.Duty.Window, roundUp(o.dutyWait(now))).In(o.dutyWait(now))
	}
	return nil
}

// Release returns an output to safe for any caller. It is never refused.
func (m *Machine) Release(name string) error {
	i, err := m.find(name)
	if err != nil {
		return err
	}
	m.outputs[i].toSafe(byRelease)
	return nil
}

// TakeOver makes holder, which must be an owner, the holder of another principal's lease
// without a change: its next Move is a renewal. It does nothing without a lease.
func (m *Machine) TakeOver(holder, name string) error {
	i, err := m.find(name)
	if err != nil {
		return err
	}
	if holder == "" {
		return device.Faultf(device.Denied, "nobody may hold %s", name)
	}
	if o := &m.outputs[i]; o.holder != "" {
		o.holder = holder
	}
	return nil
}

// Stop latches the emergency stop: everything to safe, and no move until Reset.
func (m *Machine) Stop() {
	m.stopped = true
	m.ToSafe(byStop)
}

// Reset ends the emergency stop, and the latches of effects that failed. Outputs stay safe until the next move.
func (m *Machine) Reset() {
	m.stopped = false
	for i := range m.outputs {
		if o := &m.outputs[i]; m.latched(o) {
			o.effect = effect{}
		}
	}
	clear(m.latches)
}

// Stopped reports whether the emergency stop is latched.
func (m *Machine) Stopped() bool { return m.stopped }

// Park returns everything to safe and refuses later moves, because the process ends.
func (m *Machine) Park() {
	m.parked = true
	m.ToSafe(byStop)
}

// Tick ends expired leases, and takes the due steps of ramps.
func (m *Machine) Tick(now Time) {
	for i := range m.outputs {
		o := &m.outputs[i]
		m.checkEffect(now, o)
		if o.holder != "" && o.required(now) && now >= o.until {
			o.toSafe(o.ends)
		}
		o.step(now)
	}
}

// Next returns the time of the next necessary Tick; ok is false for none.
func (m *Machine) Next() (at Time, ok bool) {
	for i := range m.outputs {
		o := &m.outputs[i]
		due, any := o.until, o.holder != ""
		if any && o.Requires.Point != "" {
			due = min(due, o.fresh)
		}
		if o.effect.awaited && o.effect.is != Failed {
			due = min(due, o.effect.due)
		}
		if o.ramping() && (!any || o.nextStep < due) {
			due, any = o.nextStep, true
		}
		if any && (!ok || due < at) {
			at, ok = due, true
		}
	}
	return at, ok
}

// Pending returns the value to write to output i now, on a ramp its next step. ok is false if the
// hardware is confirmed to have it.
func (m *Machine) Pending(i int) (v device.Value, ok bool) {
	o := &m.outputs[i]
	return o.want, o.moving || o.want != o.have
}

// due reports whether output i has to be written now. After a write its worker checks again,
// and after a failure it retries with a back-off.
func (m *Machine) due(i int) bool {
	_, pending := m.Pending(i)
	return pending && !m.outputs[i].moving && m.outputs[i].fault == ""
}

// Safe reports whether every output has the target safe and is confirmed there.
func (m *Machine) Safe() bool {
	for i := range m.outputs {
		if _, pending := m.Pending(i); pending || m.outputs[i].goal != m.outputs[i].Safe {
			return false
		}
	}
	return true
}

// Driving records that a write to output i has begun. Until Applied its state is unknown.
func (m *Machine) Driving(i int) { m.outputs[i].moving = true }

// Applied records the result of writing v to output i. After a failure the state of the
// output is unknown.
func (m *Machine) Applied(now Time, i int, v device.Value, err error) {
	o := &m.outputs[i]
	o.moving, o.measured = false, device.Value{} // which was of before
	if err != nil {
		m.markUnknown(now, o, err)
		return
	}
	o.have, o.fault = v, ""
	o.set, o.setAt = v, now
	m.await(now, o)
	if v == o.Safe && o.away {
		o.arrive(now)
	}
}

// Read processes the read-back value of output i, or the error; the zero Value means that it
// cannot be read back. It reports whether the value is unexpected. It ignores an output with
// a pending write, because that write confirms the value.
func (m *Machine) Read(now Time, i int, v device.Value, err error) (lost bool) {
	o := &m.outputs[i]
	if _, pending := m.Pending(i); pending {
		return false
	}
	if err == nil {
		o.blind = v.IsZero()
		o.measure(now, v)
	}
	if err == nil && !v.IsZero() && v != o.have {
		err = elsewhere(o.have, v)
	}
	if err != nil {
		m.markUnknown(now, o, err)
	}
	return err != nil
}

// measure records a value that was read back; zero is none.
func (o *output) measure(now Time, v device.Value) {
	if !v.IsZero() {
		o.measured, o.measuredAt = v, now
	}
}

func elsewhere(left, reads device.Value) error {
	return device.Faultf(device.Offline, "it was left at %v and reads %v; look at its supply, and for somebody else who moves it", left, reads)
}

// markUnknown records that the state of o is no longer known. o counts as away from safe, its lease
// ends, and it and all outputs interlocked with it go to safe.
func (m *Machine) markUnknown(now Time, o *output, err error) {
	o.have, o.fault = device.Value{}, err.Error()
	o.leave(now)
	o.toSafe(byFault)
	m.releaseInterlocked(o)
}

// Policy returns the policy of an output.
func (m *Machine) Policy(name string) (Policy, error) {
	i, err := m.find(name)
	if err != nil {
		return Policy{}, err
	}
	return m.outputs[i].Policy, nil
}

func (m *Machine) find(name string) (int, error) {
	i, ok := m.index[name]
	if !ok {
		return 0, device.Faultf(device.Invalid, "there is no output %.60q", name)
	}
	return i, nil
}

// ToSafe ends every lease.
func (m *Machine) ToSafe(why Reason) {
	for i := range m.outputs {
		m.outputs[i].toSafe(why)
	}
}

// add returns t+d without an overflow; Unlimited stays in the far future.
func add(t Time, d time.Duration) Time {
	if s := t + d; s >= t {
		return s
	}
	return Unlimited
}

func roundUp(d time.Duration) time.Duration {
	return add(d, time.Second-1).Truncate(time.Second)
}
