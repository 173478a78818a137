package driver

import (
	"context"
	"time"

	"agentsite/device"
)

// Output is a device with one output. Apply, Sample and Close exclude each other; it is
// safe for concurrent use.
type Output struct {
	desc    device.Description
	drive   func(ctx context.Context, v device.Value) error
	read    func(now device.Value) (device.Value, error)
	release func() error

	busy   device.Mutex // held while the hardware is used; guards the fields below
	now    device.Value
	closed bool
}

// NewOutput returns a device with one output. drive brings it to a value that it accepts. read
// reads the output back. It returns now, the value driven last, while the hardware is as drive left
// it; now is zero if that is unknown. release releases the hardware, after the output was driven to
// its safe value.
func NewOutput(desc device.Description, drive func(ctx context.Context, v device.Value) error, read func(now device.Value) (device.Value, error), release func() error) *Output {
	return &Output{desc: desc, drive: drive, read: read, release: release, busy: device.NewMutex()}
}

// Describe is constant.
func (o *Output) Describe() device.Description { return o.desc }

// Sample reads the output back.
func (o *Output) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := o.busy.LockContext(ctx); err != nil {
		return nil, err
	}
	defer o.busy.Unlock()
	p := o.desc.Points[0]
	r := device.Reading{Point: p.Name, Quality: device.Good}
	switch v, err := o.read(o.now); {
	case err != nil:
		r.Quality, r.Why = device.Bad, err.Error()
	case p.Accepts(v) != nil:
		r.Quality, r.Why = device.Bad, "it is at "+v.String()+", which this site did not set; another program may be using it"
	default:
		r.Value = v
	}
	r.At = time.Now()
	return []device.Reading{r}, nil
}

// Apply returns once the hardware has the value.
func (o *Output) Apply(ctx context.Context, point string, v device.Value) error {
	if err := o.busy.LockContext(ctx); err != nil {
		return err
	}
	defer o.busy.Unlock()
	p := o.desc.Points[0]
	switch {
	case o.closed:
		return device.Faultf(device.Offline, "%s cannot move: the device is closed", p.Name)
	case point != p.Name:
		return device.Faultf(device.Invalid, "%.40q is not an output of this device", point)
	}
	if err := p.Accepts(v); err != nil {
		return err
	}
	return o.move(ctx, v)
}

func (o *Output) move(ctx context.Context, v device.Value) error {
	o.now = device.Value{}
	err := o.drive(ctx, v)
	if err == nil {
		o.now = v
	}
	return err
}

// Close drives the output to its safe value and releases its hardware. A second Close
// does nothing.
func (o *Output) Close() error {
	o.busy.Lock()
	defer o.busy.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	err := o.move(context.Background(), o.desc.Points[0].Safe)
	if released := o.release(); err == nil {
		err = released
	}
	return err
}
