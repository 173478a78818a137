package mqtt

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/driver"
)

const (
	closeTimeout = 1500 * time.Millisecond
	// An output away from safe that can be asked is asked when it has been silent for askAfter, and is a fault after
	// silentFor.
	askAfter  = 4 * time.Second
	silentFor = 10 * time.Second
	// watchPause bounds how often a Watch reports.
	watchPause = 100 * time.Millisecond
)

// dev is a device behind a broker.
type dev struct {
	resolved
	fresh  time.Duration
	broker *broker
	topic  []string // all that it reads

	busy device.Mutex // held while an output is moved

	mu      sync.Mutex
	states  []state // as points
	down    string  // why there is no connection; "" while there is one
	present []bool  // as available: it says that the device is there
	known   []bool  // as available: it has said something
	changed chan struct{}
	number  uint64 // of the last change
	closed  bool
}

// state holds the state of a point.
type state struct {
	value  device.Value // zero for none
	why    string       // there is none
	at     time.Time    // when the message came
	kept   bool         // by the broker: its age is not known
	number uint64       // of the message
	raw    float64      // of a level

	applied device.Value // of an output: the value of the last command that was confirmed
	sent    float64      // and the raw number in it
	sentAt  time.Time    // the last command
	askedAt time.Time
}

func newDevice(r resolved, fresh time.Duration) *dev {
	d := &dev{
		resolved: r, fresh: fresh, busy: device.NewMutex(), changed: make(chan struct{}),
		states: make([]state, len(r.points)), present: make([]bool, len(r.available)), known: make([]bool, len(r.available)),
	}
	for _, p := range r.points {
		d.topic = append(d.topic, p.topic)
	}
	for _, a := range r.available {
		d.topic = append(d.topic, a.topic)
	}
	slices.Sort(d.topic)
	d.topic = slices.Compact(d.topic)
	return d
}

func (d *dev) topics() []string { return d.topic }

// Describe is constant.
func (d *dev) Describe() device.Description { return d.desc }

// touch tells of a change. The caller holds mu.
func (d *dev) touch() {
	d.number++
	close(d.changed)
	d.changed = make(chan struct{})
}

// lost forgets all states, because there is no connection.
func (d *dev) lost(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = why
	d.forget("")
	clear(d.present)
	clear(d.known)
	d.touch()
}

// found says that there is a connection. All is said anew.
func (d *dev) found() { d.lost("") }

func (d *dev) forget(why string) {
	for i := range d.states {
		s := &d.states[i]
		s.value, s.why, s.kept, s.at = device.Value{}, why, false, time.Time{}
	}
}

// refuse notes that a topic cannot be read.
func (d *dev) refuse(topic string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, p := range d.points {
		if p.topic == topic {
			d.states[i].value, d.states[i].why = device.Value{}, "the broker does not let the user read "+topic+"; look at its permissions"
		}
	}
	d.touch()
}

