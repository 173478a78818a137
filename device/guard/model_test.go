package guard

import (
	"errors"
	"flag"
	"math"
	"slices"
	"testing"
	"time"

	"agentsite/device"

	"pgregory.net/rapid"
)

// world is what a bystander sees of a machine and the hardware behind it. It
// shares no bookkeeping with the machine: it knows the policies, what it asked
// for, and what it did to the hardware.
type world struct {
	m               *Machine
	now             Time
	stopped, parked bool
	things          []thing
}

type thing struct {
	Policy
	hardware device.Value // where it is; zero after a failed write
	writing  device.Value // what is being written; zero for nothing
	failed   bool         // the last write failed
	out      bool         // it is away from safe, or meant to be
	left     Time         // since then
	written  bool         // and it has left, or may have
	trips    []trip       // those that are over
	started  bool         // it has been safe once
	leaseEnd Time         // of the last lease that was given
	holder   string       // of it
}

// trip is one time away from safe, until safe was confirmed.
type trip struct{ from, to Time }

// used is the time away that counts against max_on: of this trip and of those
// before it, back to the first rest of min_off.
func (o *thing) used(now Time) time.Duration {
	sum, next := time.Duration(0), now
	if o.out {
		sum, next = now-o.left, o.left
	}
	for _, t := range slices.Backward(o.trips) {
		if next-t.to >= o.MinOff {
			break
		}
		sum, next = sum+t.to-t.from, t.from
	}
	return sum
}

// back ends a trip. One on which nothing was written has not taken place.
func (o *thing) back(now Time) {
	if o.out && o.written {
		o.trips = append(o.trips, trip{o.left, now})
	}
	o.out, o.written = false, false
}

// mayLeave reports whether max_on and the rest after a start let it.
func (o *thing) mayLeave(now Time) bool {
	switch n := len(o.trips); {
	case !o.started:
		return false
	case n == 1 && !o.out && now-o.trips[0].to < o.MinOff: // the start
		return false
	}
	return o.used(now) < o.MaxOn
}

var errLoose = errors.New("loose")

func newWorld(t *rapid.T) *world {
	ps := policies()
	w := &world{stopped: rapid.IntRange(0, 9).Draw(t, "stopped at start") == 9}
	w.m = NewMachine(ps, w.stopped)
	for _, p := range ps {
		w.things = append(w.things, thing{Policy: p, out: true, written: true})
	}
	return w
}

func (w *world) move(t *rapid.T) {
	i := rapid.IntRange(0, len(w.things)-1).Draw(t, "output")
	holder := rapid.SampledFrom([]string{"ann", "ann", "bob", "cid", ""}).Draw(t, "holder")
	v := rapid.SampledFrom([]device.Value{
		on, on, off, off, device.Number(0), device.Number(45), device.Number(90),
		device.Number(90.01), device.Number(-1), device.Number(math.NaN()), device.Number(math.Inf(1)), device.Text("on"), {},
	}).Draw(t, "value")
	length := rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, 1, 30 * time.Second, 2 * time.Minute, DefaultMaxOn, -1, Unlimited}),
		rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(11*time.Minute)).Draw(t, "ns"))
		}),
	).Draw(t, "length")
	w.ask(t, i, holder, v, length)
}

