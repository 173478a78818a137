package proc

import (
	"context"
	"log/slog"
	"time"

	"agentsite/device"
)

const (
	buttonTimeout = time.Second // of one look at a button
	buttonRetry   = time.Second
	buttonShort   = "an emergency stop is pressed or broken: outputs stay safe until an owner has seen to it"
)

// Button is an emergency stop that somebody can press: a state of a device. While it
// is on, or cannot be read, nothing moves away from safe.
type Button struct {
	Device interface {
		device.Sensor
		device.Watcher
	}
	Name, Point string // of the device, and of its state
}

// released is an error when the button is pressed or cannot be read.
func (b Button) released(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, buttonTimeout)
	defer cancel()
	readings, _, err := device.Ask(ctx, b.Device.Sample)
	if err != nil {
		return b.unread(err)
	}
	for _, r := range readings {
		if r.Point == b.Point {
			return b.off(r)
		}
	}
	return b.unread(device.Faultf(device.Internal, "it has no %s", b.Point))
}

func (b Button) off(r device.Reading) error {
	switch {
	case r.Quality != device.Good || r.Value.Type() != device.TypeBool:
		return b.unread(device.Faultf(device.Offline, "%s", r.Why))
	case r.Value.Bool():
		return device.Faultf(device.Unsafe, "the emergency stop %s is pressed, or its wire is broken: release it, then run agentsite reset", b.Name).Naming(buttonShort, b.Name)
	}
	return nil
}

func (b Button) unread(err error) error {
	return device.Faultf(device.Unsafe, "the emergency stop %s cannot be read, so that nothing may move: mend it, then run agentsite reset: %w", b.Name, err).Naming(buttonShort, b.Name)
}

// released has every button looked at, and stops the outputs where one is not.
// Nothing that a watch could miss gets past it: it is asked before every move.
func (s *server) released(ctx context.Context) error {
	for _, b := range s.buttons {
		if err := b.released(ctx); err != nil {
			s.stopFor(ctx, err)
			return err
		}
	}
	return nil
}

// reset ends the emergency stop unless a button is pressed, be it in that moment.
func (s *server) reset(ctx context.Context) error {
	if err := s.released(ctx); err != nil {
		return err
	}
	if err := s.g.Reset(); err != nil {
		return err
	}
	return s.released(ctx)
}

// mindButton stops the outputs whenever the button is pressed, until ctx ends.
func (s *server) mindButton(ctx context.Context, b Button) {
	for ctx.Err() == nil {
		err := b.Device.Watch(ctx, func(r device.Reading) {
			if r.Point != b.Point {
				return
			}
			if err := b.off(r); err != nil {
				s.stopFor(ctx, err)
			}
		})
		if ctx.Err() != nil {
			return
		}
		s.stopFor(ctx, b.unread(err))
		select {
		case <-ctx.Done():
		case <-time.After(buttonRetry):
		}
	}
}

// stopFor is the emergency stop, said and done once.
func (s *server) stopFor(ctx context.Context, why error) {
	if s.g.Stopped() {
		return
	}
	err := s.g.Stop(ctx)
	slog.Error("emergency stop: outputs go to their safe values and stay there", "why", why)
	if err != nil {
		slog.Error("the emergency stop is not complete", "err", err)
	}
}
