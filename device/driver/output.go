package driver

import (
	"context"
	"time"

	"agentsite/device"
)

// Output is a device with one output, which Apply, Sample and Close have in turns. It
// is safe for concurrent use.
type Output struct {
	desc    device.Description
	drive   func(ctx context.Context, v device.Value) error
	read    func(now device.Value) (device.Value, error)
	release func() error

	busy device.Turn // while the hardware is touched
	// of who has it:
	now    device.Value
	closed bool
}

// NewOutput makes a device of its one output. drive brings it to a value that it
// accepts. read is what the hardware says of an output that was driven to now, which is
// zero where nobody knows: now itself for as long as the hardware has what now has made
// of it, or why it cannot be said. release lets the hardware go, after the output was
// driven to safe.
func NewOutput(desc device.Description, drive func(ctx context.Context, v device.Value) error, read func(now device.Value) (device.Value, error), release func() error) *Output {
	return &Output{desc: desc, drive: drive, read: read, release: release, busy: device.NewTurn()}
}

// Describe is constant.
func (o *Output) Describe() device.Description { return o.desc }

// Sample reads the output back.
func (o *Output) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := o.busy.Take(ctx); err != nil {
		return nil, err
	}
	defer o.busy.Give()
	p := o.desc.Points[0]
	r := device.Reading{Point: p.Name, Quality: device.Good}
	switch v, err := o.read(o.now); {
	case err != nil:
		r.Quality, r.Why = device.Bad, err.Error()
	case p.Accepts(v) != nil:
		r.Quality, r.Why = device.Bad, "it is at "+v.String()+", which nobody here has set; another program may be using it"
	default:
		r.Value = v
	}
	r.At = time.Now()
	return []device.Reading{r}, nil
}

// Apply returns once the hardware has the value.
func (o *Output) Apply(ctx context.Context, point string, v device.Value) error {
	if err := o.busy.Take(ctx); err != nil {
		return err
	}
	defer o.busy.Give()
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

// Close drives the output to its safe value and lets its hardware go. A second Close
// does nothing.
func (o *Output) Close() error {
	o.busy.Wait()
	defer o.busy.Give()
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