// take takes a message.
func (d *dev) take(topic string, payload []byte, kept bool) {
	if _, mine := slices.BinarySearch(d.topic, topic); !mine {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, a := range d.available {
		if a.topic == topic {
			d.takePresence(i, payload)
		}
	}
	d.takeValues(topic, payload, kept)
	d.touch()
}

// takePresence takes a message of an availability. An older Zigbee2MQTT writes online instead of {"state":"online"}.
func (d *dev) takePresence(i int, payload []byte) {
	a := d.available[i]
	said := plain(payload)
	if a.path != "" && len(payload) > 0 && payload[0] == '{' {
		paths, err := driver.NewPaths([]driver.Path{a.path})
		if err != nil {
			return
		}
		found, err := paths.In(payload)
		if err != nil {
			return
		}
		said = found[0]
	}
	was := d.present[i]
	d.known[i], d.present[i] = true, word1(said) == a.on
	if !d.present[i] { // what was said before says nothing about what is then
		d.forget("it has said nothing since it was away")
	}
	for k := range d.states {
		if s := &d.states[k]; s.kept && !was && d.present[i] { // from now on it is believed
			s.at = time.Now()
		}
	}
}

// takeValues takes the values of points from a message.
func (d *dev) takeValues(topic string, payload []byte, kept bool) {
	in := d.json[topic]
	var found []jsontext.Value // as in.points
	var bad error
	if len(in.points) > 0 {
		if found, bad = in.paths.In(payload); bad != nil {
			bad = fmt.Errorf("its message cannot be read: %w; look at %s", bad, topic)
		}
	}
	for i, p := range d.points {
		if p.topic != topic || kept && d.states[i].live() {
			continue // what the broker has kept is no newer
		}
		said, err := plain(payload), bad
		if p.path != "" && bad == nil {
			at := slices.Index(in.points, i)
			if said = found[at]; said == nil {
				continue // a message about something else: many devices tell only what has changed
			}
			if p.unitPath != "" && found[at+1] != nil {
				err = p.quantity.CheckUnit(found[at+1])
			}
		}
		var v device.Value
		if err == nil {
			v, err = p.decode(said)
		}
		if p.path == "" && said == nil {
			err = fmt.Errorf("its message is no short text; look at %s, and at path", topic)
		}
		s := &d.states[i]
		s.put(v, err, d.number+1)
		s.kept = kept
		if p.Kind == device.KindLevel {
			s.raw = device.Tidy(p.quantity.Raw(v.Number()))
		}
	}
}

// live reports whether the device itself has said it on this connection.
func (s *state) live() bool { return !s.at.IsZero() && !s.kept }

// put sets a state, with the number of its message.
func (s *state) put(v device.Value, err error, number uint64) {
	s.value, s.why, s.at, s.number = v, "", time.Now(), number
	if err != nil {
		s.value, s.why = device.Value{}, err.Error()
	}
}

// away returns why the device is not there; "" where nothing says so. The caller holds mu.
func (d *dev) away() string {
	for i, a := range d.available {
		switch {
		case d.known[i] && !d.present[i]:
			return "it is away: " + a.topic + " does not say " + a.on + "; look at its supply and its connection"
		case a.needed && !d.known[i]:
			return "nothing says whether it is there: the broker has nothing in " + a.topic + "; look at its name and at what publishes it"
		}
	}
	return ""
}

// vouched reports whether something says that the device is there now. The caller holds mu.
func (d *dev) vouched() bool {
	for i, a := range d.available {
		if a.vouches && d.present[i] {
			return true
		}
	}
	return false
}

// judge returns the reading of a point now. The caller holds mu.
func (d *dev) judge(i int, now time.Time) device.Reading {
	p, s := d.points[i], &d.states[i]
	r := device.Reading{Point: p.Name, Quality: device.Bad, At: now}
	fresh := d.fresh
	if p.out != nil {
		fresh = 0
	}
	if fresh == 0 && !d.vouched() {
		fresh = freshFor
	}
	switch r.Why = cmp.Or(d.down, d.away()); {
	case r.Why != "":
	case s.value.IsZero():
		r.Why = cmp.Or(s.why, "it has said nothing yet")
	case s.kept && !d.vouched():
		r.Why = "the broker has kept its last message, whose age is not known; wait for the next one, or write available"
	case fresh != 0 && now.Sub(s.at) > fresh:
		r.Why = "it has said nothing for " + device.FormatDuration(now.Sub(s.at).Truncate(time.Second)) + "; look at its supply, and at fresh"
	case p.out != nil && p.out.ask != "" && s.value != p.Safe && !s.askedAt.IsZero() && now.Sub(s.at) > silentFor && s.askedAt.After(s.at):
		r.Why = "it does not answer; look at its supply and its connection"
	default:
		r.Value, r.Quality, r.At, r.Why = p.readBack(s), device.Good, s.at, ""
	}
	return r
}

// readBack returns the value of a state. A level that is where a command left it has the value of the command,
// whatever the device's steps are.
func (p point) readBack(s *state) device.Value {
	if p.Kind == device.KindLevel && !s.applied.IsZero() && p.near(s.raw, s.sent) {
		return s.applied
	}
	return s.value
}

// near reports whether two raw numbers are the same to the device.
func (p point) near(a, b float64) bool {
	return math.Abs(a-b) <= max(p.out.step/2, 1e-9*max(math.Abs(a), math.Abs(b)))
}

// Sample returns the last values that the device sent. An output that is away from safe is asked where it has been
// silent, and its command is repeated where it holds only for a time: so the device goes off when nobody reads it any
// more.
func (d *dev) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := time.Now()
	var ask, repeat []int
	d.mu.Lock()
	all := make([]device.Reading, 0, len(d.points))
	for i, p := range d.points {
		r := d.judge(i, now)
		all = append(all, r)
		s := &d.states[i]
		if p.out == nil || r.Quality != device.Good || r.Value == p.Safe {
			continue
		}
		if p.out.ask != "" && now.Sub(s.at) > askAfter && now.Sub(s.askedAt) > askAfter {
			ask = append(ask, i)
			s.askedAt = now
		}
		if p.out.hold != 0 && s.applied == r.Value && now.Sub(s.sentAt) > p.out.hold/3 {
			repeat = append(repeat, i)
			s.sentAt = now
		}
	}
	d.mu.Unlock()
	if len(ask)+len(repeat) > 0 {
		d.remind(ctx, ask, repeat)
	}
	return all, nil
}

// remind asks outputs for their states, and repeats commands that hold for a time, unless one of them is being moved, or
// was moved since.
func (d *dev) remind(ctx context.Context, ask, repeat []int) {
	b := d.broker
	b.mu.Lock()
	l := b.link
	b.mu.Unlock()
	if l == nil || !d.busy.TryLock() {
		return
	}
	defer d.busy.Unlock()
	for _, i := range ask {
		l.ask(ctx, d.points[i])
	}
	for _, i := range repeat {
		d.mu.Lock()
		on := d.states[i].applied == device.Bool(true)
		d.mu.Unlock()
		if on { // busy is held: nobody switches it off meanwhile
			l.repeat(ctx, d.points[i])
		}
	}
}

// Watch reports what the device says, and that it is lost, as it happens.
func (d *dev) Watch(ctx context.Context, emit func(device.Reading)) error {
	told := make([]device.Reading, len(d.points))
	for {
		d.mu.Lock()
		changed, now := d.changed, time.Now()
		var news []device.Reading
		for i, p := range d.points {
			if p.out != nil {
				continue
			}
			r := d.judge(i, now)
			same := told[i].Quality == r.Quality && told[i].Why == r.Why && (r.Quality == device.Bad || told[i].At.Equal(r.At))
			if !same {
				told[i] = r
				news = append(news, r)
			}
		}
		d.mu.Unlock()
		for _, r := range news {
			emit(r)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		if err := device.Sleep(ctx, watchPause); err != nil {
			return err
		}
	}
}
