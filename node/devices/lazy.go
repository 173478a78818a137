package devices

import (
	"context"
	"reflect"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/guard/proc"
	"agentsite/node/config"
)

// lazyDevice is a device that is opened at its first use. After a failure, a later use tries
// again, at most once in openRetry.
type lazyDevice struct {
	d    config.Device
	desc device.Description
	busy device.Mutex // guards the fields below; held while the device is being opened

	dev    device.Device // nil until it is open
	tried  time.Time
	err    error
	closed bool
}

func newLazyDevice(d config.Device) *lazyDevice {
	return &lazyDevice{d: d, desc: d.Config.(driver.Describer).Describe(), busy: device.NewMutex()}
}

// open returns the open device.
func (l *lazyDevice) open(ctx context.Context) (device.Device, error) {
	if err := l.busy.LockContext(ctx); err != nil {
		return nil, err
	}
	defer l.busy.Unlock()
	switch {
	case l.closed:
		return nil, device.Faultf(device.Offline, "%s is closed", l.d.Name)
	case l.dev != nil:
		return l.dev, nil
	case l.err != nil && time.Since(l.tried) < openRetry:
		return nil, l.err
	}
	l.dev, l.err = driver.Open(ctx, l.d.Config)
	l.tried = time.Now()
	switch {
	case l.err != nil:
		l.dev = nil
	case !reflect.DeepEqual(l.dev.Describe(), l.desc):
		l.err = device.Faultf(device.Internal, "the driver %s describes %s differently after Open; this is a bug in the driver", l.d.Driver, l.d.Name)
		l.dev.Close()
		l.dev = nil
	}
	return l.dev, l.err
}

func (l *lazyDevice) Describe() device.Description { return l.desc }

// Close closes the device if it is open. It makes later uses fail.
func (l *lazyDevice) Close() error {
	l.busy.Lock()
	defer l.busy.Unlock()
	l.closed = true
	if l.dev == nil {
		return nil
	}
	return l.dev.Close()
}

func (l *lazyDevice) Apply(ctx context.Context, point string, v device.Value) error {
	dev, err := l.open(ctx)
	if err != nil {
		return err
	}
	actuator, ok := dev.(device.Actuator)
	if !ok {
		return device.Faultf(device.Internal, "the driver %s describes outputs that it cannot move", l.d.Driver)
	}
	return actuator.Apply(ctx, point, v)
}

// Sample returns no readings if the device is not a Sensor.
func (l *lazyDevice) Sample(ctx context.Context) ([]device.Reading, error) {
	dev, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	if sensor, ok := dev.(device.Sensor); ok {
		return sensor.Sample(ctx)
	}
	return nil, nil
}

func (l *lazyDevice) Show(ctx context.Context, point, text string) error {
	dev, err := l.open(ctx)
	if err != nil {
		return err
	}
	display, ok := dev.(device.Display)
	if !ok {
		return device.Faultf(device.Invalid, "%s is not a display", l.d.Name)
	}
	return display.Show(ctx, point, text)
}

func (l *lazyDevice) Capture(ctx context.Context, point string) (device.Image, error) {
	dev, err := l.open(ctx)
	if err != nil {
		return device.Image{}, err
	}
	camera, ok := dev.(device.Camera)
	if !ok {
		return device.Image{}, device.Faultf(device.Invalid, "%s is not a camera", l.d.Name)
	}
	return camera.Capture(ctx, point)
}

// Watch waits for the end of ctx if the device is not a Watcher.
func (l *lazyDevice) Watch(ctx context.Context, emit func(device.Reading)) error {
	dev, err := l.open(ctx)
	if err != nil {
		return err
	}
	if watcher, ok := dev.(device.Watcher); ok {
		return watcher.Watch(ctx, emit)
	}
	<-ctx.Done()
	return ctx.Err()
}

// Simulate tells a fake what to read.
func (l *lazyDevice) Simulate(ctx context.Context, r device.Reading) error {
	dev, err := l.open(ctx)
	if err != nil {
		return err
	}
	fake, ok := dev.(proc.Simulated)
	if !ok {
		return device.Faultf(device.Invalid, "%s is not simulated", l.d.Name)
	}
	return fake.Simulate(ctx, r)
}
