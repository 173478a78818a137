package mqtt

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/mqtt/packet"
)

// Apply sends a command, and returns once the device has said that it followed, in a message that came after the broker
// had the command. What was not written when ctx ends is not written later.
func (d *dev) Apply(ctx context.Context, name string, v device.Value) error {
	i := d.index(name)
	if i < 0 {
		return device.Faultf(device.Invalid, "%.40q is not an output of this device", name)
	}
	if err := d.points[i].Accepts(v); err != nil {
		return err
	}
	if err := d.busy.LockContext(ctx); err != nil {
		return err
	}
	defer d.busy.Unlock()
	if d.closed {
		return device.Faultf(device.Offline, "%s cannot move: the device is closed", name)
	}
	return d.move(ctx, i, v)
}

// index returns the place of an output; -1 for none of that name.
func (d *dev) index(name string) int {
	for i, p := range d.points {
		if p.Name == name && p.out != nil {
			return i
		}
	}
	return -1
}

// command returns the message for a value, and the raw number in it.
func (p point) command(v device.Value) (message string, raw float64) {
	switch {
	case p.Kind == device.KindLevel:
		raw = p.quantity.Raw(v.Number())
		if p.out.step > 0 {
			raw = math.Round(raw/p.out.step) * p.out.step
		}
		raw = device.Tidy(raw)
		return strings.Replace(p.out.payload, placeValue, strconv.FormatFloat(raw, 'f', -1, 64), 1), raw
	case v.Bool():
		return p.out.on, 0
	}
	return p.out.off, 0
}

// repeat sends the command of a switch that is on again. Nothing waits for its effect: the state that follows shows it.
func (l *link) repeat(ctx context.Context, p point) {
	l.send(ctx, func(uint16) []byte {
		return packet.AppendPublish(nil, l.version, 0, p.out.set, []byte(p.out.on), false)
	})
}

// move brings an output to a value. The caller holds busy.
func (d *dev) move(ctx context.Context, i int, v device.Value) error {
	p := d.points[i]
	l, err := d.broker.await(ctx)
	if err != nil {
		return err
	}
	message, raw := p.command(v)
	var answered, followed bool // under mu
	var code byte
	if v != p.Safe { // to safe it is told, for a device that is there after all
		if err := d.isThere(ctx); err != nil {
			return device.Faultf(device.Offline, "%s: %w", p.Name, err)
		}
	}
	d.mu.Lock()
	s := &d.states[i]
	s.applied, s.sent, s.sentAt = device.Value{}, 0, time.Now()
	var since uint64
	d.mu.Unlock()
	forget, begun, err := l.publish(ctx, p.out.set, []byte(message), func(c byte) {
		d.mu.Lock()
		defer d.mu.Unlock()
		answered, code, since = true, c, d.number
		d.touch()
		since = d.number
	})
	defer forget()
	if err != nil {
		if begun {
			return device.Faultf(device.UnknownOutcome, "%s: %w", p.Name, err)
		}
		return err
	}
	ask := time.NewTimer(askDelay(ctx))
	defer ask.Stop()
	for {
		d.mu.Lock()
		changed := d.changed
		followed = answered && s.number > since && p.shows(s, v, raw) && !s.kept
		if followed {
			s.applied, s.sent = v, raw
		}
		refused, says := answered && code >= 0x80, s.value
		d.mu.Unlock()
		switch {
		case refused:
			return device.Faultf(device.Offline,
				"%s: the broker does not let the user write to %s (reason %#x); look at its permissions", p.Name, p.out.set, code)
		case followed:
			return nil
		}
		select {
		case <-changed:
		case <-ask.C:
			if p.out.ask != "" {
				l.ask(ctx, p)
			}
		case <-l.gone:
			return device.Faultf(device.UnknownOutcome,
				"%s: the connection to the broker ended before the device said that it followed", p.Name)
		case <-ctx.Done():
			d.mu.Lock()
			silent := !answered
			d.mu.Unlock()
			if silent {
				l.drop() // so that it does not take the command later
			}
			return unconfirmed(ctx, p, v, says, silent)
		}
	}
}

// isThere returns nil once something says that the device is there.
func (d *dev) isThere(ctx context.Context) error {
	for {
		d.mu.Lock()
		changed, away, unknown := d.changed, d.away(), false
		for i, a := range d.available {
			unknown = unknown || a.needed && !d.known[i]
		}
		d.mu.Unlock()
		if away == "" {
			return nil
		}
		err := device.Faultf(device.Offline, "%s", away)
		if !unknown {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			err.Err = ctx.Err()
			return err
		}
	}
}

// askDelay returns after which part of the time left a device is asked that has not said that it followed.
func askDelay(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Second
	}
	return time.Until(deadline) / 3
}

// shows reports whether a state is that after a command.
func (p point) shows(s *state, v device.Value, raw float64) bool {
	if s.value.IsZero() {
		return false
	}
	if p.Kind == device.KindLevel {
		return p.near(s.raw, raw)
	}
	return s.value == v
}

// unconfirmed is the fault of a command whose effect is not known.
func unconfirmed(ctx context.Context, p point, v, says device.Value, silent bool) error {
	what := "the device has not said that it followed"
	switch {
	case silent:
		what = "the broker does not answer"
	case !says.IsZero() && says != v:
		what = "the device still says " + device.Clip(says.String(), 40)
	}
	err := device.Faultf(device.UnknownOutcome,
		"%s: %s within the time for it; look at its supply and its connection, and at topic, path and set", p.Name, what)
	err.Err = ctx.Err()
	return err
}

// Close brings the outputs to safe within two seconds, and leaves the broker.
func (d *dev) Close() error {
	d.busy.Lock()
	defer d.busy.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var outputs []int
	for i, p := range d.points {
		if p.out != nil {
			outputs = append(outputs, i)
		}
	}
	results := make(chan error, len(outputs))
	for _, i := range outputs {
		go func() { results <- d.move(ctx, i, d.points[i].Safe) }()
	}
	var errs []error
	for range outputs {
		errs = append(errs, <-results)
	}
	d.broker.leave(d)
	d.lost("the device is closed")
	return errors.Join(errs...)
}
