package guard

import (
	"math"
	"time"

	"agentsite/device"

	"pgregory.net/rapid"
)

// world is an outside observer's view of a machine and the hardware behind it. It shares no
// bookkeeping with the machine: it knows the policies, keeps the whole history of its requests and
// of its changes to the hardware, and checks that.
type world struct {
	m               *Machine
	policies        []Policy
	now             Time // since the machine's start
	stopped, parked bool
	things          []thing
	told            map[string]told
	count           int // of what happened
}

// told is the last reading of a point.
type told struct {
	good  bool
	value device.Value
	at    Time // when it was read
}

// modelPolicies are those of the older tests, and one or two for each limit.
func modelPolicies() []Policy {
	level := func(name string, low, high float64) Policy {
		return Policy{Output: name, Kind: device.KindLevel, Range: device.Range{Min: low, Max: high}, Safe: device.Number(0), MaxOn: DefaultMaxOn, Rest: DefaultRest}
	}
	toggle := func(name string) Policy {
		return Policy{Output: name, Kind: device.KindSwitch, Safe: off, MaxOn: DefaultMaxOn, Rest: DefaultRest}
	}
	pump := toggle("tank/pump")
	pump.MaxOn, pump.MinOn, pump.MinOff, pump.Rest = time.Minute, 5*time.Second, 20*time.Second, 20*time.Second
	pump.Rate, pump.Duty = Rate{6, 10 * time.Minute}, Duty{2 * time.Minute, 10 * time.Minute}
	pump.Requires = Requirement{Point: tankLevel, Within: device.Range{Min: 20, Max: 100}, MaxAge: 30 * time.Second}
	up := toggle("blind/up")
	up.Interlock, up.MinOn = Interlock{"blind", time.Second}, 2*time.Second
	motor := level("blind/motor", -100, 100)
	motor.Interlock, motor.Slew = Interlock{"blind", time.Second}, Slew{PerSecond: 50}
	motor.MinOff, motor.Rest = 2*time.Second, 2*time.Second
	crane := level("yard/crane", 0, 100)
	crane.Slew, crane.Duty, crane.Rate = Slew{PerSecond: 40, Ramp: true}, Duty{40 * time.Second, 10 * time.Minute}, Rate{30, time.Hour}
	crane.MaxOn, crane.MinOn = 20*time.Second, 2*time.Second
	lamp := toggle("door/lamp")
	lamp.Rate, lamp.Rest, lamp.Lease, lamp.Duty = Rate{3, time.Hour}, 0, time.Minute, Duty{90 * time.Second, 10 * time.Minute}
	lamp.Requires = Requirement{Point: door, Is: on, MaxAge: time.Minute}
	flow := Expectation{Point: flowRate, Within: device.Range{Min: 0.2, Max: math.Inf(1)}, By: 5 * time.Second}
	jet, hose, mist := toggle("well/jet"), toggle("well/hose"), level("well/mist", 0, 100)
	jet.Expects, hose.Expects, mist.Expects = flow, flow, flow
	hose.Expects.Else, hose.Expects.By, mist.Expects.Else = ElseLatch, 20*time.Second, ElseAlarm
	return append(policies(), pump, up, motor, crane, lamp, jet, hose, mist)
}

type thing struct {
	Policy
	begun    Time         // since when the machine has it
	hardware device.Value // where it is; zero after a failed write
	writing  device.Value // what is being written; zero for nothing
	failed   bool         // the last write failed
	asked    device.Value // what its holder asked for; safe without one
	out      bool         // it is away from safe, or meant to be
	left     Time         // since then
	written  bool         // and it has left, or may have
	trips    []trip       // those that are over
	changes  []Time       // when another value away from safe was granted
	started  bool         // it has been safe once
	leaseEnd Time         // of the last lease that was given
	dutyEnd  Time         // when duty would end that, as strictly as it may
	holder   string       // of it
	wants    []wanted     // what was to be written, since it went to safe at once
	hopes    hopes
}

// trip is one time away from safe, until safe was confirmed.
type trip struct{ from, to Time }

type wanted struct {
	at Time
	v  float64
}

// used is the time away that counts against max_on: of this trip and of those
// before it, back to the first rest.
func (o *thing) used(now Time) time.Duration {
	sum, next := time.Duration(0), now
	if o.out {
		sum, next = now-o.left, o.left
	}
	for n := len(o.trips) - 1; n >= 0; n-- {
		t := o.trips[n]
		if next-t.to >= o.Rest {
			break
		}
		sum, next = sum+t.to-t.from, t.from
	}
	return sum
}

// rested reports whether the output, which is at safe, has rested there since the start.
func (o *thing) rested(now Time) bool {
	for n := len(o.trips) - 1; n >= 0; n-- {
		if now-o.trips[n].to >= o.Rest {
			return true
		}
		now = o.trips[n].from
	}
	return false
}

// before returns the part of a limit that counts as used before the start in a window: all of it,
// evenly. slack widens the window.
func (o *thing) before(now Time, window, slack time.Duration) float64 {
	return max(0, min(1, float64(window+slack-(now-o.begun))/float64(window)))
}

// onDuty is the time away in the window that ends now.
func (o *thing) onDuty(now Time, slack time.Duration) time.Duration {
	begin := now - o.Duty.Window - slack
	sum := time.Duration(o.before(now, o.Duty.Window, slack) * float64(o.Duty.Away))
	for _, t := range o.trips {
		sum += max(0, t.to-max(t.from, begin))
	}
	if o.out {
		sum += now - max(o.left, begin)
	}
	return sum
}

