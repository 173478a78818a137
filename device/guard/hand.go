package guard

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"agentsite/device"
)

// hand drives the outputs of one device: one call at a time, and a device that
// hangs holds up nobody else. Where the device is a Sensor too, its outputs are read
// back.
type hand struct {
	device  string
	act     device.Actuator
	sensor  device.Sensor // nil where nothing can be read back
	outputs []int         // in the machine
	points  []string      // of the device, beside outputs
	wake    chan struct{} // there may be something to write
	look    chan struct{} // it is time to read back

	reading context.CancelFunc // cuts the present read short; nil without one; under Guard.mu

	// of the goroutine that drives:
	missed int             // reads in a row that were late
	back   <-chan struct{} // closed when a driver that hung in a read has come back; or nil
}

// stir has the hand look for something to write, now: a read does not hold it up.
func (h *hand) stir() {
	poke(h.wake)
	if h.reading != nil {
		h.reading()
	}
}

// drive writes what is pending, again and again until the hardware agrees, and reads
// back.
func (g *Guard) drive(ctx context.Context, h *hand) {
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
			return // rather than begin another write
		}
		if g.write(ctx, h) {
			retry = retryFirst
			continue
		}
		timer.Reset(retry)
		retry = min(2*retry, retryLast)
	}
}

// write brings each of the hand's outputs to what is wanted and reports whether
// all of them followed. One that is a fault has followed only once it reads back.
func (g *Guard) write(ctx context.Context, h *hand) bool {
	followed := true
	for k, i := range h.outputs {
		g.mu.Lock()
		v, pending := g.m.Pending(i)
		known := g.m.outputs[i].fault
		if pending {
			g.m.Driving(i)
		}
		g.mu.Unlock()
		if !pending {
			continue
		}
		applying, cancel := context.WithTimeout(ctx, applyTimeout)
		_, back, err := device.Ask(applying, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, h.act.Apply(ctx, h.points[k], v)
		})
		cancel()
		if err == nil && known != "" {
			err = h.confirm(ctx, k, v)
		}
		if err != nil {
			followed = false
			if err.Error() != known { // once, however long it lasts
				slog.Warn("an output did not follow and is tried again", "output", h.address(k), "value", v.String(), "err", err)
			}
		}
		g.update(func(now Time) error { g.m.Applied(now, i, v, err); return nil })
		if back != nil { // one write at a time: nothing more for this device before it is back
			select {
			case <-back:
			case <-ctx.Done():
			}
		}
	}
	return followed
}

// look has the hands read back, all of them together, so that they wake the processor
// once.
func (g *Guard) look(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Stop()
		if every := g.readEvery(); every > 0 {
			timer.Reset(every - g.now()%every)
		}
		select {
		case <-ctx.Done():
			return
		case <-g.pace:
		case <-timer.C:
			for _, h := range g.hands {
				poke(h.look)
			}
		}
	}
}

// readEvery is the time from one read to the next; 0 where nothing can be read back.
func (g *Guard) readEvery() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !slices.ContainsFunc(g.hands, func(h *hand) bool { return h.sensor != nil }):
		return 0
	case g.m.Safe():
		return readSafe
	}
	return readAway
}

// read reads the hand's outputs back. Those that are not where they were left are
// driven to safe. A write that is wanted comes first, and tells more.
func (g *Guard) read(ctx context.Context, h *hand) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.mu.Lock()
	h.reading = cancel
	writes := slices.ContainsFunc(h.outputs, g.m.due)
	g.mu.Unlock()
	if writes || h.sensor == nil {
		return
	}
	all, err := h.sample(ctx)
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, context.DeadlineExceeded) && h.missed < mayMiss {
		h.missed++
		return
	}
	h.missed = 0
	if lost := g.judge(h, all, err); lost != nil {
		slog.Warn("outputs are not known to be where they were left, and are driven to safe", "outputs", lost)
		poke(h.wake)
	}
}

// judge holds what was read back, or why it could not be, against what was written, and
// returns what is lost and why.
func (g *Guard) judge(h *hand, all []device.Reading, err error) (lost []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before, readable := g.outlook(), err != nil
	for k, i := range h.outputs {
		v, why := h.told(all, k)
		if err != nil {
			why = err
		}
		readable = readable || why != nil || !v.IsZero()
		if g.m.Read(g.now(), i, v, why) {
			lost = append(lost, h.address(k)+": "+g.m.outputs[i].fault)
		}
	}
	if !readable {
		h.sensor = nil // it tells of other things only
	}
	if lost != nil { // else it is no news
		g.tell(before)
	}
	return lost
}

// confirm reads back what was written to one output.
func (h *hand) confirm(ctx context.Context, k int, v device.Value) error {
	all, err := h.sample(ctx)
	if err != nil {
		return err
	}
	now, err := h.told(all, k)
	if err == nil && !now.IsZero() && now != v {
		err = elsewhere(v, now)
	}
	return err
}

// sample asks the device for all that it reads, which is nothing where it cannot be
// asked. One that hung in the last sample is not asked before it has come back.
func (h *hand) sample(ctx context.Context) (all []device.Reading, err error) {
	if h.sensor == nil {
		return nil, nil
	}
	if h.back != nil {
		select {
		case <-h.back:
		default:
			return nil, device.Faultf(device.Offline, "the driver does not come back from reading it")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	all, h.back, err = device.Ask(ctx, h.sensor.Sample)
	if err == context.DeadlineExceeded { // alone, it says nothing
		err = device.Faultf(device.Offline, "it was not read back within %v; look at its bus: %w", applyTimeout, err)
	}
	return all, err
}

// told is what a sample says of one output; the zero Value where that is nothing.
func (h *hand) told(all []device.Reading, k int) (device.Value, error) {
	i := slices.IndexFunc(all, func(r device.Reading) bool { return r.Point == h.points[k] })
	switch {
	case i < 0:
		return device.Value{}, nil
	case all[i].Quality != device.Good:
		return device.Value{}, device.Faultf(device.Offline, "%s", all[i].Why)
	}
	return all[i].Value, nil
}

func (h *hand) address(k int) string { return device.Address(h.device, h.points[k]) }

// hurry has every hand write at once, those too that pause after a failure.
func (g *Guard) hurry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.hands {
		h.stir()
	}
}
