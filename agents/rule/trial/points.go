package trial

import (
	"time"

	"agentsite/agents/rule"
	"agentsite/device"
)

// staleSummaries is how many of its periods a summary is good without another one, as readings
// are on a site.
const staleSummaries = 3

// point is the latest reading of a point, as the site's hub keeps it.
type point struct {
	address  string
	kind     device.Kind
	goodFor  time.Duration
	output   int // of the outputs that the rules move; -1 for a point that is as it was
	watchers []watcher

	seen    bool
	latest  rule.Reading // its Age and Known are as they were told last
	at      time.Duration
	staleAt time.Duration

	requiring []int         // outputs that require it
	maxAge    time.Duration // that they require
	told      time.Duration // when the guard was told last
	until     time.Duration // a summary stands for the readings until then
}

// watcher is a rule that is told of a point.
type watcher struct {
	rule *driven
	slot int
}

// put takes a reading in. Like the site's hub it tells the guard of each one, and the rules of
// those that say something new.
func (r *run) put(p *point, at time.Duration, v device.Value, every time.Duration) {
	if p.seen && at < p.at {
		return
	}
	if p.requiring != nil {
		p.until = 0
		if every > 0 && !v.IsZero() {
			p.until = at + max(p.goodFor, staleSummaries*every)
		}
		r.tellGuard(p, v, r.now-at)
	}
	changed := !p.seen || p.latest.Value != v || p.goodFor == 0 || r.now >= p.staleAt
	p.seen, p.latest.Value, p.at, p.staleAt = true, v, at, never
	if !v.IsZero() && p.goodFor > 0 {
		p.staleAt = at + max(p.goodFor, staleSummaries*every) + 1
		if p.staleAt < r.stale {
			r.stale, r.wake = p.staleAt, min(r.wake, p.staleAt)
		}
	}
	if changed {
		r.mark(p)
	}
}

// mark passes a point's change to the rules that use it. A rule that is settled afterwards is not
// evaluated.
func (r *run) mark(p *point) {
	for _, w := range p.watchers {
		d := w.rule
		if d.dirty() || r.tellableAt(d) > r.now {
			r.markSlot(w)
			continue
		}
		r.countUpdate(d)
		if r.tell(d, &d.slots[w.slot]); !d.machine.Settled(r.now) {
			r.readyAt(d, r.now)
			r.wake = min(r.wake, r.now)
		}
	}
}

func (r *run) markSlot(w watcher) {
	d := w.rule
	if d.slots[w.slot].dirty = true; d.dirty() {
		d.first, d.end = min(d.first, w.slot), max(d.end, w.slot+1)
	} else {
		d.first, d.end = w.slot, w.slot+1
	}
	r.readyAt(d, min(d.look, r.tellableAt(d)))
	r.wake = min(r.wake, d.ready)
}

// markStale has the rules told of readings that became stale.
func (r *run) markStale() {
	r.stale = never
	for i := range r.points {
		p := &r.points[i]
		if p.staleAt > r.now {
			r.stale = min(r.stale, p.staleAt)
		} else if p.staleAt > 0 {
			r.mark(p)
			p.staleAt = 0
		}
	}
}

// reading returns what a rule is told of the point now. It is valid until the next call.
func (p *point) reading(now time.Duration) *rule.Reading {
	if p.seen {
		p.latest.Age, p.latest.Known = now-p.at, !p.latest.Value.IsZero() && now < p.staleAt
	} else {
		p.latest.Known = p.kind == device.KindEvent // nothing has happened yet
	}
	return &p.latest
}

func (r *run) tellGuard(p *point, v device.Value, age time.Duration) {
	p.told = r.now
	r.outputs.m.Told(r.now, p.address, !v.IsZero(), v, age)
	r.outputs.settleSome(-1)
	r.telling = min(r.telling, p.retellAt())
	r.wake = min(r.wake, r.telling)
}

// retellAt returns when the guard is told of a summary again, which stands for many readings.
func (p *point) retellAt() time.Duration {
	if at := p.told + max(p.maxAge/2, time.Second); p.requiring != nil && at <= p.until {
		return at
	}
	return never
}

func (r *run) retell() {
	r.telling = never
	for i := range r.points {
		p := &r.points[i]
		if at := p.retellAt(); at <= r.now {
			r.tellGuard(p, p.latest.Value, 0)
		} else {
			r.telling = min(r.telling, at)
		}
	}
}
