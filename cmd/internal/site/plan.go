package site

import (
	"errors"
	"slices"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/node/config"
)

// plan is what the guard's process is to know: the devices that have outputs or stop
// them, and those that these require something of, as a configuration of their own, and
// what each output may do.
type plan struct {
	cfg      *config.Site
	text     []byte
	policies []guard.Policy
	devices  []config.Device
}

// same reports whether two plans say the same, in whatever order and words.
func (p plan) same(q plan) bool {
	return len(p.devices) == len(q.devices) && !slices.ContainsFunc(p.devices, func(d config.Device) bool {
		return !slices.ContainsFunc(q.devices, d.Same)
	})
}

// between is the plan of what goes on while next takes the place of p; nil where nothing
// does. A change of an emergency stop concerns every output.
func (p plan) between(next plan) []byte {
	var keep []config.Device
	outputs := false
	for _, d := range p.devices {
		stays := slices.ContainsFunc(next.devices, d.SameDriver)
		if stops(d) != "" && !stays {
			return nil
		}
		if stays || !guarded(d) { // what an output requires is known by name only
			keep = append(keep, d)
			outputs = outputs || drives(d)
		}
	}
	if !outputs || slices.ContainsFunc(next.devices, func(d config.Device) bool {
		return stops(d) != "" && !slices.ContainsFunc(p.devices, d.SameDriver)
	}) {
		return nil
	}
	return config.Plan(p.cfg, keep)
}

func newPlan(cfg *config.Site) (plan, error) {
	devices, err := wireGuarded(cfg, nil)
	if err != nil {
		return plan{}, err
	}
	p := plan{cfg: cfg}
	required := make(map[string]bool)
	for _, w := range devices {
		p.policies = append(p.policies, w.policies...)
		for _, policy := range w.policies {
			name, _, _ := device.SplitAddress(policy.Requires.Point)
			required[name] = true
		}
	}
	for _, d := range cfg.Devices {
		if guarded(d) || required[d.Name] {
			p.devices = append(p.devices, d)
		}
	}
	p.text = config.Plan(cfg, p.devices)
	return p, nil
}

// wireGuarded is every device of the guard's process, known without hardware and opened
// when it is needed, or as it is open already.
func wireGuarded(cfg *config.Site, open []*wired) ([]*wired, error) {
	var all []*wired
	var errs []error
	for _, d := range cfg.Devices {
		if !guarded(d) {
			continue
		}
		var dev device.Device
		if i := slices.IndexFunc(open, func(w *wired) bool { return w.SameDriver(d) }); i >= 0 {
			dev = open[i].device
		} else {
			dev = newLate(d)
		}
		w, err := wire(d, dev)
		all, errs = append(all, w), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// guarded reports whether a device belongs to the guard's process: all of one that has
// outputs, or that stops them.
func guarded(d config.Device) bool { return drives(d) || stops(d) != "" }

// drives reports whether a device has outputs. It is known without hardware.
func drives(d config.Device) bool {
	c, ok := d.Config.(driver.Describer)
	return ok && hasOutputs(c.Describe())
}

// stops is the state of a device that is an emergency stop, or "".
func stops(d config.Device) string {
	if c, ok := d.Config.(driver.Stopper); ok {
		return c.Stops()
	}
	return ""
}

func hasOutputs(d device.Description) bool {
	return slices.ContainsFunc(d.Points, func(p device.Point) bool { return p.Kind.Output() })
}
