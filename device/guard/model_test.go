package guard

import (
	"errors"
	"flag"
	"math"
	"testing"
	"time"

	"agentsite/device"

	"pgregory.net/rapid"
)

const (
	tankLevel = "tank/level"
	door      = "door/shut"
	flowRate  = "well/flow"
)

var errLoose = errors.New("loose")

// start is a new process: nothing is remembered, and the hardware is where it was.
func (w *world) start() {
	w.m, w.now, w.parked, w.told = NewMachine(w.policies, w.stopped), 0, false, map[string]told{}
	for i := range w.things {
		o := &w.things[i]
		if o.hopes.latched {
			w.m.latch([]string{o.Output}) // as it was stored
		}
		w.things[i] = thing{Policy: o.Policy, hardware: o.hardware, asked: o.Safe, out: true, written: true, hopes: hopes{latched: o.hopes.latched}}
		if !o.writing.IsZero() {
			w.things[i].hardware = device.Value{} // nobody knows whether it came to that
		}
	}
}

// reload takes some outputs away and has them there again, as after a start. All others go on as if
// nothing had happened, with unchanged counters.
func (w *world) reload(t *rapid.T) {
	var gone []int
	for i := range w.things {
		if rapid.IntRange(0, 9).Draw(t, "goes") == 0 {
			gone = append(gone, i)
			w.m.Retire(w.things[i].Output)
			w.things[i].holder = ""
		}
	}
	w.check(t)
	w.m.Adopt(w.now, w.policies)
	for _, i := range gone {
		o := &w.things[i]
		w.lose(o)
		*o = thing{Policy: o.Policy, begun: w.now, hardware: o.hardware, writing: o.writing, asked: o.Safe, out: true, left: w.now, written: true, hopes: hopes{latched: o.hopes.latched}}
		delete(w.told, o.Requires.Point)
	}
	w.check(t)
}

func (w *world) any(t *rapid.T) int { return rapid.IntRange(0, len(w.things)-1).Draw(t, "output") }

func (w *world) move(t *rapid.T) {
	holder := rapid.SampledFrom([]string{"ann", "ann", "bob", "cid", ""}).Draw(t, "holder")
	v := rapid.SampledFrom([]device.Value{
		on, on, off, off, device.Number(0), device.Number(45), device.Number(90), device.Number(-30),
		device.Number(100.01), device.Number(-101), device.Number(math.NaN()), device.Number(math.Inf(1)), device.Text("on"), {},
	}).Draw(t, "value")
	length := rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, 0, 1, 30 * time.Second, 2 * time.Minute, DefaultMaxOn, -1, Unlimited}),
		rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(11*time.Minute)).Draw(t, "ns"))
		}),
	).Draw(t, "length")
	w.ask(t, w.any(t), holder, v, length)
}

// ask moves an output and judges the answer.
func (w *world) ask(t *rapid.T, i int, holder string, v device.Value, length time.Duration) {
	w.count++
	o := &w.things[i]
	must, may := w.reasons(i, holder, v, length, false), w.reasons(i, holder, v, length, true)
	if err := w.m.Move(w.now, holder, o.Output, v, length); err != nil {
		f := device.AsFault(err)
		if _, reason := may[f.Kind]; !reason {
			t.Fatalf("refused without a reason: %v (%v)", err, may)
		}
		return
	}
	if len(must) > 0 {
		t.Fatalf("%s was granted %v at %v in spite of %v", o.Output, v, w.now, must)
	}
	if v == o.Safe {
		o.holder, o.asked = "", v
		return
	}
	if length == 0 {
		length = min(max(time.Minute, o.MinOn), o.longest())
	}
	if v != o.asked {
		o.changes = append(o.changes, w.now)
	}
	o.asked, o.holder, o.leaseEnd, o.dutyEnd = v, holder, w.now+min(length, Unlimited-w.now), Unlimited
	if o.Duty.Window > 0 {
		o.dutyEnd = w.now + max(0, o.Duty.Away-o.onDuty(w.now, o.Duty.Window/30+time.Microsecond)-o.slow())
	}
	w.beginHopes(o)
}

func (w *world) release(t *rapid.T) {
	o := &w.things[w.any(t)]
	if err := w.m.Release(o.Output); err != nil {
		t.Fatal(err)
	}
	o.holder = ""
}

func (w *world) takeOver(t *rapid.T) {
	o := &w.things[w.any(t)]
	if err := w.m.TakeOver("owner", o.Output); err != nil {
		t.Fatal(err)
	}
	if o.holder != "" {
		o.holder = "owner"
	}
}

