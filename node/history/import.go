package history

import (
	"errors"
	"time"

	"agentsite/device"
)

// Import adds past readings of a measurement, in the order of their time, and returns how many it
// took. Each is the summary of one or more. It leaves out readings in hours of UTC for which the
// history has readings, so that an import can be repeated. Where minutes are not kept any more, it
// keeps hours. Import waits for the disk, and is all or nothing. An error that the caller can
// correct is a device.Fault that is Invalid.
func (h *History) Import(address string, readings []device.Summary) (taken int, err error) {
	return h.importReadings(address, readings, false)
}

// WouldImport returns what Import would, and changes nothing.
func (h *History) WouldImport(address string, readings []device.Summary) (taken int, err error) {
	return h.importReadings(address, readings, true)
}

func (h *History) importReadings(address string, readings []device.Summary, dry bool) (taken int, err error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	v := h.view(address)
	switch {
	case v.disk == nil:
		return 0, device.Faultf(device.Invalid, "this site keeps its history in memory only")
	case v.live.kind != device.KindMeasurement:
		return 0, device.Faultf(device.Invalid, "%s is no measurement of this site", address)
	}
	now, known := h.Now()
	if !known { // the hours that the site has may turn out to be others
		return 0, device.Faultf(device.Invalid, "the site's clock is not set: set it with agentsite clock --set, and import then")
	}
	if len(readings) == 0 {
		return 0, nil
	}
	if err := checkReadings(readings, now, v.live.within); err != nil {
		return 0, err
	}
	first, last := floor(readings[0].At.UnixMilli(), msHour), readings[len(readings)-1].At.UnixMilli()
	has := make(map[int64]bool)
	v.read(first, floor(last, msHour)+msHour, hours, hours, func(wall int64, _ bucket) bool { has[floor(wall, msHour)] = true; return true })
	v.readImported(first, floor(last, msHour)+msHour, func(b bucket) { has[floor(b.t, msHour)] = true })
	var c collector // whose time is that of the wall
	var all []bucket
	minutesFrom := floor(now.Add(-h.options.Minutes).UnixMilli(), msHour)
	for _, r := range readings {
		b := bucket{t: r.At.UnixMilli(), good: uint32(r.Good), min: r.Min, max: r.Max, sum: r.Mean * float64(r.Good), last: r.Last}
		if has[floor(b.t, msHour)] {
			continue
		}
		length := int64(msMinute)
		if b.t < minutesFrom {
			length = msHour
		}
		all = c.addTo(all, b, length)
		taken += r.Good
	}
	if taken == 0 || dry {
		return taken, nil
	}
	h.mu.Lock()
	t := &h.tiers[imported]
	end, _ := t.end()
	of := head{seq: end.seq + 1, from: end.seq, first: all[0].t, last: all[len(all)-1].t}
	t.add(of, []entry{{v.live.key, formBuckets, appendBuckets(nil, of.first, all)}})
	h.mu.Unlock()
	if _, err := h.writeTier(t); err != nil {
		h.mu.Lock()
		t.unwritten, t.waiting = nil, 0
		h.mu.Unlock()
		return 0, err
	}
	h.expire(now, known)
	return taken, nil
}

// maxReadings limits a call of Import, so that no sum of counts overflows.
const maxReadings = 10_000

// checkReadings checks readings from outside. As live ones, they are within the range of their point,
// if that has one.
func checkReadings(all []device.Summary, now time.Time, within device.Range) error {
	if len(all) > maxReadings {
		return device.Faultf(device.Invalid, "%d summaries at once, and at most %d are taken", len(all), maxReadings)
	}
	before := time.UnixMilli(0)
	for _, r := range all {
		err := r.Check()
		switch {
		case r.At.Before(before):
			err = errors.New("not in the order of time, or from before 1970")
		case r.At.After(now):
			err = errors.New("in the future by the site's clock")
		case err == nil && within != (device.Range{}) && !(within.Contains(r.Min) && within.Contains(r.Max)):
			err = device.Faultf(device.Invalid, "%v to %v is outside the point's range, %v", r.Min, r.Max, within)
		}
		if err != nil {
			return device.Faultf(device.Invalid, "%s: %w", r.At.UTC().Format(time.RFC3339), err)
		}
		before = r.At
	}
	return nil
}

// readImported calls yield for the imported readings of the point in a range, and around it, in no
// order.
func (v *view) readImported(from, to int64, yield func(b bucket)) {
	v.tiers[imported].each(v.disk, func(k head) bool { return v.touches(k, from, to) }, func(k head, payload []byte) {
		parsePayload(payload, v.live.key, func(e entry) bool {
			if e.form == formBuckets {
				decodeBuckets(e.data, k.first, func(b bucket) bool { yield(b); return true })
			}
			return true
		})
	})
}
