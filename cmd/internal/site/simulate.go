package site

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentsite/agents/llm"
	"agentsite/cmd/internal/hosting"
	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/fake"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/devices"
	"agentsite/node/state"
)

// read reads and checks the configuration, of a simulated site with fakes and what stays on this machine alone.
func (o Options) read(drivers []driver.Driver) (cfg *config.Site, from string, err error) {
	if o.Demo {
		cfg, err = devices.CheckDemo(drivers, hosting.Accept)
		return cfg, "", err
	}
	cfg, from, err = devices.Check(o.Config, drivers, hosting.Accept)
	if err == nil && o.Simulate {
		err = confine(cfg)
	}
	return cfg, from, err
}

// confine leaves out of cfg what reaches other machines, or this one's power.
func confine(cfg *config.Site) error {
	cfg.HTTP.HTTPS, cfg.HTTP.OAuth, cfg.HTTP.Callers, cfg.HTTP.PushHosts = config.ListenNone, false, nil, nil
	cfg.Internet, cfg.WoT, cfg.Owner, cfg.Claim = nil, config.WoT{}, "", ""
	cfg.Discovery = config.Discovery{}
	left := slices.DeleteFunc(slices.Clone(cfg.Agents), isLocal)
	cfg.Agents = slices.DeleteFunc(cfg.Agents, func(a config.Agent) bool { return !isLocal(a) })
	err := hosting.Accept(cfg)
	if err != nil && len(left) > 0 {
		return fmt.Errorf("a simulation leaves out what reaches other machines, such as %s (%s), and others need that: %w",
			left[0].Name, left[0].Kind, err)
	}
	return err
}

func isLocal(a config.Agent) bool { return hosting.IsLocal(a.Kind) }

// LoadSimulated reads a configuration with a fake in place of each device.
func LoadSimulated(file string) (*config.Site, error) {
	fakes, _, err := devices.Load(file, fake.Drivers(AllDrivers()))
	return fakes, err
}

// Differences returns in sentences how the simulation fakes differs from the site, whose configuration is cfg.
func Differences(cfg, fakes *config.Site) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for i, d := range cfg.Devices {
		var points []string
		for _, p := range fakes.Devices[i].Config.(driver.Describer).Describe().Points {
			points = append(points, p.Name)
		}
		switch _, guessed := d.Config.(driver.Guesser); {
		case len(points) == 0:
			say("%s: left out, because nothing says which points it has: name them under points:", d.Name)
		case guessed:
			say("%s: guessed to have %s, because a part of %s tells its points only when it is open", d.Name,
				strings.Join(points, ", "), d.Driver)
		}
	}
	for _, a := range cfg.Agents {
		switch {
		case !isLocal(a):
			say("%s: left out, because %s reaches what is outside of a simulation", a.Name, a.Kind)
		case a.Kind == llm.KindName:
			say("%s: a script answers in place of its model", a.Name)
		}
	}
	if cfg.Internet != nil {
		say("internet: left out; nobody but this machine reaches a simulation")
	}
	if cfg.Watchdog != "" {
		say("site.watchdog: left out")
	}
	return all
}

// driversOf returns the drivers on the site's board, or fakes of all of them. Nothing else decides what a device is:
// all configurations of the site are parsed with these.
func (s *site) driversOf() []driver.Driver {
	all := Drivers(s.board)
	if s.Simulate {
		return fake.Drivers(all)
	}
	return all
}

// checkFolder refuses a simulation in the folder of a site that may drive outputs: it would be taken for that.
func (s *site) checkFolder() error {
	if !s.Simulate {
		return nil
	}
	text, err := s.Folder.ReadPlan()
	if err == nil && text != nil && !config.IsSimulation(text) {
		err = state.Mistakef("%s belongs to a site with real devices: leave out --data, or name another folder", s.Folder)
	}
	return err
}

// simulate returns the act that tells fakes what to read; nil for a site with real devices.
func (s *site) simulate() func(context.Context, acts.Simulated) error {
	if !s.Simulate {
		return nil
	}
	return func(ctx context.Context, to acts.Simulated) error {
		r := device.Reading{Point: to.Point, Value: to.Value, Quality: device.Good}
		if to.Fault != "" {
			r.Value, r.Quality, r.Why = device.Value{}, device.Bad, to.Fault
		}
		return s.devices.Simulate(ctx, r)
	}
}

// errSimulated refuses what would reach the hardware of the machine that runs a simulation.
var errSimulated = device.Faultf(device.Invalid, "this site is simulated and leaves the machine that it runs on alone")