func (w *world) tell(t *rapid.T, point string, good bool, v device.Value, age time.Duration) {
	at := w.now - min(age, time.Hour)
	if last, ok := w.told[point]; !ok || at >= last.at { // else a newer report exists
		w.told[point] = told{good, v, at}
	}
	for i := range w.things {
		if o := &w.things[i]; o.Expects.Point == point {
			o.hope(w.now, good, v, at)
		}
	}
	w.m.Told(w.now, point, good, v, age)
}

// pass lets time pass, with a Tick whenever Next asks for one.
func (w *world) pass(t *rapid.T) {
	d := rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, 1, time.Second, 10 * time.Second, 20 * time.Second, time.Minute, DefaultMaxOn, time.Hour}),
		rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "ns"))
		}),
	).Draw(t, "time")
	w.advance(t, d)
}

func (w *world) advance(t *rapid.T, d time.Duration) {
	end, ticks := w.now+d, 0
	for at, ok := w.m.Next(); ok && at <= end; at, ok = w.m.Next() {
		if ticks++; ticks > 1000 {
			t.Fatalf("it is woken for ever at %v", at)
		}
		w.now = max(w.now, at)
		w.m.Tick(w.now)
		w.check(t)
	}
	w.now = end
}

// stall is a process that is stopped for a time, or a clock that leaps.
func (w *world) stall(t *rapid.T) {
	w.now += time.Duration(rapid.Int64Range(0, int64(15*time.Minute)).Draw(t, "ns"))
	w.m.Tick(w.now)
}

func (w *world) begin(t *rapid.T) {
	if i := w.any(t); w.things[i].writing.IsZero() {
		w.write(i)
	}
}

// write begins to write what is pending, and reports whether there is such.
func (w *world) write(i int) bool {
	v, pending := w.m.Pending(i)
	if pending {
		w.m.Driving(i)
		w.things[i].writing = v
	}
	return pending
}

func (w *world) end(t *rapid.T, err error) {
	if i := w.any(t); !w.things[i].writing.IsZero() {
		w.land(i, err)
	}
}

// land is the end of a write.
func (w *world) land(i int, err error) {
	w.count++
	o := &w.things[i]
	v := o.writing
	o.writing, o.hardware, o.failed = device.Value{}, v, false
	if err != nil {
		w.lose(o)
	}
	w.m.Applied(w.now, i, v, err)
	w.beginHopes(o)
	if err == nil && v == o.Safe {
		o.started = true
		o.endHopes(w.now)
		o.back(w.now)
	}
}

// lose marks an output's state unknown.
func (w *world) lose(o *thing) {
	o.hardware, o.failed, o.holder = device.Value{}, true, ""
	if !o.out {
		o.out, o.left = true, w.now
	}
	o.written = true
	for k := range w.things {
		if p := &w.things[k]; p.Interlock.Group != "" && p.Interlock.Group == o.Interlock.Group {
			p.holder = "" // it has to give way
		}
	}
}

// read reads an output back, which may have lost its value, or been moved by somebody
// else, or not answer, or say nothing.
func (w *world) read(t *rapid.T) {
	w.count++
	i := w.any(t)
	o := &w.things[i]
	v := rapid.SampledFrom([]device.Value{o.hardware, o.hardware, o.hardware, o.Safe, on, off, device.Number(45), device.Number(44.9), {}}).Draw(t, "reads")
	var err error
	if rapid.IntRange(0, 9).Draw(t, "answers") == 0 {
		err = errLoose
	}
	wanted, _ := w.m.Pending(i)
	still := o.started && o.writing.IsZero() && o.hardware == wanted // else a write comes first
	lost := still && (err != nil || v != device.Value{} && v != o.hardware)
	if got := w.m.Read(w.now, i, v, err); got != lost {
		t.Fatalf("%s is at %v and reads %v, %v: lost %v", o.Output, o.hardware, v, err, got)
	}
	if lost {
		w.lose(o)
	}
}

// settle lets the hardware catch up, so that runs get deep.
func (w *world) settle(t *rapid.T) {
	for i := range w.things {
		for n := 0; !w.things[i].writing.IsZero() || w.write(i); n++ {
			if n > 2 {
				t.Fatalf("%s is never done", w.things[i].Output)
			}
			w.land(i, nil)
		}
	}
}

// follow is some time with a hardware that follows at once: ramps go on.
func (w *world) follow(t *rapid.T) {
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		w.settle(t)
		w.check(t)
		next, ok := w.m.Next()
		w.advance(t, min(time.Second, max(0, next-w.now)))
		if !ok {
			return
		}
	}
}

