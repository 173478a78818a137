package devices

import (
	"errors"
	"slices"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/node/config"
)

// Plan is the part of a configuration for the guard's process: the policies of the outputs, and a
// configuration with only some devices. Those are the devices that have outputs, are emergency
// stops, or are named in an output's requires.
type Plan struct {
	cfg      *config.Site
	text     []byte
	policies []guard.Policy
	devices  []config.Device
}

// Policies returns the limits of all outputs.
func (p Plan) Policies() []guard.Policy { return slices.Clone(p.policies) }

// equal reports whether two plans say the same, whatever their order and spelling.
func (p Plan) equal(q Plan) bool {
	return len(p.devices) == len(q.devices) && !slices.ContainsFunc(p.devices, func(d config.Device) bool {
		return !slices.ContainsFunc(q.devices, d.Same)
	})
}

// transition is the plan of the devices that stay in use while next replaces p; nil where
// none does. A change of an emergency stop concerns every output.
func (p Plan) transition(next Plan) []byte {
	var keep []config.Device
	outputs := false
	for _, d := range p.devices {
		stays := slices.ContainsFunc(next.devices, d.SameDriver)
		if stopState(d) != "" && !stays {
			return nil
		}
		if stays || !belongsToGuard(d) { // a device that an output requires is known by name only
			keep = append(keep, d)
			outputs = outputs || hasOutputs(d)
		}
	}
	if !outputs || slices.ContainsFunc(next.devices, func(d config.Device) bool {
		return stopState(d) != "" && !slices.ContainsFunc(p.devices, d.SameDriver)
	}) {
		return nil
	}
	return config.Plan(p.cfg, keep)
}

// NewPlan makes the plan of a configuration. The error is a mistake in it.
func NewPlan(cfg *config.Site) (Plan, error) {
	devices, err := configureGuarded(cfg, nil)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{cfg: cfg}
	required := make(map[string]bool)
	for _, d := range devices {
		p.policies = append(p.policies, d.policies...)
		for _, policy := range d.policies {
			for _, point := range []string{policy.Requires.Point, policy.Expects.Point} {
				name, _, _ := device.SplitAddress(point)
				required[name] = true
			}
		}
	}
	for _, d := range cfg.Devices {
		if belongsToGuard(d) || required[d.Name] {
			p.devices = append(p.devices, d)
		}
	}
	p.text = config.Plan(cfg, p.devices)
	return p, nil
}

// configureGuarded returns every device of the guard's process: as it is in open, or to be
// opened when it is first needed.
func configureGuarded(cfg *config.Site, open []*instance) ([]*instance, error) {
	var all []*instance
	var errs []error
	for _, d := range cfg.Devices {
		if !belongsToGuard(d) {
			continue
		}
		var dev device.Device
		if i := slices.IndexFunc(open, func(is *instance) bool { return is.SameDriver(d) }); i >= 0 {
			dev = open[i].device
		} else {
			dev = newLazyDevice(d)
		}
		is, err := configure(d, dev)
		all, errs = append(all, is), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// belongsToGuard reports whether a device belongs to the guard's process, with all its
// points: it has outputs, shares a serial port with a device that has some, or is an emergency stop.
func belongsToGuard(d config.Device) bool {
	return hasOutputs(d) || d.BesideOutputs || stopState(d) != ""
}

// hasOutputs reports whether a device has outputs. That is known without hardware.
func hasOutputs(d config.Device) bool {
	c, ok := d.Config.(driver.Describer)
	return ok && describesOutputs(c.Describe())
}

// stopState returns the point of an emergency stop that stops, "" for all other devices.
func stopState(d config.Device) string {
	if c, ok := d.Config.(driver.Stopper); ok {
		return c.Stops()
	}
	return ""
}

func describesOutputs(d device.Description) bool {
	return slices.ContainsFunc(d.Points, func(p device.Point) bool { return p.Kind.Output() })
}
