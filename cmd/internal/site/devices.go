package site

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"agentsite/agents/things"
	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/state"
)

//go:embed demo.yaml
var demo []byte

// load reads the configuration: the named file, or agentsite.yaml where there is
// one, or else the built-in demonstration.
func load(b *board.Board, path string) (cfg *config.Site, from string, err error) {
	from = path
	if path == "" {
		from = config.DefaultFile
	}
	cfg, err = config.Load(from, Drivers(b))
	if path == "" && errors.Is(err, fs.ErrNotExist) {
		cfg, err = config.Parse("the built-in demonstration", demo, Drivers(b))
		return cfg, "", err
	}
	var unopened *fs.PathError
	if errors.As(err, &unopened) {
		err = state.Mistakef("%w; look at its name and at who may read it", err)
	}
	return cfg, from, err
}

// closeTimeout bounds the closing of some devices together.
const closeTimeout = 2 * time.Second

// wired is one device as its owner wants it.
type wired struct {
	config.Device
	device   device.Device // a stand-in while the device is missing
	points   config.Points
	policies []guard.Policy // of outputs
	missing  error          // why it could not be opened
	turn     device.Turn    // of whoever has it show or capture
	stop     func()         // ends its sampling
}

// openDevices opens every device but the guard's, which are as the keeper has them. One
// that cannot be opened has a stand-in, whatever is wrong with it. The error is a mistake
// in the file, or ctx's; then all are closed again.
func openDevices(ctx context.Context, cfg *config.Site, b *board.Board, o *opener) ([]*wired, error) {
	if err := survey(cfg, b); err != nil {
		return nil, err
	}
	all, errs := o.open(ctx, cfg.Devices)
	var wrong []error
	for i, d := range cfg.Devices {
		switch {
		case errs[i] == nil:
		case guarded(d): // which was not opened
			wrong = append(wrong, errs[i])
		default:
			all[i] = standIn(d, errs[i])
		}
	}
	if ctx.Err() != nil {
		wrong = append(wrong, ctx.Err())
	}
	if wrong != nil {
		all = slices.DeleteFunc(all, func(w *wired) bool { return w == nil })
		return nil, errors.Join(append(wrong, closeDevices(all))...)
	}
	return all, nil
}

// wire makes of a device what its owner wants.
func wire(d config.Device, dev device.Device) (*wired, error) {
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
	if len(policies) > 0 && !guarded(d) {
		return nil, d.Errorf("", "driver", "%s: the driver %s knows of its outputs only once it is open; that is a defect of the driver", d.Name, d.Driver)
	}
	return &wired{Device: d, device: dev, points: points, policies: policies, turn: device.NewTurn()}, nil
}

func (w *wired) source() node.Source {
	s := node.Source{Name: w.Name, Device: w.device, Every: w.Every, Convert: make(map[string]func(float64) float64)}
	for _, m := range w.points.Measurements {
		s.Convert[m.Point.Name] = m.Convert
	}
	return s
}

func (w *wired) thing() things.Thing {
	t := things.Thing{Name: w.Name, Device: w.device, Description: w.points.Description, Turn: w.turn}
	for _, o := range w.points.Outputs {
		if o.Confirm {
			t.Confirm = append(t.Confirm, o.Point.Name)
		}
	}
	if w.missing != nil {
		t.Missing = w.missing.Error()
	}
	return t
}

// addresses are those of the device's points that keep says yes to.
func (w *wired) addresses(keep func(device.Kind) bool) []string {
	var all []string
	for _, p := range w.points.Description.Points {
		if keep(p.Kind) {
			all = append(all, device.Address(w.Name, p.Name))
		}
	}
	return all
}

// measured are the addresses whose past is kept.
func measured(devices []*wired) []string {
	var all []string
	for _, w := range devices {
		all = append(all, w.addresses(func(k device.Kind) bool { return k == device.KindMeasurement })...)
	}
	return all
}

// policies are what the owner's YAML makes of a device's outputs.
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
		if key, err := p.Mistake(); err != nil {
			errs = append(errs, d.Errorf(o.Point.Name, key, "%w", err))
		}
		all = append(all, p)
	}
	return all, errors.Join(errs...)
}

// errDeaf is of a device whose driver does not come back from closing it.
var errDeaf error = device.Faultf(device.Offline, "the driver does not come back")

// closeDevices closes them side by side, so that one that hangs keeps no other from
// going to safe, and waits at most closeTimeout and a moment for it.
func closeDevices(devices []*wired) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	errs := make([]error, len(devices))
	var closing sync.WaitGroup
	for i, w := range devices {
		closing.Go(func() {
			_, back, err := device.Ask(ctx, func(context.Context) (struct{}, error) { return struct{}{}, w.device.Close() })
			if back != nil {
				err = errDeaf
			}
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", w.Name, err)
			}
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}

// Check reads a configuration and checks all that can be checked without
// touching hardware.
func Check(path string) (*config.Site, string, error) { return check(board.New(), path) }

func check(b *board.Board, path string) (*config.Site, string, error) {
	cfg, from, err := load(b, path)
	if err != nil {
		return nil, from, err
	}
	return cfg, from, checkPlan(cfg)
}

// checkPlan is what a check finds beyond what the file itself says.
func checkPlan(cfg *config.Site) error {
	var errs []error
	for _, d := range cfg.Devices {
		if describer, ok := d.Config.(driver.Describer); ok {
			points, err := d.Points(describer.Describe())
			if err == nil {
				_, err = policies(d, points.Outputs)
			}
			errs = append(errs, err)
		}
	}
	errs = append(errs, stopsSomething(cfg), multiplexed(cfg))
	return errors.Join(errs...)
}
