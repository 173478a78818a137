package proc

import (
	"context"

	"agentsite/device"
)

// Simulated is a device that is told what to read, as a fake is. What a reading says is the device's matter.
type Simulated interface {
	Simulate(ctx context.Context, r device.Reading) error
}

// simulate tells a device of this process what to read.
func (s *server) simulate(ctx context.Context, name string, r device.Reading) error {
	fake, ok := s.device(name).(Simulated)
	if !ok {
		return device.Faultf(device.Invalid, "%s is not simulated", name)
	}
	err := fake.Simulate(ctx, r)
	s.g.ReadBackEarly() // an output may not be read back any more
	return err
}

// Simulate tells the device in the guard's process what to read.
func (r remote) Simulate(ctx context.Context, says device.Reading) error {
	if err := r.k.wait(ctx); err != nil {
		return err
	}
	return r.k.ask(ctx, simulate, func(w *writer) { w.text(r.name); w.reading(says) }, call{})
}
