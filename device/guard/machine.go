package guard

import (
	"time"

	"agentsite/device"
)

// Time is how long the guard has been running. It is monotonic: no wall clock
// enters a decision.
type Time = time.Duration

// Machine decides what every output should be. It is plain state: every method
// takes the present Time, which must not go backwards, and none does I/O, waits
// or locks. The zero value of an output's state is "unknown, wanted safe", so a
// new machine first of all has everything driven to safe.
type Machine struct {
	outputs []output
	index   map[string]int
	stopped bool // the emergency stop is latched
	parked  bool // the process is ending: safe for good
}

type output struct {
	Policy       // without a name once the output was dropped
	leaving bool // is about to be dropped: safe, and no move
	want    device.Value
	have    device.Value // what the hardware last confirmed; zero while it is not known
	moving  bool         // a write is on its way, so the hardware may have left have
	holder  string       // who has the lease; "" at safe
	until   Time         // when the lease ends
	away    bool         // has left safe and is not known to be back
	since   Time         // when it left; means something while away
	back    Time         // when it was last known to come back
	// used is what earlier trips took of max_on. Only min_off at safe gives it back:
	// a shorter return would let a caller hold an output for ever.
	used  time.Duration
	fault string // why the last write failed
}

// NewMachine makes a machine for the policies, which must be valid. A latched
// emergency stop is passed in as stopped.
func NewMachine(policies []Policy, stopped bool) *Machine {
	m := &Machine{index: make(map[string]int, len(policies)), stopped: stopped}
	for _, p := range policies {
		m.Add(p)
	}
	return m
}

// Add takes in an output with a valid policy and returns its number, which stays the
// same. One that was dropped and comes back has its number and no past.
func (m *Machine) Add(p Policy) int {
	i, known := m.index[p.Output]
	if !known {
		i = len(m.outputs)
		m.index[p.Output] = i
		m.outputs = append(m.outputs, output{})
	}
	// Nobody knows for how long an output was away before a start: too long.
	m.outputs[i] = output{Policy: p, want: p.Safe, away: true, used: p.MaxOn}
	return i
}

// Leave sends output i to safe for good, before it is dropped.
func (m *Machine) Leave(i int) {
	m.outputs[i].leaving = true
	m.outputs[i].toSafe()
}

// Drop forgets output i. Nobody may be driving it any more.
func (m *Machine) Drop(i int) { m.outputs[i] = output{} }

// Move gives holder a lease on the output at value v for a time; zero means
// DefaultFor, or the longest lease where that is shorter. A renewal is a Move by
// the same holder. The lease ends earlier where max_on does. A move to the safe
// value is a Release.
func (m *Machine) Move(now Time, holder, name string, v device.Value, length time.Duration) error {
	i, err := m.find(name)
	if err != nil {
		return err
	}
	o := &m.outputs[i]
	if err := o.Check(v); err != nil {
		return err
	}
	if v == o.Safe {
		o.toSafe()
		return nil
	}
	if length < 0 || length > o.Longest() {
		return device.Faultf(device.Invalid, "%s can be held for at most %v at a time", name, o.Longest())
	}
	if err := m.refuse(now, holder, o); err != nil {
		return err
	}
	if length == 0 {
		length = min(DefaultFor, o.Longest())
	}
	if !o.away {
		if o.rested(now) {
			o.used = 0
		}
		o.away, o.since = true, now
	}
	o.want, o.holder = v, holder
	o.until = add(now, min(length, o.left(now)))
	return nil
}

// refuse says why holder may not move o away from safe now.
func (m *Machine) refuse(now Time, holder string, o *output) error {
	switch {
	case m.parked:
		return device.Faultf(device.Unavailable, "the site is stopping; outputs stay safe")
	case o.leaving:
		return goneFault(o.Output)
	case m.stopped:
		return device.Faultf(device.Unsafe, "the emergency stop is latched: outputs stay safe until an owner runs agentsite reset")
	case holder == "":
		return device.Faultf(device.Denied, "nobody may hold %s", o.Output)
	case o.fault != "":
		return device.Faultf(device.Offline, "%s did not follow its last command and is being driven to safe: %s", o.Output, o.fault)
	case o.away && o.left(now) <= 0: // its rest has not begun
		return device.Faultf(device.Unsafe, "%s is on its way to safe and rests there for %v; try again later", o.Output, o.MinOff)
	case o.rest(now) > 0:
		return device.Faultf(device.Unsafe, "%s rests at safe after its max_on or a start; try again in %v", o.Output, roundUp(o.rest(now)))
	case o.holder != "" && o.holder != holder:
		return device.Faultf(device.Busy, "%s is held by %s for another %v; wait, or return it to safe first", o.Output, o.holder, roundUp(o.until-now))
	}
	return nil
}

