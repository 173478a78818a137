package proc

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

const (
	buttonTimeout = time.Second // of one read of a button
	buttonRetry   = time.Second
	buttonShort   = "an emergency stop is pressed or cannot be read: outputs stay safe until an owner has seen to it"
)

// Button is an emergency stop button: a state of a device. A press latches the stop. While the
// button cannot be read, all outputs are safe and none can move, but nothing is latched.
type Button struct {
	Device interface {
		device.Sensor
		device.Watcher
	}
	Name, Point string // of the device, and of its state
}

// look reads the button. The error is that it is pressed, or that it cannot be read.
func (b Button) look(ctx context.Context) (pressed bool, why error) {
	ctx, cancel := context.WithTimeout(ctx, buttonTimeout)
	defer cancel()
	readings, _, err := device.Call(ctx, b.Device.Sample)
	if err != nil {
		return false, b.unread(err)
	}
	for _, r := range readings {
		if r.Point == b.Point {
			return b.says(r)
		}
	}
	return false, b.unread(device.Faultf(device.Internal, "it has no %s", b.Point))
}

func (b Button) says(r device.Reading) (pressed bool, why error) {
	switch {
	case r.Quality != device.Good || r.Value.Type() != device.TypeBool:
		return false, b.unread(device.Faultf(device.Offline, "%s", r.Why))
	case r.Value.Bool():
		return true, device.Faultf(device.Unsafe, "the emergency stop %s is pressed, or its wire is broken: release it, then run agentsite reset", b.Name).Naming(buttonShort, b.Name)
	}
	return false, nil
}

func (b Button) unread(err error) *device.Fault {
	return device.Faultf(device.Unsafe, "the emergency stop %s cannot be read, so that nothing may move; look at its wiring and call again: %w", b.Name, err).Naming(buttonShort, b.Name)
}

// watchedButton is a button with its last known state.
type watchedButton struct {
	Button
	pressed atomic.Bool // when it was last read
	broken  atomic.Pointer[device.Fault]
}

func watched(buttons []Button) (all []*watchedButton) {
	for _, b := range buttons {
		all = append(all, &watchedButton{Button: b})
	}
	return all
}

// released reads every button, and fails unless all are confirmed as released. It is called
// before every move, because a watch can miss a press.
func (s *server) released(ctx context.Context) error {
	for _, b := range s.buttons {
		if broken := b.broken.Load(); broken != nil { // a press would not be noticed
			return broken
		}
		pressed, why := b.look(ctx)
		if s.handleButton(ctx, b, pressed, why); why != nil {
			return why
		}
	}
	return nil
}

// handleButton stops the outputs when the button is pressed, and returns them to safe when it
// cannot be read.
func (s *server) handleButton(ctx context.Context, b *watchedButton, pressed bool, why error) {
	again := b.pressed.Swap(pressed)
	switch {
	case pressed && again && s.g.Stopped(): // the same press
	case pressed:
		err := s.g.Stop(ctx)
		slog.Error("emergency stop: outputs go to their safe values and stay there", "why", why)
		if err != nil {
			slog.Error("the emergency stop is not complete", "err", err)
		}
	case why != nil && !s.g.Safe() && ctx.Err() == nil:
		slog.Error("an emergency stop cannot be read: outputs go to their safe values", "err", why)
		s.g.ToSafe(guard.Unread)
	}
}

// reset ends the emergency stop that the site knows, unless a button is pressed, also
// concurrently.
func (s *server) reset(ctx context.Context, epoch, stops uint32) error {
	if epoch != s.epoch.Load() {
		return errHeldUp
	}
	if err := s.released(ctx); err != nil {
		return err
	}
	if err := s.g.Reset(stops); err != nil {
		return err
	}
	return s.released(ctx)
}

// watchButton stops the outputs whenever the button is pressed, until ctx ends.
func (s *server) watchButton(ctx context.Context, b *watchedButton) {
	for {
		err := b.Device.Watch(ctx, func(r device.Reading) {
			if r.Point == b.Point {
				pressed, why := b.says(r)
				s.handleButton(ctx, b, pressed, why)
			}
		})
		if ctx.Err() != nil {
			return
		}
		broken := b.unread(err)
		b.broken.Store(broken)
		s.handleButton(ctx, b, false, broken)
		if device.Sleep(ctx, buttonRetry) != nil {
			return
		}
		b.broken.Store(nil)
	}
}
