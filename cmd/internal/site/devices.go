package site

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"agentsite/agents/things"
	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/config"
)

//go:embed demo.yaml
var demo []byte

// DefaultConfig is the file that run reads when it is there and none is named.
const DefaultConfig = "agentsite.yaml"

// Load reads the configuration: the named file, or agentsite.yaml where there is
// one, or else the built-in demonstration.
func Load(path string) (cfg *config.Site, from string, err error) {
	from = path
	if path == "" {
		from = DefaultConfig
	}
	cfg, err = config.Load(from, Drivers())
	if path == "" && errors.Is(err, fs.ErrNotExist) {
		cfg, err = config.Parse("the built-in demonstration", demo, Drivers())
		return cfg, "", err
	}
	return cfg, from, err
}

// devices are a site's devices, opened, and what comes with them.
type devices struct {
	things   []things.Thing
	sources  []node.Source
	actuated []guard.Actuated
	measured []string // addresses
}

// openDevices opens every device and makes the policies of its outputs. Nothing
// moves yet. What was opened is closed again when one fails.
func openDevices(ctx context.Context, cfg *config.Site) (all *devices, err error) {
	all = &devices{}
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	if err := survey(cfg, board.New()); err != nil {
		return all, err
	}
	for _, d := range cfg.Devices {
		dev, err := d.Config.Open(ctx)
		if err != nil {
			return all, d.Errorf("", "driver", "%s: %w", d.Name, err)
		}
		all.things = append(all.things, things.Thing{Name: d.Name, Device: dev})
		all.sources = append(all.sources, node.Source{Name: d.Name, Device: dev, Every: d.Every})
		desc := dev.Describe()
		if err := desc.Validate(); err != nil {
			return all, d.Errorf("", "driver", "%s: %w", d.Name, err)
		}
		for _, p := range desc.Points {
			if p.Kind == device.KindMeasurement {
				all.measured = append(all.measured, device.Address(d.Name, p.Name))
			}
		}
		policies, err := policies(d, desc)
		if err != nil {
			return all, err
		}
		if len(policies) == 0 {
			continue
		}
		actuator, ok := dev.(device.Actuator)
		if !ok {
			return all, d.Errorf("", "driver", "%s: the driver %s describes outputs that it cannot move", d.Name, d.Driver)
		}
		all.actuated = append(all.actuated, guard.Actuated{Actuator: actuator, Policies: policies})
	}
	return all, nil
}

// policies are what the owner's YAML makes of a device's outputs.
func policies(d config.Device, desc device.Description) ([]guard.Policy, error) {
	outputs, err := d.Outputs(desc)
	if err != nil {
		return nil, err
	}
	var all []guard.Policy
	for _, o := range outputs {
		p := guard.NewPolicy(d.Name, o.Point)
		for to, from := range map[*time.Duration]*time.Duration{&p.Lease: o.Lease, &p.MaxOn: o.MaxOn, &p.MinOff: o.MinOff} {
			if from != nil {
				*to = *from
			}
		}
		if err := p.Validate(); err != nil {
			return nil, d.Errorf(o.Point.Name, "lease", "%w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

func (all *devices) close() error {
	var errs []error
	for _, t := range all.things {
		if err := t.Device.Close(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Check reads a configuration and checks all that can be checked without
// touching hardware.
func Check(path string) (*config.Site, string, error) {
	cfg, from, err := Load(path)
	if err != nil {
		return nil, from, err
	}
	var errs []error
	for _, d := range cfg.Devices {
		if describer, ok := d.Config.(interface{ Describe() device.Description }); ok {
			_, err := policies(d, describer.Describe())
			errs = append(errs, err)
		}
	}
	return cfg, from, errors.Join(errs...)
}