func (w *world) check(t *rapid.T) {
	w.count++
	next, due := w.m.Next()
	if w.m.Stopped() != w.stopped {
		t.Fatalf("stopped is %v, want %v", w.m.Stopped(), w.stopped)
	}
	for i := range w.things {
		o := &w.things[i]
		v, pending := w.m.Pending(i)
		s := w.m.Status(w.now, i)

		// A lease ends for a reason.
		if s.Goal == o.Safe && o.holder != "" {
			if w.now < o.leaseEnd && o.used(w.now) < o.MaxOn-o.slow() && w.now < o.dutyEnd && w.met(o) && !o.hopeless(w.now) {
				t.Fatalf("%s lost its lease until %v at %v, away for %v", o.Output, o.leaseEnd, w.now, o.used(w.now))
			}
			o.holder = ""
		}
		if s.Goal == o.Safe {
			o.asked = o.Safe
		}
		w.checkHopes(t, o, s)

		// The clock of max_on: from the first wish to leave until safe is confirmed.
		switch {
		case s.Goal != o.Safe && !o.out:
			o.out, o.left = true, w.now
		case s.Goal == o.Safe && o.started && o.physicallySafe():
			o.back(w.now)
		}
		o.written = o.written || o.out && !o.physicallySafe()

		w.checkRamp(t, o, v)
		if !allowed(o.Policy, v) || s.Goal != o.asked {
			t.Fatalf("%s is wanted at %v and %v; %v was asked for", o.Output, v, s.Goal, o.asked)
		}
		if !pending && (o.hardware != v || !o.writing.IsZero()) {
			t.Fatalf("%s is said to be at %v; it is at %v and %v is being written", o.Output, v, o.hardware, o.writing)
		}
		if s.Safe && !o.physicallySafe() {
			t.Fatalf("%s is said to be safe; it is at %v and %v is being written", o.Output, o.hardware, o.writing)
		}
		if o.failed && v != o.Safe {
			t.Fatalf("%s has failed and is not driven to safe but to %v", o.Output, v)
		}
		if s.Goal == o.Safe {
			if s.Holder != "" || s.Left != 0 {
				t.Fatalf("%s is wanted safe and held by %q for %v", o.Output, s.Holder, s.Left)
			}
			continue
		}
		switch {
		case w.stopped, w.parked, o.failed, !w.met(o):
			t.Fatalf("%s is wanted at %v: stopped %v, parked %v, failed %v, %v", o.Output, s.Goal, w.stopped, w.parked, o.failed, w.told)
		case s.Holder == "" || s.Holder != o.holder:
			t.Fatalf("%s is wanted at %v; held by %q, leased to %q", o.Output, s.Goal, s.Holder, o.holder)
		case s.Left <= 0 || s.Left > o.longest() || w.now >= o.leaseEnd:
			t.Fatalf("%s is wanted at %v with %v left of a lease until %v, now %v", o.Output, s.Goal, s.Left, o.leaseEnd, w.now)
		case o.used(w.now) >= o.MaxOn-o.slow():
			t.Fatalf("%s is wanted at %v after %v away from safe; max_on %v", o.Output, s.Goal, o.used(w.now), o.MaxOn)
		case o.Duty.Window > 0 && o.onDuty(w.now, 0) >= o.Duty.Away-o.slow():
			t.Fatalf("%s is wanted at %v after %v away from safe; duty %v", o.Output, s.Goal, o.onDuty(w.now, 0), o.Duty)
		case o.hopeless(w.now) && o.Expects.Else != ElseAlarm:
			t.Fatalf("%s is wanted at %v at %v and has no effect since %v", o.Output, s.Goal, w.now, o.hopes.fails)
		case o.hopes.moved && o.Expects.Point != "" && !o.hopeless(w.now) && next > o.hopes.fails:
			t.Fatalf("%s needs its effect before %v, next is %v", o.Output, o.hopes.fails, next)
		case !due || next > w.now+s.Left || next > o.leaseEnd || next-w.now > o.MaxOn-o.used(w.now):
			t.Fatalf("%s ends in %v, next is %v %v, now %v", o.Output, s.Left, next, due, w.now)
		case o.Requires.Point != "" && next > w.told[o.Requires.Point].at+o.Requires.MaxAge:
			t.Fatalf("%s requires what is stale before %v", o.Output, next)
		}
		w.checkInterlock(t, i)
	}
}

// checkInterlock checks that while an output is away, the others of the group are known to be safe,
// and are.
func (w *world) checkInterlock(t *rapid.T, i int) {
	o := &w.things[i]
	for k := range w.things {
		p := &w.things[k]
		if k == i || o.Interlock.Group == "" || p.Interlock.Group != o.Interlock.Group {
			continue
		}
		if p.out || !p.physicallySafe() || w.m.Status(w.now, k).Goal != p.Safe {
			t.Fatalf("%s is away at %v, and so is %s, at %v", o.Output, w.now, p.Output, p.hardware)
		}
	}
}