// Release returns an output to safe, whoever holds it. Nothing refuses it.
func (m *Machine) Release(name string) error {
	i, err := m.find(name)
	if err != nil {
		return err
	}
	m.outputs[i].toSafe()
	return nil
}

// Stop latches the emergency stop: everything to safe, and no move until Reset.
func (m *Machine) Stop() {
	m.stopped = true
	m.allSafe()
}

// Reset ends the emergency stop. Outputs stay safe until somebody moves them.
func (m *Machine) Reset() { m.stopped = false }

// Stopped reports whether the emergency stop is latched.
func (m *Machine) Stopped() bool { return m.stopped }

// Park sends everything to safe for good, when the process ends.
func (m *Machine) Park() {
	m.parked = true
	m.allSafe()
}

// Tick ends the leases that are over.
func (m *Machine) Tick(now Time) {
	for i := range m.outputs {
		if o := &m.outputs[i]; o.holder != "" && now >= o.until {
			o.toSafe()
		}
	}
}

// Next is when Tick has something to do; ok is false when it has not.
func (m *Machine) Next() (at Time, ok bool) {
	for i := range m.outputs {
		if o := &m.outputs[i]; o.holder != "" && (!ok || o.until < at) {
			at, ok = o.until, true
		}
	}
	return at, ok
}

// Pending is what output i has to be driven to; ok is false when the hardware is
// known to agree.
func (m *Machine) Pending(i int) (v device.Value, ok bool) {
	o := &m.outputs[i]
	return o.want, o.moving || o.want != o.have
}

// Safe reports whether every output is wanted and known to be at its safe value.
func (m *Machine) Safe() bool {
	for i := range m.outputs {
		if _, pending := m.Pending(i); pending || m.outputs[i].want != m.outputs[i].Safe {
			return false
		}
	}
	return true
}

// Driving notes that output i is being driven. Until Applied nobody may take it
// to be where it was.
func (m *Machine) Driving(i int) { m.outputs[i].moving = true }

// Applied takes what came of driving output i to v. After a failure the output's
// state is unknown: its lease ends and it is wanted safe.
func (m *Machine) Applied(now Time, i int, v device.Value, err error) {
	o := &m.outputs[i]
	o.moving = false
	if err != nil {
		o.have, o.fault = device.Value{}, err.Error()
		o.toSafe()
		return
	}
	o.have, o.fault = v, ""
	if v == o.Safe && o.away {
		o.used = add(o.used, now-o.since)
		o.back = now
		o.away, o.since = o.want != o.Safe, now // wanted elsewhere again meanwhile: it leaves at once
	}
}

// Status is what an output is doing. Times are lengths from now, so that they
// can cross to another process or another clock.
type Status struct {
	Output string
	Value  device.Value  // the last that the hardware confirmed; zero while it is not known
	Safe   bool          // known to be at its safe value
	Holder string        // "" when nobody holds it
	Left   time.Duration // of the lease
	Rest   time.Duration // before it can be moved again
	Fault  string        // why the hardware did not follow
}

// Status reports output i.
func (m *Machine) Status(now Time, i int) Status {
	o := &m.outputs[i]
	s := Status{Output: o.Output, Value: o.have, Safe: o.have == o.Safe && !o.moving, Holder: o.holder, Fault: o.fault}
	if o.holder != "" {
		s.Left = max(0, o.until-now)
	}
	s.Rest = o.rest(now)
	return s
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
	if m.outputs[i].Output == "" {
		return 0, goneFault(name)
	}
	return i, nil
}

func goneFault(name string) error {
	return device.Faultf(device.Unavailable, "%s is taken away, or set up anew, by a change of the configuration; list the points and try again", name)
}

func (m *Machine) allSafe() {
	for i := range m.outputs {
		m.outputs[i].toSafe()
	}
}

func (o *output) toSafe() {
	o.want, o.holder, o.until = o.Safe, "", 0
	if o.have == o.Safe && !o.moving {
		o.away = false // nothing was written, so it never left
	}
}

// left is what remains of max_on while the output is away.
func (o *output) left(now Time) time.Duration { return o.MaxOn - o.used - (now - o.since) }

// rested reports whether an output at safe has been there for min_off.
func (o *output) rested(now Time) bool { return now-o.back >= o.MinOff }

// rest is how long an output at safe that has spent its max_on stays there.
func (o *output) rest(now Time) time.Duration {
	if o.used < o.MaxOn {
		return 0
	}
	return max(0, o.MinOff-(now-o.back))
}

// add is t+d without an overflow: Unlimited stays out of reach.
func add(t Time, d time.Duration) Time {
	if s := t + d; s >= t {
		return s
	}
	return Unlimited
}

func roundUp(d time.Duration) time.Duration {
	return add(d, time.Second-1).Truncate(time.Second)
}
