package kernel

import (
	"context"
	"errors"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// output is a device with one output. It keeps nothing open.
type output struct {
	desc device.Description // one point
	set  func(r *reader, v device.Value) error
	get  func(r *reader) (device.Value, error) // an unknown is no fault
	rest func(r *reader) error                 // after the safe value, at Close; may be nil

	busy driver.Turn // while the hardware is touched
	// of who has it:
	reader reader
	closed bool
}

func (o *output) open() *output {
	o.busy = driver.NewTurn()
	return o
}

// Describe is of when the device was opened.
func (o *output) Describe() device.Description { return o.desc }

// Sample reads the output back from the kernel. An output that is gone is an
// Offline fault, until it is back.
func (o *output) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := o.busy.Take(ctx); err != nil {
		return nil, err
	}
	defer o.busy.Give()
	p := o.desc.Points[0]
	r := device.Reading{Point: p.Name, Quality: device.Good}
	v, err := o.get(&o.reader)
	why, odd := errors.AsType[unknown](err)
	switch {
	case odd:
		r.Quality, r.Why = device.Bad, string(why)
	case err != nil:
		return nil, err
	case p.Kind == device.KindLevel && !p.Range.Contains(v.Number()):
		r.Quality, r.Why = device.Bad, "it is at "+v.String()+", which nobody here has set; another program may be using it"
	default:
		r.Value = v
	}
	r.At = time.Now()
	return []device.Reading{r}, nil
}

// unknown is why it cannot be said what an output that is there does.
type unknown string

func (u unknown) Error() string { return string(u) }

// Apply returns once the kernel has the value.
func (o *output) Apply(ctx context.Context, point string, v device.Value) error {
	if err := o.busy.Take(ctx); err != nil {
		return err
	}
	defer o.busy.Give()
	p := o.desc.Points[0]
	switch {
	case o.closed:
		return device.Faultf(device.Offline, "%s cannot move: the device is closed", p.Name)
	case point != p.Name:
		return device.Faultf(device.Invalid, "%q is not an output of this device", printable(point))
	}
	if err := p.Accepts(v); err != nil {
		return err
	}
	return o.set(&o.reader, v)
}

// Close brings the output to its safe value and refuses to move it again.
func (o *output) Close() error {
	o.busy.Wait()
	defer o.busy.Give()
	if o.closed {
		return nil
	}
	o.closed = true
	if err := o.set(&o.reader, o.desc.Points[0].Safe); err != nil || o.rest == nil {
		return err
	}
	return o.rest(&o.reader)
}
