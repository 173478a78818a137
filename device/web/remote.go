package web

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/lan"
)

const (
	closeTime    = 1500 * time.Millisecond // for bringing outputs to safe at the end
	confirmFirst = 50 * time.Millisecond   // between read-backs of one write
	confirmLast  = 400 * time.Millisecond
	patience     = 300 * time.Millisecond // of an Apply that waits for a Sample, which then gives way
	renewTimeout = time.Second            // of values that are sent again, for which an Apply waits
)

// source is a document that the other side sends when it is asked, and the points that are in it.
type source struct {
	ask    func(ctx context.Context) ([]byte, error)
	points []*point
	paths  driver.Paths // of each point its value and, if wanted, its unit
}

// point is one point of a remote device.
type point struct {
	device.Point
	decode   func(jsontext.Value) (device.Value, error)
	path     driver.Path
	unitPath driver.Path
	source   *source

	// of an output:
	set   func(ctx context.Context, sent device.Value) error // returns once the other side has answered
	step  float64                                            // in which the other side takes numbers; 0 for all
	renew time.Duration                                      // how often a value away from safe is sent again; 0 for never

	now   device.Value // applied last and confirmed; zero if that is not known
	wrote time.Time    // when now was sent last
}

// remote is a device whose server is asked with one request at a time. It has no goroutine of its own.
type remote struct {
	desc    device.Description
	points  []*point
	sources []*source
	release func() error

	ended context.Context // ends with Close
	end   context.CancelFunc
	busy  device.Mutex // held during exchanges; guards the fields below and those of the points

	failed error       // why the last exchange failed; nil if it did not
	pauses lan.Backoff // between the Samples that ask a server that fails
	closed bool

	mu       sync.Mutex // guards the fields below
	urgent   int        // Applies that have lost patience
	sampling context.CancelFunc
}

// newRemote returns the device with these points. release is called at the end.
func newRemote(desc device.Description, points []*point, release func() error) (*remote, error) {
	r := &remote{desc: desc, points: points, release: release, busy: device.NewMutex()}
	for _, p := range points {
		if !slices.Contains(r.sources, p.source) {
			r.sources = append(r.sources, p.source)
		}
		p.source.points = append(p.source.points, p)
	}
	for _, s := range r.sources {
		var paths []driver.Path
		for _, p := range s.points {
			paths = append(paths, p.path)
			if p.unitPath != "" {
				paths = append(paths, p.unitPath)
			}
		}
		var err error
		if s.paths, err = driver.NewPaths(paths); err != nil {
			return nil, err
		}
	}
	r.ended, r.end = context.WithCancel(context.Background())
	return r, nil
}

// Describe is constant.
func (r *remote) Describe() device.Description { return r.desc }

