package beacon

import (
	"context"
	"crypto/cipher"
	"fmt"
	"slices"
	"sync"
	"time"

	"agentsite/device"
)

const (
	// refresh is the period in which a value that did not change is emitted while the device is heard.
	refresh = 10 * time.Second
	// repeats is the time for which an advertisement with the same number is the same one, sent again.
	repeats = 4 * time.Second
	// A device advertises at most every 20 ms. More than maxRate a second of one address are dropped.
	maxRate = 50
	// maxEvents limits the events that wait for the watcher.
	maxEvents = 16
)

// beacon is a device that advertises. It is a Watcher and no Sensor, because it cannot be asked.
type beacon struct {
	of        *family
	at        address
	desc      device.Description
	key       cipher.Block // nil for no encryption
	lostAfter time.Duration
	scanner   *scanner
	wake      chan struct{} // has room for one: something changed for the watcher
	closing   chan struct{}

	mu      sync.Mutex // guards the following
	points  []point
	events  []device.Reading
	buf     []said
	closed  bool
	radio   error  // why nothing can be heard; nil while the scan runs
	trouble error  // why the last advertisement of this device was not read
	counter uint32 // of the last encrypted advertisement
	known   bool   // there is a counter
	packet  int    // number of the last advertisement; -1 for none
	last    time.Time
	second  time.Time // since when count counts
	count   int
}

// point holds the state of one point of a beacon.
type point struct {
	name    string // in the format
	nth     int
	desc    device.Point
	now     device.Reading // zero before the first
	emitted device.Reading
	dirty   bool
}

func newBeacon(of *family, at address, desc device.Description, key cipher.Block, lostAfter time.Duration) *beacon {
	b := &beacon{of: of, at: at, desc: desc, key: key, lostAfter: lostAfter, packet: -1,
		wake: make(chan struct{}, 1), closing: make(chan struct{}), radio: errStarting}
	for _, p := range desc.Points {
		q := point{name: p.Name, nth: 1, desc: p}
		if o, nth := ordinal(p.Name); of == &bthome && o != nil {
			q.name, q.nth = o.name, nth
		}
		b.points = append(b.points, q)
	}
	return b
}

func (b *beacon) Describe() device.Description { return b.desc }

// Close stops listening.
func (b *beacon) Close() error {
	b.mu.Lock()
	was := b.closed
	b.closed = true
	b.mu.Unlock()
	if was {
		return nil
	}
	close(b.closing)
	b.scanner.remove(b)
	return nil
}

// heard takes an advertisement of this address in. It is called by the scan, and quick.
func (b *beacon) heard(ad *advert) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Sub(b.second) >= time.Second {
		b.second, b.count = now, 0
	}
	if b.count++; b.count > maxRate || b.closed {
		return
	}
	all, n, err := b.of.read(b.key, ad, b.buf[:0])
	b.buf = all
	if err == nil && n.encrypted {
		err = b.follows(n.counter)
	}
	switch {
	case err == errRepeated:
		return
	case err == errOther && b.trouble == nil && b.last.IsZero(), err != nil && err != errOther:
		b.fail(err)
		return
	case err != nil:
		return
	}
	b.trouble = nil
	again := n.packet >= 0 && n.packet == b.packet && now.Sub(b.last) < repeats
	b.packet, b.last = n.packet, now
	for _, s := range all {
		b.take(s, now, again)
	}
	b.notify()
}

// follows decides whether an encrypted advertisement is newer than the last one. Its counter must grow, so that nobody
// can play a recorded one. A repeated one says nothing new.
func (b *beacon) follows(counter uint32) error {
	switch {
	case b.known && counter == b.counter:
		return errRepeated
	case b.known && counter < b.counter:
		return device.Faultf(device.Denied, "its counter went back from %d to %d: somebody plays a recording, or its "+
			"battery was changed; after a change, restart the site", b.counter, counter)
	}
	b.counter, b.known = counter, true
	return nil
}

