package trial

import (
	"time"

	"agentsite/agents/rule"
	"agentsite/device"
)

// driven is a rule at work. It is told what changed as a watch of the site tells it, and
// evaluated as often.
type driven struct {
	Rule
	bit     uint64        // in run.ready
	machine *rule.Machine // nil where there is a mistake
	mistake string
	slots   []slot
	uses    []use // by the machine's outputs

	first     int           // of the slots, the first that is dirty,
	end       int           // and the one after the last
	ready     time.Duration // when it has something to do
	second    time.Duration // in which count updates were told
	count     int
	counted   int           // run.round of the last update; 0 after the rule's evaluation
	holdUntil time.Duration // it is not told anything before
	look      time.Duration // when the machine is asked although it is told nothing
}

// slot is a point that a rule is told of.
type slot struct {
	point  int
	input  int // in Machine.Points; -1 for none
	output int // in Machine.Outputs; -1 for none
	dirty  bool
	lease  lease
}

// use collects the moves of an output by one rule.
type use struct {
	output  int // in outputs.all
	total   Use
	refused []RefusedMoves
}

// dirty reports whether some slot is.
func (d *driven) dirty() bool { return d.first < d.end }

func (d *driven) slot(point int) int {
	for k := range d.slots {
		if d.slots[k].point == point {
			return k
		}
	}
	return -1
}

// countUpdate counts an update against rule.PerSecond. All changes of one round are one update.
func (r *run) countUpdate(d *driven) {
	if d.counted == r.round {
		return
	}
	if d.counted = r.round; r.now-d.second >= time.Second {
		d.second, d.count = r.now, 0
	}
	if d.count++; d.count >= rule.PerSecond {
		d.holdUntil = d.second + time.Second
	}
}

// tellableAt returns the earliest time for the next change: now if the round's update is counted
// already, and otherwise the end of holdUntil.
func (r *run) tellableAt(d *driven) time.Duration {
	if d.counted == r.round {
		return r.now
	}
	return d.holdUntil
}

// update tells a rule what changed, and has it decide.
func (r *run) update(d *driven) {
	r.countUpdate(d)
	first, end := d.first, d.end
	d.first, d.end = 0, 0
	for k := first; k < end; k++ {
		s := &d.slots[k]
		if !s.dirty {
			continue
		}
		s.dirty = false
		p := &r.points[s.point]
		if s.input >= 0 {
			r.tell(d, s)
		}
		if p.output < 0 {
			continue
		}
		s.lease = r.outputs.lease(p.output)
		if s.output >= 0 {
			known := !r.outputs.all[p.output].value.IsZero()
			d.machine.Output(r.moment(d), r.now, s.output, rule.Lease{
				Holder: s.lease.holder, Why: s.lease.ended, Rest: millis(s.lease.rest), Known: known,
			})
		}
	}
	r.step(d)
}

// tell tells a rule how the point of a slot is.
func (r *run) tell(d *driven, s *slot) {
	p := &r.points[s.point]
	if p.output >= 0 {
		o := &r.outputs.all[p.output]
		d.machine.Tell(r.now, s.input, &rule.Reading{Value: o.value, Age: r.now - o.valueAt, Known: !o.value.IsZero()})
		return
	}
	d.machine.Tell(r.now, s.input, p.reading(r.now))
}

// refresh tells a rule the ages of its points, which it is not told of while they stay the same.
func (r *run) refresh(d *driven) {
	for k := range d.slots {
		if s := &d.slots[k]; s.input >= 0 && r.points[s.point].kind != device.KindEvent {
			r.tell(d, s)
		}
	}
}

// step makes what a rule decides.
func (r *run) step(d *driven) {
	d.counted = 0
	if !d.machine.Settled(r.now) {
		r.refresh(d)
	} else if d.look > r.now {
		r.again(d)
		return
	}
	now, more := r.moment(d), true
	for i := 0; i < rule.MaxRounds && more; i++ {
		acts, next := d.machine.Step(now)
		for _, a := range acts {
			left, err := r.outputs.move(d, a)
			d.machine.Done(now, a, left, 0, err)
		}
		if more = len(acts) > 0; more {
			next = rule.RoundsPause
		}
		d.look = never
		if next = d.machine.NextLook(now.Wall, next); next > 0 {
			d.look = r.now + next
		}
	}
	r.again(d)
}

// again notes when a rule has something to do next.
func (r *run) again(d *driven) {
	if d.dirty() {
		r.readyAt(d, min(d.look, d.holdUntil))
	} else {
		r.readyAt(d, d.look)
	}
}

// refuse counts a refused move.
func (u *use) refuse(at time.Time, err error) {
	reason := reasonOf(device.AsFault(err))
	for i := range u.refused {
		if u.refused[i].Reason == reason || i == maxReasons-1 {
			u.refused[i].Count++
			return
		}
	}
	u.refused = append(u.refused, RefusedMoves{Reason: reason, Count: 1, First: at})
}
