package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/node/config"
	"agentsite/node/state"
)

// PrepareOptions are the options of Prepare and WriteClaim.
type PrepareOptions struct {
	Config  string // a file, which is created or copied where there is none; "" for agentsite.yaml, where there is one
	Drivers []driver.Driver
	Folder  state.Folder // of the site
	Boot    string       // where the boot partition is mounted; "" for where a Raspberry Pi has it
	Group   string       // may use exported channels
	Root    string       // "" is the machine; a test's tree of files, which anybody may prepare

	board *board.Board // nil is this machine's
}

// DefaultGroup is the group that Raspberry Pi OS gives its own PWM channels to.
const DefaultGroup = "gpio"

func superuser(o PrepareOptions) error {
	if o.Root == "" && os.Geteuid() != 0 {
		return device.Faultf(device.Denied, "only the superuser may configure the kernel: sudo agentsite prepare")
	}
	return nil
}

// Prepare does the steps that need root before a site starts, and returns the completed steps, one
// line each. These are the steps of a first boot, if a configuration is named, and then the
// devices' preparation of the kernel. It can be repeated. After an error it continues with the
// rest.
func Prepare(ctx context.Context, o PrepareOptions) (did []string, err error) {
	if err := superuser(o); err != nil {
		return nil, err
	}
	var errs []error
	if o.Config != "" {
		did, err = firstBoot(ctx, o)
		errs = append(errs, err)
	}
	cfg, file, _, err := config.LoadFile(o.Config, o.Drivers)
	if err != nil {
		return did, errors.Join(append(errs, err)...)
	}
	for _, d := range cfg.Devices {
		p, ok := d.Config.(driver.Preparer)
		if !ok {
			continue
		}
		lines, err := p.Prepare(driver.Preparation{Root: o.Root, Group: o.Group})
		for _, line := range lines {
			did = append(did, d.Name+": "+line)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", filepath.Base(file), d.Name, err))
		}
	}
	lines, err := prepareChildren(ctx, o, cfg, file)
	return append(did, lines...), errors.Join(append(errs, err)...)
}
