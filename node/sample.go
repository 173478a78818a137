package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"agentsite/device"
)

const (
	// sampleTimeout bounds a sample with its waits for a bus on which chips may hang. One that
	// is late is no fault while the last good reading is fresh.
	sampleTimeout = 15 * time.Second
	// A device that keeps failing is read less often: a dead bus costs time and wake-ups.
	backOffPeriods = 30
	backOffMax     = 5 * time.Minute
	// A device that takes this long to fail may block its bus, and is read so long after the
	// others, or half a period.
	failsSlowly   = time.Second
	watchRetry    = time.Second
	watchRetryMax = time.Minute
)

// Source is a device that has something to say, under its name here.
type Source struct {
	Name   string
	Device device.Device
	Every  time.Duration // between samples
	// Convert holds the owner's conversions of some numbers, by the points' names. They are applied
	// before anything else.
	Convert map[string]func(float64) float64
	Period  time.Duration // in which a new reading is expected, if that is longer than Every
}

// Sample reads the sources until ctx ends. All samples except the first of each source, and those
// of ones that hang, fall on multiples of their period since the hub was made. So devices with the
// same period wake the processor once. Extra watchers, such as the guard, emit whole addresses. Each device that comes
// and goes has its own call of Sample.
func (h *Hub) Sample(ctx context.Context, sources []Source, extra ...device.Watcher) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, s := range sources {
		if sensor, ok := s.Device.(device.Sensor); ok {
			all.Go(func() { h.sampleEvery(ctx, s, sensor) })
		}
		if w, ok := s.Device.(device.Watcher); ok {
			all.Go(func() {
				h.listenTo(ctx, s, w)
			})
		}
	}
	for _, w := range extra {
		all.Go(func() { h.listen(ctx, "outputs", w, func(r device.Reading) { h.put(r, 0) }, func(error) {}) })
	}
}

// listenTo handles readings that a device sends on its own. When its watch breaks, the points that
// are never sampled are faults until it speaks again.
func (h *Hub) listenTo(ctx context.Context, s Source, w device.Watcher) {
	points, unsampled := newSampled(s), []string(nil)
	_, sensor := s.Device.(device.Sensor)
	for _, p := range s.Device.Describe().Points {
		address, sampled := points[p.Name]
		if p.Kind == device.KindEvent {
			address = device.Address(s.Name, p.Name)
			points[p.Name] = address
		}
		if address != "" && !(sampled && sensor) {
			unsampled = append(unsampled, address)
		}
	}
	h.listen(ctx, s.Name, w, func(r device.Reading) {
		if address, ok := points[r.Point]; ok {
			h.put(s.reading(r, address), 0)
		}
	}, func(err error) {
		for _, address := range unsampled {
			h.put(device.Reading{Point: address, Quality: device.Bad, At: time.Now(), Why: err.Error()}, 0)
		}
	})
}

// sampleEvery samples at every period, and at multiples of it while the device
// cannot be read. One that is only late is no dead one: others may keep its bus busy. It
// is asked no less often.
func (h *Hub) sampleEvery(ctx context.Context, s Source, sensor device.Sensor) {
	points, pause := newSampled(s), s.Every
	longest := max(s.Every, min(backOffPeriods*s.Every, backOffMax))
	failing := false
	due := make(chan struct{}, 1)
	timer := h.AfterFunc(0, func() { due <- struct{}{} }) // it is reset only after that was received
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
		}
		begun := time.Now()
		back, err := h.sample(ctx, s, sensor, points)
		if ctx.Err() != nil {
			return
		}
		if failing != (err != nil) {
			failing = err != nil
			if failing {
				slog.Warn("a device cannot be read and is tried again", "device", s.Name, "err", err)
			} else {
				slog.Info("a device can be read again", "device", s.Name)
			}
		}
		if back != nil { // one call at a time
			select {
			case <-ctx.Done():
				return
			case take := <-back:
				if ctx.Err() == nil {
					take()
				}
			}
		}
		late := back == nil && errors.Is(err, context.DeadlineExceeded)
		if !failing || late {
			pause = s.Every
		}
		now := time.Since(h.start)
		next := (now+pause)/s.Every*s.Every - now
		if failing && !late {
			pause = min(2*pause, longest)
			if time.Since(begun) >= failsSlowly {
				next += min(failsSlowly, s.Every/2)
			}
		}
		timer.Reset(next)
	}
}

// sampled maps the names of a source's sampled points to their addresses. Outputs are left out,
// because the guard reports them.
type sampled map[string]string

func newSampled(s Source) sampled {
	points := make(sampled)
	for _, p := range s.Device.Describe().Points {
		if p.Kind == device.KindMeasurement || p.Kind == device.KindState {
			points[p.Name] = device.Address(s.Name, p.Name)
		}
	}
	return points
}

// sample takes in one sample, and returns why none of its points could be read. Points that were
// only read late keep their last good readings while these are fresh. Where the driver does not
// come back from it, back yields when it has, and what takes in its readings.
func (h *Hub) sample(ctx context.Context, s Source, sensor device.Sensor,
	points sampled) (back <-chan func(), err error) {
	patience, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	asked := time.Now()
	_, speaks := s.Device.(device.Watcher)
	take := func(readings []device.Reading) {
		for _, r := range readings {
			if speaks && r.At.After(asked) {
				r.At = asked // a change that the device tells of meanwhile is newer
			}
			if address, ok := points[r.Point]; ok {
				h.put(s.reading(r, address), max(s.Every, s.Period))
			}
		}
	}
	later := make(chan func(), 1)
	readings, deaf, err := device.Call(patience, func(ctx context.Context) (readings []device.Reading, err error) {
		defer func() { later <- func() { take(readings) } }()
		return sensor.Sample(ctx)
	})
	if deaf != nil {
		back = later
	}
	if ctx.Err() != nil {
		return back, ctx.Err()
	}
	if err == context.DeadlineExceeded { // alone, it says nothing
		err = device.Faultf(device.Offline, "it was not read within %v: %w; look at its bus and wiring", sampleTimeout, err)
	}
	late := errors.Is(err, context.DeadlineExceeded)
	if err == nil || late {
		take(readings)
	}
	if err != nil {
		for _, address := range points {
			if last, _ := h.Latest(address); late && last.Quality == device.Good {
				continue
			}
			h.put(device.Reading{Point: address, Quality: device.Bad, At: time.Now(), Why: err.Error()}, max(s.Every, s.Period))
		}
		return back, err
	}
	return nil, nil
}

// reading is a device's own as the rest of the site knows it.
func (s Source) reading(r device.Reading, address string) device.Reading {
	if convert := s.Convert[r.Point]; convert != nil && r.Value.Type() == device.TypeNumber {
		r.Value = device.Number(convert(r.Value.Number()))
	}
	r.Point = address
	return r
}

// listen keeps a watch going, with growing pauses while it keeps breaking.
func (h *Hub) listen(ctx context.Context, name string, w device.Watcher, emit func(device.Reading), broke func(error)) {
	for retry := watchRetry; ; retry = min(2*retry, watchRetryMax) {
		begun := time.Now()
		_, _, err := device.Call(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, w.Watch(ctx, func(r device.Reading) {
				if ctx.Err() == nil { // a deaf driver goes on with its device gone
					emit(r)
				}
			})
		})
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > watchRetryMax {
			retry = watchRetry // it was well in between
		}
		if err == nil {
			err = device.Faultf(device.Internal, "the driver ended its watch")
		}
		broke(err)
		slog.Warn("a watch broke and is tried again", "device", name, "err", err, "in", retry)
		if device.Sleep(ctx, retry) != nil {
			return
		}
	}
}