// rated is the number of moves in the window that ends now.
func (o *thing) rated(now Time, slack time.Duration) float64 {
	n := o.before(now, o.Rate.Window, slack) * float64(o.Rate.Moves)
	for _, at := range o.changes {
		if at > now-o.Rate.Window-slack {
			n++
		}
	}
	return n
}

// slow is how long a ramp to safe takes, from the policy alone.
func (o *thing) slow() time.Duration {
	if !o.Slew.Ramp {
		return 0
	}
	return time.Duration((o.Range.Max - o.Range.Min) / o.Slew.PerSecond * float64(time.Second))
}

// back ends a trip. One on which nothing was written has not taken place.
func (o *thing) back(now Time) {
	if o.out && o.written {
		o.trips = append(o.trips, trip{o.left, now})
	}
	o.out, o.written = false, false
}

func (o *thing) physicallySafe() bool { return o.hardware == o.Safe && o.writing.IsZero() }

func (o *thing) longest() time.Duration {
	if o.Lease != 0 {
		return o.Lease
	}
	return o.MaxOn
}

func (w *world) met(o *thing) bool {
	r := o.Requires
	if r.Point == "" {
		return true
	}
	t, ok := w.told[r.Point]
	if !ok || !t.good || w.now-t.at >= r.MaxAge {
		return false
	}
	if r.Is != (device.Value{}) {
		return t.value == r.Is
	}
	return t.value.Number() >= r.Within.Min && t.value.Number() <= r.Within.Max
}

func newWorld(t *rapid.T, ps []Policy) *world {
	w := &world{policies: ps, stopped: rapid.IntRange(0, 9).Draw(t, "stopped at start") == 9}
	for _, p := range ps {
		w.things = append(w.things, thing{Policy: p})
	}
	w.start()
	return w
}

// reasons are the kinds of fault that a move may have, from the policies and the
// history alone. Where there is none it has to be granted; where it is granted there
// must be none without slack.
func (w *world) reasons(i int, holder string, v device.Value, length time.Duration, slack bool) map[device.FaultKind]string {
	o, why := &w.things[i], map[device.FaultKind]string{}
	if !allowed(o.Policy, v) {
		why[device.Invalid] = "value"
		return why
	}
	if v == o.Safe {
		return why
	}
	part := func(window time.Duration) time.Duration {
		if slack {
			return window/30 + time.Microsecond // two sixtieths, and some rounding
		}
		return 0
	}
	change, last := v != o.asked, o.begun
	if n := len(o.changes); n > 0 {
		last = o.changes[n-1]
	}
	effective, keep := length, o.MinOn
	if length == 0 {
		effective = min(max(time.Minute, o.MinOn), o.longest())
	}
	if !change {
		keep -= w.now - last
	}
	need := time.Duration(1)
	if change {
		need = max(1, o.MinOn)
	}
	free := func(ok bool, kind device.FaultKind, what string) {
		if !ok {
			why[kind] = what
		}
	}
	free(length >= 0 && length <= o.longest() && effective >= keep, device.Invalid, "length")
	free(!w.parked, device.Unavailable, "parked")
	free(!w.stopped, device.Unsafe, "stopped")
	free(holder != "", device.Denied, "nobody")
	free(!o.failed, device.Offline, "failed")
	free(!o.hopes.latched, device.Unsafe, "no effect")
	free(!o.failing(w.now), device.Unsafe, "no effect, and not back yet")
	free(o.holder == "" || o.holder == holder || w.now >= o.leaseEnd, device.Busy, "held")
	free(w.met(o), device.Unsafe, "requirement")
	free(o.started, device.Unsafe, "not started")
	free(!o.out || o.asked != o.Safe || o.MinOff == 0, device.Unsafe, "on its way")
	free(o.MaxOn-o.used(w.now)-o.slow() >= need, device.Unsafe, "max_on")
	if n := len(o.trips); n > 0 && !o.out {
		rest := w.now - o.trips[n-1].to
		free(rest >= o.MinOff, device.Unsafe, "min_off")
		free(o.rested(w.now), device.Unsafe, "start")
	}
	free(!change || w.now-last >= o.MinOn, device.Unsafe, "min_on")
	if o.Duty.Window > 0 {
		free(o.Duty.Away-o.onDuty(w.now, part(o.Duty.Window))-o.slow() >= need, device.Unsafe, "duty")
	}
	if o.Rate.Window > 0 && change {
		free(o.rated(w.now, part(o.Rate.Window))+1 <= float64(o.Rate.Moves)+1e-6, device.Unsafe, "rate")
	}
	if o.Interlock.Group != "" && o.asked == o.Safe {
		for k := range w.things {
			if p := &w.things[k]; k != i && p.Interlock.Group == o.Interlock.Group {
				free(!p.out && p.physicallySafe(), device.Unsafe, "interlock")
				if n := len(p.trips); n > 0 {
					free(w.now-p.trips[n-1].to >= o.Interlock.Gap, device.Unsafe, "gap")
				}
			}
		}
	}
	return why
}

// allowed is the policy, read from the design and not from the code.
func allowed(p Policy, v device.Value) bool {
	if p.Kind == device.KindSwitch {
		return v == on || v == off
	}
	n := v.Number()
	return v.Type() == device.TypeNumber && n >= p.Range.Min && n <= p.Range.Max
}
