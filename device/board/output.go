package board

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// output is a device with one output. What drives it is called by one at a time.
type output struct {
	desc  device.Description // one point
	drive func(ctx context.Context, v device.Value) error
	// read is what the hardware says of an output that was driven to now, which is
	// zero where nobody knows.
	read func(now device.Value) (device.Value, error)
	// release lets the lines go, after the output was driven to safe.
	release func() error

	busy driver.Turn // while the hardware is touched
	// of who has it:
	now    device.Value
	closed bool
}

func (o *output) open() *output {
	o.busy = driver.NewTurn()
	return o
}

// Describe is constant.
func (o *output) Describe() device.Description { return o.desc }

// Sample reads the output back.
func (o *output) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := o.busy.Take(ctx); err != nil {
		return nil, err
	}
	defer o.busy.Give()
	r := device.Reading{Point: o.desc.Points[0].Name, Quality: device.Good}
	if v, err := o.read(o.now); err != nil {
		r.Quality, r.Why = device.Bad, err.Error()
	} else {
		r.Value = v
	}
	r.At = time.Now()
	return []device.Reading{r}, nil
}

// Apply takes the line, at the first time, and returns once it has the value.
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
		return device.Faultf(device.Invalid, "%.40q is not an output of this device", point)
	}
	if err := p.Accepts(v); err != nil {
		return err
	}
	return o.move(ctx, v)
}

func (o *output) move(ctx context.Context, v device.Value) error {
	o.now = device.Value{}
	err := o.drive(ctx, v)
	if err == nil {
		o.now = v
	}
	return err
}

// Close drives the output to its safe value and lets its lines go.
func (o *output) Close() error {
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

// driven is a line that is taken when it is first driven, with that value, and
// anew after its chip has been away.
type driven struct {
	board   *Board
	pin     Pin
	options OutputOptions
	line    *Line // nil before
}

func (d *driven) set(on bool) error {
	if d.line == nil {
		o := d.options
		o.Initial = on
		line, err := d.board.Output(d.pin, o)
		d.line = line
		return err
	}
	err := d.line.Set(on)
	if gone(err) {
		d.release()
		return d.set(on)
	}
	return err
}

// get reads the line back.
func (d *driven) get() (bool, error) {
	if d.line == nil {
		return false, device.Faultf(device.Offline, "%s is not driven", d.pin)
	}
	return d.line.Get()
}

// follows reports a line that is not where it was driven to.
func (d *driven) follows(on bool) error {
	got, err := d.get()
	if err == nil && got != on {
		err = device.Faultf(device.Offline, "%s is driven %v and reads %v; look for a short, or for something stronger that drives it", d.pin, device.Bool(on), device.Bool(got))
	}
	return err
}

func (d *driven) release() error {
	if d.line == nil {
		return nil
	}
	err := d.line.Close()
	d.line = nil
	return err
}

// pulsed is a line that is on for a part of the time.
type pulsed struct {
	driven
	period time.Duration
	train  *train // nil while the line keeps still
}

// set makes pulses of that length, none for 0, and no pauses for the whole period.
func (p *pulsed) set(on time.Duration) error {
	p.halt()
	if on <= 0 || on >= p.period {
		return p.driven.set(on > 0)
	}
	if p.line == nil {
		if err := p.driven.set(false); err != nil {
			return err
		}
	}
	t, err := p.board.pulse(p.line, on, p.period)
	if gone(err) {
		p.driven.release()
	}
	p.train = t
	return err
}

// halt ends the pulses, with the line off as far as it obeys: what comes next shows
// whether it does.
func (p *pulsed) halt() {
	if p.train == nil {
		return
	}
	err := p.train.stop()
	p.train = nil
	if gone(err) {
		p.driven.release()
	}
}

// broken is why the pulses have ended, or why the line cannot be used.
func (p *pulsed) broken() error {
	if p.train != nil {
		return p.train.broken()
	}
	_, err := p.get()
	return err
}

func (p *pulsed) read(now device.Value) (device.Value, error) {
	if now.IsZero() {
		return now, device.Faultf(device.Offline, "nobody knows what %s does: it was not driven yet, or did not obey", p.pin)
	}
	return now, p.broken()
}

func (p *pulsed) release() error {
	p.halt()
	return p.driven.release()
}