// ask moves an output and judges the answer.
func (w *world) ask(t *rapid.T, i int, holder string, v device.Value, length time.Duration) {
	o := &w.things[i]
	longest := o.MaxOn
	if o.Lease != 0 {
		longest = o.Lease
	}
	allowed, mayLeave := allowed(o.Policy, v), o.mayLeave(w.now)
	err := w.m.Move(w.now, holder, o.Output, v, length)
	if err == nil {
		if !allowed {
			t.Fatalf("%s took %v", o.Output, v)
		}
		if v == o.Safe {
			o.holder = ""
			return
		}
		switch {
		case length < 0 || length > longest:
			t.Fatalf("%s took a lease of %v; %v is the longest", o.Output, length, longest)
		case w.stopped, w.parked, holder == "", o.failed, !mayLeave:
			t.Fatalf("%s moved: stopped %v, parked %v, holder %q, failed %v, may leave %v",
				o.Output, w.stopped, w.parked, holder, o.failed, mayLeave)
		case o.holder != "" && o.holder != holder && w.now < o.leaseEnd:
			t.Fatalf("%s was taken from %s by %s", o.Output, o.holder, holder)
		}
		if length == 0 {
			length = min(time.Minute, longest)
		}
		o.holder, o.leaseEnd = holder, w.now+min(length, Unlimited-w.now)
		return
	}

	// A refusal needs a reason.
	f := device.AsFault(err)
	switch {
	case allowed && v == o.Safe:
		t.Fatalf("%s was refused its safe value: %v", o.Output, err)
	case f.Kind == device.Invalid:
		if allowed && length >= 0 && length <= longest {
			t.Fatalf("refused without a reason: %v", err)
		}
	case f.Kind == device.Busy:
		if o.holder == "" || o.holder == holder || w.now >= o.leaseEnd {
			t.Fatalf("refused without a reason: %v", err)
		}
	case f.Kind == device.Denied:
		if holder != "" {
			t.Fatalf("refused without a reason: %v", err)
		}
	case f.Kind == device.Unavailable:
		if !w.parked {
			t.Fatalf("refused without a reason: %v", err)
		}
	case f.Kind == device.Offline:
		if !o.failed {
			t.Fatalf("refused without a reason: %v", err)
		}
	case f.Kind == device.Unsafe:
		if !w.stopped && mayLeave {
			t.Fatalf("%s has %v of its max_on left, but: %v", o.Output, o.MaxOn-o.used(w.now), err)
		}
	default:
		t.Fatalf("a refusal of kind %s: %v", f.Kind, err)
	}
}

// allowed is the policy, read from the design and not from the code.
func allowed(p Policy, v device.Value) bool {
	if p.Kind == device.KindSwitch {
		return v == on || v == off
	}
	n := v.Number()
	return v.Type() == device.TypeNumber && n >= p.Range.Min && n <= p.Range.Max
}

func (w *world) release(t *rapid.T) {
	o := &w.things[rapid.IntRange(0, len(w.things)-1).Draw(t, "output")]
	if err := w.m.Release(o.Output); err != nil {
		t.Fatal(err)
	}
	o.holder = ""
}

// pass lets time pass, with a Tick whenever Next asks for one.
func (w *world) pass(t *rapid.T) {
	d := rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, 1, time.Second, 10 * time.Second, time.Minute, DefaultMaxOn, time.Hour}),
		rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "ns"))
		}),
	).Draw(t, "time")
	w.advance(t, d)
}

func (w *world) advance(t *rapid.T, d time.Duration) {
	end := w.now + d
	for at, ok := w.m.Next(); ok && at <= end; at, ok = w.m.Next() {
		if at < w.now {
			t.Fatalf("next is %v, which is past: now %v", at, w.now)
		}
		w.now = at
		w.m.Tick(at)
		w.check(t)
	}
	w.now = end
}

func (w *world) begin(t *rapid.T) {
	i := rapid.IntRange(0, len(w.things)-1).Draw(t, "output")
	o := &w.things[i]
	if !o.writing.IsZero() {
		return
	}
	v, pending := w.m.Pending(i)
	if !pending {
		return
	}
	w.m.Driving(i)
	o.writing = v
}

func (w *world) end(t *rapid.T, err error) {
	i := rapid.IntRange(0, len(w.things)-1).Draw(t, "output")
	if !w.things[i].writing.IsZero() {
		w.land(i, err)
	}
}

// land is the end of a write.
func (w *world) land(i int, err error) {
	o := &w.things[i]
	v := o.writing
	o.writing, o.hardware, o.failed = device.Value{}, v, err != nil
	if err != nil {
		o.hardware, o.holder = device.Value{}, ""
	}
	w.m.Applied(w.now, i, v, err)
	if err == nil && v == o.Safe {
		o.started = true
		o.back(w.now)
	}
}