// fail keeps why an advertisement was not read, for the point's fault. Good values stay good: anybody near can send what
// cannot be read.
func (b *beacon) fail(err error) {
	if b.trouble == nil || b.trouble.Error() != err.Error() {
		b.trouble = err
		b.notify()
	}
}

// take takes one value in. An event of a repeated advertisement happened once.
func (b *beacon) take(s said, now time.Time, again bool) {
	for i := range b.points {
		p := &b.points[i]
		if p.name != s.name || p.nth != s.nth {
			continue
		}
		r := device.Reading{Point: p.desc.Name, Value: s.value, Quality: device.Good, At: now}
		limited := p.desc.Range != (device.Range{})
		switch {
		case s.event:
			if !s.value.IsZero() && !again {
				if len(b.events) == maxEvents {
					b.events = slices.Delete(b.events, 0, 1)
				}
				b.events = append(b.events, r)
			}
			return
		case s.value.IsZero():
			r.Quality, r.Why = device.Bad, p.desc.Name+" is not available; the device says that it cannot measure it"
		case limited && !p.desc.Range.Contains(s.value.Number()):
			r.Quality, r.Value = device.Bad, device.Value{}
			r.Why = fmt.Sprintf("%s reads %v, which cannot be: only %v can; the device is broken, or something else sends in "+
				"its name", p.desc.Name, s.value, p.desc.Range)
		}
		p.now, p.dirty = r, true
		return
	}
}

func (b *beacon) notify() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// listening tells that the scan runs, or why not.
func (b *beacon) listening(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.radio = err
	b.notify()
}

// Watch emits values as they are heard, and a fault of each point that was not heard for too long.
func (b *beacon) Watch(ctx context.Context, emit func(device.Reading)) error {
	lost := time.NewTimer(time.Hour)
	defer lost.Stop()
	b.forget()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		readings, next := b.due(time.Now())
		for _, r := range readings {
			emit(r)
		}
		lost.Reset(next)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.closing:
			return device.Faultf(device.Offline, "%s is closed", b.desc.Model)
		case <-b.wake:
		case <-lost.C:
		}
	}
}

// forget has a new watcher told everything.
func (b *beacon) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.points {
		b.points[i].emitted = device.Reading{}
		b.points[i].dirty = true
	}
}

// due returns the readings to emit now, and when to look again.
func (b *beacon) due(now time.Time) (all []device.Reading, next time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, b.events = append(all, b.events...), b.events[:0]
	next = maxLost
	for i := range b.points {
		p := &b.points[i]
		if p.desc.Kind == device.KindEvent {
			continue
		}
		r := p.now
		if r.Point == "" || b.radio != nil || now.Sub(r.At) >= b.lostAfter {
			r = device.Reading{Point: p.desc.Name, Quality: device.Bad, At: now, Why: b.why(p, now)}
		} else {
			next = min(next, r.At.Add(b.lostAfter).Sub(now))
		}
		same := r.Value == p.emitted.Value && r.Quality == p.emitted.Quality
		switch since := now.Sub(p.emitted.At); {
		case same && r.Quality == device.Good && (!p.dirty || since < refresh), same && r.Why == p.emitted.Why && r.Quality != device.Good:
			continue
		case same && since < time.Second: // only the reason is another
			next = min(next, time.Second-since)
			continue
		}
		p.emitted, p.dirty = r, false
		all = append(all, r)
	}
	return all, next
}

// why says why p has no value.
func (b *beacon) why(p *point, now time.Time) string {
	switch {
	case b.radio != nil:
		return b.radio.Error()
	case b.trouble != nil:
		return b.at.String() + ": " + b.trouble.Error()
	case !b.last.IsZero() && now.Sub(b.last) < b.lostAfter:
		return b.at.String() + " is heard, and does not advertise " + p.desc.Name + "; compare inputs with what agentsite scan shows"
	case p.now.Point == "":
		return b.at.String() + " was not heard yet; bring it nearer, look at its battery and compare the address"
	}
	return fmt.Sprintf("%s was not heard for %s; look at its battery and bring it nearer", b.at,
		device.FormatDuration(b.lostAfter))
}