// lock waits for the exchange before. The returned context ends with ctx, or with Close.
func (r *remote) lock(ctx context.Context) (context.Context, func(), error) {
	if err := r.busy.LockContext(ctx); err != nil {
		return nil, nil, err
	}
	if r.closed {
		r.busy.Unlock()
		return nil, nil, device.Faultf(device.Offline, "the device is closed")
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(r.ended, cancel)
	return ctx, func() { stop(); cancel(); r.busy.Unlock() }, nil
}

// hurry makes the Samples that an Apply would wait for give way to it, until the Apply calls done.
func (r *remote) hurry() (done func()) {
	count := func(n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.urgent += n; r.urgent > 0 && r.sampling != nil {
			r.sampling()
		}
	}
	timer := time.AfterFunc(patience, func() { count(1) })
	return func() {
		if !timer.Stop() {
			count(-1)
		}
	}
}

// sampled makes cancel end the Sample that begins; nil after its end.
func (r *remote) sampled(cancel context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sampling = cancel; cancel != nil && r.urgent > 0 {
		cancel()
	}
}

// Sample asks for all documents. It does not ask a server that has just failed: the pauses grow from 1 s to 60 s.
// It begins anew after it has given way to an Apply.
func (r *remote) Sample(ctx context.Context) ([]device.Reading, error) {
	for {
		readings, gaveWay, err := r.sample(ctx)
		if !gaveWay {
			return readings, err
		}
	}
}

func (r *remote) sample(ctx context.Context) (_ []device.Reading, gaveWay bool, err error) {
	locked, unlock, err := r.lock(ctx)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	asking, cancel := context.WithCancel(locked)
	defer cancel()
	r.sampled(cancel)
	readings, err := r.readAll(asking)
	r.sampled(nil)
	if asking.Err() != nil && locked.Err() == nil {
		return nil, true, nil
	}
	if err == nil {
		r.renewAll(locked, readings)
	}
	return readings, false, err
}

// readAll asks for all documents. The caller holds busy.
func (r *remote) readAll(ctx context.Context) ([]device.Reading, error) {
	if r.failed != nil && r.pauses.Due(false) > 0 {
		return nil, r.failed
	}
	readings := make([]device.Reading, 0, len(r.points))
	answered := 0
	var lost, first error // lost: the link, and so all documents that are left
	for _, s := range r.sources {
		err := lost
		var doc []byte
		if err == nil {
			doc, err = s.ask(ctx)
			if lost = linkError(err); err == nil {
				readings = append(readings, s.read(doc)...)
				answered++
				continue
			}
		}
		if first == nil {
			first = err
		}
		for _, p := range s.points {
			readings = append(readings, device.Reading{Point: p.Name, Quality: device.Bad, Why: err.Error(),
				At: time.Now()})
		}
	}
	if answered == 0 {
		r.note(ctx, first)
		return nil, first
	}
	r.note(ctx, lost)
	slices.SortFunc(readings, func(a, b device.Reading) int { return r.place(a) - r.place(b) })
	return readings, nil
}

func (r *remote) place(d device.Reading) int {
	return slices.IndexFunc(r.points, func(p *point) bool { return p.Name == d.Point })
}

// linkError returns err if the server could not be reached or has not answered.
func linkError(err error) error {
	if f := (*linkFault)(nil); errors.As(err, &f) {
		return err
	}
	return nil
}

// note records the result of an exchange, for the pauses of Sample.
func (r *remote) note(ctx context.Context, err error) {
	switch {
	case err == nil:
		r.failed, r.pauses = nil, lan.Backoff{}
	case errors.Is(ctx.Err(), context.Canceled): // the caller gave up
	default:
		r.failed = err
		r.pauses.Tried()
	}
}

// read returns the readings of the source's points in a document.
func (s *source) read(doc []byte) []device.Reading {
	at := time.Now()
	found, err := s.paths.In(doc)
	readings := make([]device.Reading, 0, len(s.points))
	i := 0
	for _, p := range s.points {
		reading := device.Reading{Point: p.Name, Quality: device.Good, At: at}
		why := err
		if why == nil {
			reading.Value, why = p.value(found[i])
			i++
			if p.unitPath != "" {
				if why == nil {
					why = driver.Quantity{Unit: p.Unit}.CheckUnit(found[i])
				}
				i++
			}
		}
		if why != nil {
			reading.Value, reading.Quality, reading.Why = device.Value{}, device.Bad, p.Name+": "+why.Error()
		}
		readings = append(readings, reading)
	}
	return readings
}

// value returns the value that the other side says. It is that of the last Apply if it differs by its rounding only.
func (p *point) value(raw jsontext.Value) (device.Value, error) {
	v, err := p.decode(raw)
	if err == nil && p.now.Type() == device.TypeNumber && p.near(v, p.now) {
		v = p.now
	}
	return v, err
}

// near reports whether the other side, which was told to be at v, may say said.
func (p *point) near(said, v device.Value) bool {
	if p.Kind != device.KindLevel {
		return said == v
	}
	off := math.Abs(said.Number() - p.sent(v).Number())
	return said.Type() == device.TypeNumber && off <= max(p.step/2, 1e-9*(p.Range.Max-p.Range.Min))
}

// sent returns the number that is sent for v: the nearest step within the range.
func (p *point) sent(v device.Value) device.Value {
	if p.step == 0 || v.Type() != device.TypeNumber {
		return v
	}
	n := math.Round(v.Number()/p.step) * p.step
	if n > p.Range.Max {
		n -= p.step
	}
	if n < p.Range.Min {
		n += p.step
	}
	return device.Number(device.Tidy(n))
}

// Apply writes a value and returns once the other side says it.
func (r *remote) Apply(ctx context.Context, name string, v device.Value) error {
	done := r.hurry()
	ctx, unlock, err := r.lock(ctx)
	done()
	if err != nil {
		return err
	}
	defer unlock()
	p, err := r.output(name)
	if err == nil {
		err = p.Accepts(v)
	}
	if err != nil {
		return err
	}
	err = r.move(ctx, p, v)
	r.note(ctx, linkError(err))
	return err
}

func (r *remote) output(name string) (*point, error) {
	for _, p := range r.points {
		if p.Name == name && p.set != nil {
			return p, nil
		}
	}
	return nil, device.Faultf(device.Invalid, "%.40q is not an output of this device", name)
}

// move writes v and asks until the other side says v, or ctx ends.
func (r *remote) move(ctx context.Context, p *point, v device.Value) error {
	p.now = device.Value{}
	if err := p.set(ctx, p.sent(v)); err != nil {
		return err
	}
	p.wrote = time.Now()
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for wait := confirmFirst; ; wait = min(2*wait, confirmLast) {
		doc, err := p.source.ask(ctx)
		if err != nil {
			return unconfirmed(p, v, err)
		}
		said, err := p.said(doc)
		if err == nil && p.near(said, v) {
			p.now = v
			return nil
		}
		if err == nil {
			err = device.Faultf(device.Offline, "it still says %v", said)
		}
		pause.Reset(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			f := unconfirmed(p, v, err)
			f.Err = ctx.Err()
			return f
		}
	}
}

// said returns the value of p in a document.
func (p *point) said(doc []byte) (device.Value, error) {
	for _, reading := range p.source.read(doc) {
		if reading.Point == p.Name && reading.Quality == device.Bad {
			return device.Value{}, device.Faultf(device.Offline, "%s", reading.Why)
		} else if reading.Point == p.Name {
			return reading.Value, nil
		}
	}
	return device.Value{}, device.Faultf(device.Internal, "%s is not in its own document", p.Name)
}

func unconfirmed(p *point, v device.Value, err error) *device.Fault {
	return device.Faultf(device.UnknownOutcome, "%s was told to be %v and has not confirmed it: %w", p.Name, v, err)
}

// renewAll sends the values away from safe again, for servers that return to safe by themselves. It sends none that
// the server has just contradicted.
func (r *remote) renewAll(ctx context.Context, readings []device.Reading) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	for _, p := range r.points {
		if p.renew == 0 || p.now == p.Safe || time.Since(p.wrote) < p.renew {
			continue
		}
		same := func(d device.Reading) bool { return d.Point == p.Name && d.Quality == device.Good && d.Value == p.now }
		if slices.ContainsFunc(readings, same) && p.set(ctx, p.sent(p.now)) == nil {
			p.wrote = time.Now()
		}
	}
}

// Close interrupts what is under way, brings outputs to safe within 1.5 s, and releases the connection. A second Close
// does nothing.
func (r *remote) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	r.end()
	r.busy.Lock()
	defer r.busy.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	var failed error
	for _, p := range r.points {
		if p.set != nil && p.now != p.Safe && linkError(failed) == nil {
			failed = errors.Join(failed, r.move(ctx, p, p.Safe))
		}
	}
	return errors.Join(failed, r.release())
}
