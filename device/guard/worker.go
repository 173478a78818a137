package guard

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"agentsite/device"
)

// worker drives the outputs of one device, with one call at a time, so that a hanging device
// does not delay others. It reads the outputs back if the device is a Sensor.
type worker struct {
	act    device.Actuator
	sensor device.Sensor // nil if nothing can be read back
	wake   chan struct{} // a write may be pending
	look   chan struct{} // a read-back is due
	end    context.CancelFunc
	ended  chan struct{}

	// under Guard.mu:
	outputs []driven           // replaced as a whole; the machine may have removed some
	reading context.CancelFunc // cancels the current read; nil for none
	writing bool               // the driver has not returned from a write

	// used by the driving goroutine only:
	logged time.Time       // when a write that failed was logged
	late   time.Time       // since when reads are late; zero if the last one was not
	back   <-chan struct{} // closed when a driver that hung in a read has returned; or nil
}

// driven is an output of a worker's device.
type driven struct{ address, point string }

// drives reports whether both workers drive the same device.
func (h *worker) drives(other *worker) bool { return h.act == other.act }

// outputsOf returns the outputs that h drives now.
func (g *Guard) outputsOf(h *worker) []driven {
	g.mu.Lock()
	defer g.mu.Unlock()
	return h.outputs
}

// due reports whether h has a pending write. The caller holds mu.
func (g *Guard) due(h *worker) bool {
	return slices.ContainsFunc(h.outputs, func(o driven) bool {
		i, there := g.m.index[o.address]
		return there && g.m.due(i)
	})
}

// interrupt makes the worker check for pending writes now, and cancels a read.
func (h *worker) interrupt() {
	poke(h.wake)
	if h.reading != nil {
		h.reading()
	}
}

// drive makes the pending writes, retries until the hardware agrees, and reads back.
func (g *Guard) drive(ctx context.Context, h *worker) {
	retry := retryFirst
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.look:
			g.read(ctx, h)
			continue
		case <-h.wake:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return // do not begin another write
		}
		if g.write(ctx, h) {
			retry = retryFirst
			continue
		}
		timer.Reset(retry)
		retry = min(2*retry, retryLast)
	}
}

// write writes each output's target value, and reports whether all followed. An output with
// a fault has followed only after a read-back.
func (g *Guard) write(ctx context.Context, h *worker) bool {
	followed := true
	for _, o := range g.outputsOf(h) {
		v, known, pending := g.take(o)
		if !pending {
			continue
		}
		g.note(h, true)
		applying, cancel := context.WithTimeout(ctx, applyTimeout)
		_, back, err := device.Call(applying, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, h.act.Apply(ctx, o.point, v)
		})
		cancel()
		var measured device.Value
		if err == nil && known != "" {
			measured, err = h.confirm(ctx, o, v)
		}
		if err != nil {
			followed = false
			// It is logged once, and another reason at most once a minute: the other side may say another each time.
			if known == "" || err.Error() != known && time.Since(h.logged) >= logPause {
				h.logged = time.Now()
				slog.Warn("an output did not follow and is tried again", "output", o.address, "value", v.String(), "err", err)
			}
		}
		g.update(func(now Time) error {
			if i, there := g.m.index[o.address]; there {
				g.m.Applied(now, i, v, err)
				g.m.outputs[i].measure(now, measured)
			}
			return nil
		})
		if back != nil { // one write at a time: wait until the driver returns
			select {
			case <-back:
			case <-ctx.Done():
				return false
			}
		}
		g.note(h, false)
	}
	return followed
}

func (g *Guard) note(h *worker, writing bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.writing = writing
}

// take returns the value to write to o now, if any, and why its state was unknown. It marks
// the write as begun.
func (g *Guard) take(o driven) (v device.Value, fault string, pending bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i, there := g.m.index[o.address]
	if !there {
		return v, "", false
	}
	if v, pending = g.m.Pending(i); pending {
		g.m.Driving(i)
	}
	return v, g.m.outputs[i].fault, pending
}