// checkRamp checks that no value is further from any before it than slew permits. A return to safe
// is exempt, unless ramp_to_safe is set.
func (w *world) checkRamp(t *rapid.T, o *thing, v device.Value) {
	if o.Slew.PerSecond == 0 {
		return
	}
	if v == o.Safe && (!o.Slew.Ramp || o.hardware.IsZero()) || len(o.wants) == 0 {
		o.wants = []wanted{{w.now, v.Number()}}
		return
	}
	if o.wants[len(o.wants)-1].v == v.Number() {
		return
	}
	atOnce := max(o.Slew.PerSecond*0.020, (o.Range.Max-o.Range.Min)/100)
	for _, before := range o.wants[max(0, len(o.wants)-30):] {
		if math.Abs(v.Number()-before.v) > o.Slew.PerSecond*(w.now-before.at).Seconds()+atOnce+1e-6 {
			t.Fatalf("%s went from %v to %v in %v", o.Output, before.v, v, w.now-before.at)
		}
	}
	o.wants = append(o.wants, wanted{w.now, v.Number()})
}

// thorough makes the tests do the full counts of make soak, and not a fraction.
var thorough = flag.Bool("thorough", false, "a million steps of the model, and all interleavings")

// TestModel prints the steps that it took, with -v, and the seed of a failure.
func TestModel(t *testing.T) {
	checks := "1500" // a third of a second
	if *thorough {
		checks = "15000"
	}
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue && !testing.Short() {
		defer flag.Set("rapid.checks", f.DefValue)
		flag.Set("rapid.checks", checks)
	}
	total := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, modelPolicies())
		defer func() { total += w.count }()
		everyHolder := func(to string) {
			for i := range w.things {
				w.things[i].holder = to
			}
		}
		away := []device.Value{on, device.Number(45), off, on, on, device.Number(-60), device.Number(80), on, on, on, device.Number(45)}
		// hold is a caller who means it: one renewal after the other.
		hold := func(t *rapid.T) {
			i := w.any(t)
			o := &w.things[i]
			length := min(o.longest(), 10*time.Minute)
			for range rapid.IntRange(1, 6).Draw(t, "times") {
				v := away[i]
				if o.Kind == device.KindLevel && rapid.Bool().Draw(t, "another value") {
					v = device.Number(30)
				}
				w.ask(t, i, "ann", v, length)
				w.check(t)
				almost := max(1, min(length, o.MaxOn-o.slow())-o.MinOn/2)
				pause := rapid.SampledFrom([]time.Duration{length / 2, length - 1, time.Second, almost}).Draw(t, "pause")
				switch rapid.IntRange(0, 3).Draw(t, "meanwhile") {
				case 0:
					w.well(t)
				case 1:
					w.settle(t)
				case 2:
					w.follow(t)
				}
				w.check(t)
				w.advance(t, pause)
				w.check(t)
			}
		}
		succeed := func(t *rapid.T) { w.end(t, nil) }
		reset := func(*rapid.T) {
			w.m.Reset()
			w.stopped = false
			for i := range w.things {
				w.things[i].hopes.latched = false
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"move": w.move, "move again": w.move, "and again": w.move,
			"release": w.release, "take over": w.takeOver,
			"hold": hold, "hold again": hold,
			"pass": w.pass, "pass again": w.pass, "stall": w.stall,
			"tick":  func(*rapid.T) { w.m.Tick(w.now) },
			"begin": w.begin, "begin again": w.begin,
			"succeed": succeed, "succeed again": succeed,
			"read": w.read, "read again": w.read,
			"fail":   func(t *rapid.T) { w.end(t, errLoose) },
			"settle": w.settle, "settle again": w.settle, "follow": w.follow, "follow again": w.follow,
			"well": w.well, "well again": w.well, "flow": w.flow, "flow again": w.flow,
			"tell": func(t *rapid.T) {
				w.tell(t, rapid.SampledFrom([]string{tankLevel, door, flowRate}).Draw(t, "point"), rapid.IntRange(0, 3).Draw(t, "good") > 0,
					rapid.SampledFrom([]device.Value{on, off, device.Number(20), device.Number(19.9), device.Number(math.NaN()), {}}).Draw(t, "value"),
					rapid.SampledFrom([]time.Duration{0, time.Second, 29 * time.Second, time.Minute, Unlimited}).Draw(t, "age"))
			},
			"stop":        func(*rapid.T) { w.m.Stop(); w.stopped = true; everyHolder("") },
			"reset":       reset,
			"reset again": reset,
			"restart": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
					w.start()
				}
			},
			"reload": w.reload,
			"park": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
					w.m.Park()
					w.parked = true
					everyHolder("")
				}
			},
			"": w.check,
		})
	})
	t.Logf("%d steps", total)
	if *thorough && total < 1_000_000 && !t.Failed() {
		t.Errorf("only %d steps", total)
	}
}

// well tells that all is as it is required.
func (w *world) well(t *rapid.T) {
	w.tell(t, tankLevel, true, device.Number(60), 0)
	w.tell(t, door, true, on, 0)
}