func (w *world) check(t *rapid.T) {
	next, due := w.m.Next()
	if w.m.Stopped() != w.stopped {
		t.Fatalf("stopped is %v, want %v", w.m.Stopped(), w.stopped)
	}
	for i := range w.things {
		o := &w.things[i]
		v, pending := w.m.Pending(i)
		s := w.m.Status(w.now, i)
		longest := o.MaxOn
		if o.Lease != 0 {
			longest = o.Lease
		}

		// A lease ends for a reason.
		if v == o.Safe && o.holder != "" {
			if w.now < o.leaseEnd && o.used(w.now) < o.MaxOn {
				t.Fatalf("%s lost its lease until %v at %v, away for %v", o.Output, o.leaseEnd, w.now, o.used(w.now))
			}
			o.holder = ""
		}

		// The clock of max_on: from the first wish to leave until safe is confirmed.
		physicallySafe := o.hardware == o.Safe && o.writing.IsZero()
		switch {
		case v != o.Safe && !o.out:
			o.out, o.left = true, w.now
		case v == o.Safe && physicallySafe:
			o.back(w.now)
		}
		o.written = o.written || o.out && !physicallySafe

		if !allowed(o.Policy, v) {
			t.Fatalf("%s is wanted at %v, outside its policy", o.Output, v)
		}
		if !pending && (o.hardware != v || !o.writing.IsZero()) {
			t.Fatalf("%s is said to be at %v; it is at %v and %v is being written", o.Output, v, o.hardware, o.writing)
		}
		if s.Safe && !physicallySafe {
			t.Fatalf("%s is said to be safe; it is at %v and %v is being written", o.Output, o.hardware, o.writing)
		}
		if v == o.Safe {
			if s.Holder != "" || s.Left != 0 {
				t.Fatalf("%s is wanted safe and held by %q for %v", o.Output, s.Holder, s.Left)
			}
			continue
		}
		switch {
		case w.stopped, w.parked, o.failed:
			t.Fatalf("%s is wanted at %v: stopped %v, parked %v, failed %v", o.Output, v, w.stopped, w.parked, o.failed)
		case s.Holder == "" || s.Holder != o.holder:
			t.Fatalf("%s is wanted at %v; held by %q, leased to %q", o.Output, v, s.Holder, o.holder)
		case s.Left <= 0 || s.Left > longest || w.now >= o.leaseEnd:
			t.Fatalf("%s is wanted at %v with %v left of a lease until %v, now %v", o.Output, v, s.Left, o.leaseEnd, w.now)
		case o.used(w.now) >= o.MaxOn:
			t.Fatalf("%s is wanted at %v after %v away from safe; max_on %v", o.Output, v, o.used(w.now), o.MaxOn)
		case !due || next > w.now+s.Left || next > o.leaseEnd || next-w.now > o.MaxOn-o.used(w.now):
			t.Fatalf("%s ends in %v, next is %v %v, now %v", o.Output, s.Left, next, due, w.now)
		}
	}
}

func TestModel(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue && !testing.Short() {
		defer flag.Set("rapid.checks", f.DefValue)
		flag.Set("rapid.checks", "2000") // a fifth of a second
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		everyHolder := func(to string) {
			for i := range w.things {
				w.things[i].holder = to
			}
		}
		succeed := func(t *rapid.T) { w.end(t, nil) }
		// hold is a caller who means it: one renewal after the other.
		hold := func(t *rapid.T) {
			i := rapid.IntRange(0, len(w.things)-1).Draw(t, "output")
			o := &w.things[i]
			v := map[string]device.Value{heater: on, vent: device.Number(45), valve: off}[o.Output]
			length := o.Lease
			if length == 0 {
				length = min(o.MaxOn, 10*time.Minute)
			}
			for range rapid.IntRange(1, 6).Draw(t, "times") {
				w.ask(t, i, "ann", v, length)
				w.check(t)
				w.advance(t, rapid.SampledFrom([]time.Duration{length / 2, length - 1}).Draw(t, "pause"))
				w.check(t)
			}
		}
		settle := func(t *rapid.T) { // the hardware catches up, so that runs get deep
			for i := range w.things {
				o := &w.things[i]
				for n := 0; ; n++ {
					if o.writing.IsZero() {
						v, pending := w.m.Pending(i)
						if !pending {
							break
						}
						if n > 2 {
							t.Fatalf("%s is never done", o.Output)
						}
						w.m.Driving(i)
						o.writing = v
					}
					w.land(i, nil)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"move": w.move, "move again": w.move, "and again": w.move,
			"release": w.release,
			"hold":    hold, "hold again": hold,
			"pass": w.pass, "pass again": w.pass,
			"tick":  func(*rapid.T) { w.m.Tick(w.now) },
			"begin": w.begin, "begin again": w.begin,
			"succeed": succeed, "succeed again": succeed,
			"fail":   func(t *rapid.T) { w.end(t, errLoose) },
			"settle": settle, "settle again": settle,
			"stop":        func(*rapid.T) { w.m.Stop(); w.stopped = true; everyHolder("") },
			"reset":       func(*rapid.T) { w.m.Reset(); w.stopped = false },
			"reset again": func(*rapid.T) { w.m.Reset(); w.stopped = false },
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
}
