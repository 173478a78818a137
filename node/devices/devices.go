package devices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/config"
)

// closeTimeout bounds closing any number of devices.
const closeTimeout = 2 * time.Second

// instance is one device as its owner configured it.
type instance struct {
	config.Device
	device   device.Device // a placeholder while the device is missing
	points   config.Points
	policies []guard.Policy // of outputs
	missing  error          // why it could not be opened
	busy     device.Mutex   // held while it shows or captures
	stop     func()         // ends its sampling
}

// openDevices opens every device except the guard's, which the opener's keeper represents.
// A device that cannot be opened, for whatever reason, becomes a placeholder. The error is
// a mistake in the file, or ctx's; then all devices are closed again.
func openDevices(ctx context.Context, cfg *config.Site, b *board.Board, o *opener) ([]*instance, error) {
	if err := checkBoard(cfg, b); err != nil {
		return nil, err
	}
	all, errs := o.open(ctx, cfg.Devices)
	var wrong []error
	for i, d := range cfg.Devices {
		switch {
		case errs[i] == nil:
		case belongsToGuard(d): // it is not opened here, so the file is wrong
			wrong = append(wrong, errs[i])
		default:
			all[i] = newPlaceholder(d, errs[i])
		}
	}
	if ctx.Err() != nil {
		wrong = append(wrong, ctx.Err())
	}
	if wrong != nil {
		all = slices.DeleteFunc(all, func(d *instance) bool { return d == nil })
		return nil, errors.Join(append(wrong, closeDevices(all))...)
	}
	return all, nil
}

// configure applies the owner's configuration to an open device.
func configure(d config.Device, dev device.Device) (*instance, error) {
	desc := dev.Describe()
	if err := desc.Validate(); err != nil {
		return nil, d.Errorf("", "driver", "%s: %w", d.Name, err)
	}
	points, err := d.Points(desc)
	if err != nil {
		return nil, err
	}
	policies, err := policies(d, points.Outputs)
	if err != nil {
		return nil, err
	}
	if len(policies) > 0 && !belongsToGuard(d) {
		return nil, d.Errorf("", "driver", "%s: the driver %s describes its outputs only after Open; this is a bug in the driver", d.Name, d.Driver)
	}
	return &instance{Device: d, device: dev, points: points, policies: policies, busy: device.NewMutex()}, nil
}

func (d *instance) source() node.Source {
	s := node.Source{Name: d.Name, Device: d.device, Every: d.Every, Period: d.Period(), Convert: make(map[string]func(float64) float64)}
	for _, m := range d.points.Measurements {
		s.Convert[m.Point.Name] = m.Convert
	}
	return s
}

func (d *instance) published() node.Device {
	t := node.Device{Name: d.Name, Device: d.device, Description: d.points.Description, Busy: d.busy}
	for _, o := range d.points.Outputs {
		if o.Confirm {
			t.Confirm = append(t.Confirm, o.Point.Name)
		}
	}
	if d.missing != nil {
		t.Missing = d.missing.Error()
	}
	return t
}

// addresses returns the addresses of the points whose kind keep accepts.
func (d *instance) addresses(keep func(device.Kind) bool) []string {
	var all []string
	for _, p := range d.points.Description.Points {
		if keep(p.Kind) {
			all = append(all, device.Address(d.Name, p.Name))
		}
	}
	return all
}

// points returns all points by address, for the history.
func points(devices []*instance) map[string]device.Point {
	all := make(map[string]device.Point)
	for _, d := range devices {
		for _, p := range d.points.Description.Points {
			all[device.Address(d.Name, p.Name)] = p
		}
	}
	return all
}

// policies returns the guard's policies of a device's outputs: the defaults, changed by the
// owner's YAML.
func policies(d config.Device, outputs []config.Output) ([]guard.Policy, error) {
	var all []guard.Policy
	var errs []error
	for _, o := range outputs {
		p := guard.NewPolicy(d.Name, o.Point)
		if o.Lease != nil {
			p.Lease = *o.Lease
		}
		if o.MaxOn != nil {
			p.MaxOn = *o.MaxOn
		}
		if o.MinOn != nil {
			p.MinOn = *o.MinOn
		}
		if o.MinOff != nil {
			p.MinOff, p.Rest = *o.MinOff, *o.MinOff
		}
		if o.Duty != nil {
			p.Duty = guard.Duty(*o.Duty)
		}
		if o.Rate != nil {
			p.Rate = guard.Rate(*o.Rate)
		}
		if o.Slew != nil {
			p.Slew.PerSecond = o.Slew.PerSecond
		}
		p.Slew.Ramp = o.Ramp
		if o.Interlock != nil {
			p.Interlock = guard.Interlock{Group: string(o.Interlock.Group), Gap: o.Interlock.Gap}
		}
		if r := o.Requires; r != nil {
			p.Requires = guard.Requirement{Point: string(r.Point), Is: r.Is.Value(), MaxAge: r.MaxAge}
			if r.Within != nil {
				p.Requires.Within = *r.Within
			}
		}
		if x := o.Expect; x != nil {
			p.Expects = guard.Expectation{Point: string(x.Point), Within: x.Range(), Is: x.Is.Value(), By: x.Within}
			switch {
			case x.Latches():
				p.Expects.Else = guard.ElseLatch
			case x.Alarms():
				p.Expects.Else = guard.ElseAlarm
			}
		}
		if key, err := p.Mistake(); err != nil {
			errs = append(errs, d.Errorf(o.Point.Name, key, "%w", err))
		}
		all = append(all, p)
	}
	return all, errors.Join(errs...)
}

// errHung is the error of a device whose driver does not return from Close.
var errHung error = device.Faultf(device.Offline, "the driver hangs in Close")

// closeDevices closes devices concurrently, so that a hanging one does not delay the others'
// return to safe. It blocks for a little more than closeTimeout at most.
func closeDevices(devices []*instance) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	errs := make([]error, len(devices))
	var closing sync.WaitGroup
	for i, d := range devices {
		closing.Go(func() {
			_, back, err := device.Call(ctx, func(context.Context) (struct{}, error) { return struct{}{}, d.device.Close() })
			if back != nil {
				err = errHung
			}
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", d.Name, err)
			}
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}
