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

func newPlan(cfg *config.Site) (plan, error) {
	devices, err := wireGuarded(cfg)
	if err != nil {
		return plan{}, err
	}
	var p plan
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
// when it is needed.
func wireGuarded(cfg *config.Site) ([]*wired, error) {
	var all []*wired
	var errs []error
	for _, d := range cfg.Devices {
		if guarded(d) {
			w, err := wire(d, newLate(d))
			all, errs = append(all, w), append(errs, err)
		}
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