// scheduleReadBacks makes all workers read back at the same time, so that they wake the
// processor once.
func (g *Guard) scheduleReadBacks(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	last := g.now()
	for now := last; ; {
		next := Unlimited
		early := next
		switch g.readEvery() {
		case readAway:
			next = now - now%readAway + readAway
			early = next
		case readSafe:
			next, early = last+readSafe, last+readSafeEarly
		}
		timer.Reset(next - now)
		select {
		case <-ctx.Done():
			return
		case <-g.pace:
		case <-g.early:
			next = early
		case <-timer.C:
		}
		if now = g.now(); now < next { // whatever came first, a time that has come is not missed
			continue
		}
		last = now
		g.mu.Lock()
		for _, h := range g.workers {
			poke(h.look)
		}
		g.mu.Unlock()
	}
}

// ReadBackEarly reads the outputs back now if that is due soon: the caller has woken the processor
// anyway. It does not block.
func (g *Guard) ReadBackEarly() { poke(g.early) }

// readEvery returns the interval of reads; 0 if nothing can be read back.
func (g *Guard) readEvery() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !slices.ContainsFunc(g.workers, func(h *worker) bool { return h.sensor != nil }):
		return 0
	case g.m.Safe():
		return readSafe
	}
	return readAway
}

// read reads the worker's outputs back, and drives those with an unexpected value to safe. A
// pending write comes first, because it also confirms the value.
func (g *Guard) read(ctx context.Context, h *worker) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.mu.Lock()
	h.reading = cancel
	writes := g.due(h)
	g.mu.Unlock()
	if writes || h.sensor == nil {
		return
	}
	begun := time.Now()
	all, err := h.sample(ctx)
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		if h.late.IsZero() {
			h.late = begun
		}
		if time.Since(h.late) < maxLate {
			return
		}
	}
	h.late = time.Time{}
	if lost := g.checkReadBack(h, all, err); lost != nil {
		slog.Warn("outputs are not known to be where they were left, and are driven to safe", "outputs", lost)
		poke(h.wake)
	}
}

// checkReadBack compares a sample, or its error, with the written values. It returns the
// outputs with an unexpected value, and why.
func (g *Guard) checkReadBack(h *worker, all []device.Reading, err error) (lost []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before, readable, news := g.outlook(), err != nil, false
	for _, o := range h.outputs {
		i, there := g.m.index[o.address]
		if !there {
			continue
		}
		v, why := o.told(all)
		if err != nil {
			why = err
		}
		readable = readable || why != nil || !v.IsZero()
		measured, blind := g.m.outputs[i].measured, g.m.outputs[i].blind
		if g.m.Read(g.now(), i, v, why) {
			lost = append(lost, o.address+": "+g.m.outputs[i].fault)
		}
		news = news || measured != g.m.outputs[i].measured || blind != g.m.outputs[i].blind
	}
	if !readable {
		h.sensor = nil // its sample has other points only
	}
	if lost != nil || news { // otherwise nothing has changed
		g.tell(before)
	}
	return lost
}

// confirm reads one output back after a write, and returns what it read.
func (h *worker) confirm(ctx context.Context, o driven, v device.Value) (now device.Value, err error) {
	all, err := h.sample(ctx)
	if err != nil {
		return now, err
	}
	now, err = o.told(all)
	if err == nil && !now.IsZero() && now != v {
		err = elsewhere(v, now)
	}
	return now, err
}

// sample samples the device; without a sensor it returns nothing. A driver that hung in the
// last sample is not called before that returns, and is late.
func (h *worker) sample(ctx context.Context) (all []device.Reading, err error) {
	if h.sensor == nil {
		return nil, nil
	}
	if h.back != nil {
		select {
		case <-h.back:
		default:
			return nil, device.Faultf(device.Offline, "the driver does not come back from reading it: %w",
				context.DeadlineExceeded)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	all, h.back, err = device.Call(ctx, h.sensor.Sample)
	if err == context.DeadlineExceeded { // not informative alone
		err = device.Faultf(device.Offline, "it was not read back within %v; look at its bus: %w", applyTimeout, err)
	}
	return all, err
}

// told returns the value of one output in a sample; the zero Value for none.
func (o driven) told(all []device.Reading) (device.Value, error) {
	i := slices.IndexFunc(all, func(r device.Reading) bool { return r.Point == o.point })
	switch {
	case i < 0:
		return device.Value{}, nil
	case all[i].Quality != device.Good:
		return device.Value{}, device.Faultf(device.Offline, "%s", all[i].Why)
	}
	return all[i].Value, nil
}

// interruptAll makes every worker write at once, also during a back-off.
func (g *Guard) interruptAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.workers {
		h.interrupt()
	}
}
