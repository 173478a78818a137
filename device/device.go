package device

import "context"

// Device is one physical thing. Its methods, and those of the optional
// interfaces below, are safe for concurrent use.
type Device interface {
	// Describe is constant and does no I/O.
	Describe() Description
	// Close leaves the hardware at its safe values. A second Close does nothing.
	Close() error
}

// Sensor is a device that is sampled.
type Sensor interface {
	// Sample reads all the device's measurements and states in one bus
	// transaction. It blocks until the bus answers or ctx ends. A point that
	// could not be read is returned with quality Bad; an error means that none
	// could. Readings carry the points' own names.
	Sample(ctx context.Context) ([]Reading, error)
}

// Actuator is a device with outputs. Only device/guard may hold one. If it is also a Sensor, its
// samples can read an output back: exactly the applied value, while the hardware is as Apply left
// it.
type Actuator interface {
	// Apply brings a point to a value and returns once the hardware has it, or
	// an error when it is not known to have it. Repeating it is harmless.
	Apply(ctx context.Context, point string, v Value) error
}

// Watcher is a device that reports changes by itself: edges and interrupts.
type Watcher interface {
	// Watch calls emit, from one goroutine, until ctx ends, and then returns
	// ctx's error. Any other error means that the watch broke.
	Watch(ctx context.Context, emit func(Reading)) error
}

// Display is a device that shows text.
type Display interface {
	Show(ctx context.Context, point, text string) error
}

// Camera is a device that takes pictures.
type Camera interface {
	// Capture returns one picture of at most a few hundred kilobytes.
	Capture(ctx context.Context, point string) (Image, error)
}
