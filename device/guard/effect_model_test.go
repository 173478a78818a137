package guard

import (
	"time"

	"agentsite/device"

	"pgregory.net/rapid"
)

// hopes holds an observer's view of the effect that an output has to have.
type hopes struct {
	moved   bool // the hardware was at a value away from safe, on this trip
	at      Time // for the first time
	last    told // the last reading since then
	since   Time // since when all readings show it, if the last one does
	fails   Time // without another one that shows it
	seen    bool // it was confirmed
	latched bool
	is      Effect
	vain    vain // since the last rest
}

// hopes begin when the hardware is away from safe and somebody wants it there, whichever came first.
func (w *world) beginHopes(o *thing) {
	away := !o.hardware.IsZero() && o.hardware != o.Safe && o.writing.IsZero()
	if !away || o.asked == o.Safe || o.hopes.moved {
		return
	}
	v := o.hopes.vain
	left := w.now
	if o.out {
		left = o.left
	}
	if n := len(o.trips); !v.counts && (n == 0 || left-o.trips[n-1].to >= o.Rest) {
		v.used = 0
	}
	if !v.counts {
		v.from, v.counts = w.now, true
	}
	o.hopes = hopes{moved: true, at: w.now, fails: v.from + o.Expects.By - v.used, vain: v}
}

// failing reports whether the effect did not come, and the hardware is not known to be back.
func (o *thing) failing(now Time) bool {
	h := o.hopes
	late := o.asked == o.Safe && now >= h.vain.from+o.Expects.By-h.vain.used
	return o.Expects.Point != "" && h.vain.counts && o.Expects.Else != ElseAlarm && (h.is == Failed || late)
}

// endHopes adds up what was hoped for in vain, once the hardware is at safe.
func (o *thing) endHopes(now Time) {
	v := &o.hopes.vain
	if v.counts && o.hopes.is == Awaited {
		*v = vain{used: v.used + now - v.from}
	} else {
		*v = vain{}
	}
}

// hope takes a reading, as the owner's words have it: several in a row, for a while.
func (o *thing) hope(now Time, good bool, v device.Value, at Time) {
	h := &o.hopes
	if !h.moved || at <= max(h.at, h.last.at) || o.hopeless(now) && o.Expects.Else != ElseAlarm {
		return
	}
	showed := h.last.good
	h.last = told{good && v.Type() == device.TypeNumber && v.Number() >= o.Expects.Within.Min, v, at}
	if h.last.good && !showed {
		h.since = at
	}
	if fails := at + o.Expects.By; showed && h.last.good && 10*(at-h.since) >= o.Expects.By && fails > now {
		h.fails, h.seen, h.vain.used, h.vain.from = fails, true, 0, at
	}
}

// hopeless reports whether the effect did not come in time.
func (o *thing) hopeless(now Time) bool {
	return o.Expects.Point != "" && o.hopes.moved && now >= o.hopes.fails
}

// checkHopes compares the reported effect with the expected one, and ends the trip.
func (w *world) checkHopes(t *rapid.T, o *thing, s Status) {
	h := &o.hopes
	if s.Latched != h.latched && !o.hopeless(w.now) {
		t.Fatalf("%s is latched: %v", o.Output, s.Latched)
	}
	if o.Expects.Point == "" || !h.moved {
		return
	}
	is := Awaited
	switch {
	case o.hopeless(w.now):
		is = Failed
		h.latched = h.latched || o.Expects.Else == ElseLatch
	case h.seen:
		is = Confirmed
	}
	h.is = is
	if s.Effect != is || s.Latched != h.latched {
		t.Fatalf("the effect of %s is %q, latched %v, at %v; want %q, %v: %+v", o.Output, s.Effect, s.Latched, w.now, is,
			h.latched, *h)
	}
	if s.Goal == o.Safe {
		h.moved = false
	}
}

// flow has water flow for some seconds.
func (w *world) flow(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "readings") {
		w.tell(t, flowRate, true, device.Number(0.2), 0)
		w.check(t)
		w.advance(t, rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 2 * time.Second, 5*time.Second - 1, 5 * time.Second}).Draw(t, "until the next"))
		w.check(t)
	}
}
