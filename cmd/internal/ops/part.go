package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/node/acts"
	"agentsite/node/config"
)

// DriverNamed returns the driver of that name, or the only one of the part that is called so.
func DriverNamed(name string, all []driver.Driver) (driver.Driver, error) {
	if d, ok := driver.Find(all, name); ok {
		return d, nil
	}
	found, err := FindDrivers(name, all)
	switch {
	case err != nil:
		return driver.Driver{}, err
	case len(found) > 1:
		var names []string
		for _, d := range found {
			names = append(names, d.Name)
		}
		return driver.Driver{}, fmt.Errorf("%q may be %s; name one of them", device.Clip(name, 60),
			strings.Join(names, " or "))
	case found[0].Of != nil:
		return driver.Driver{}, fmt.Errorf("%q stands for many parts: write %sNAME with the kernel's name of the part",
			device.Clip(name, 60), found[0].Name)
	}
	return found[0], nil
}

// PartKeys returns the keys that a person is asked for when they add a device with a driver: those that are
// always needed, and of outputs the level that is on and the time away from safe.
func PartKeys(d driver.Driver, all []driver.Driver) (ask []config.Key) {
	page, err := ReadDriver(d, all)
	if err != nil { // the member of a family has no entry
		page = &acts.Driver{Keys: config.Keys(d)}
	}
	isOutput := slices.ContainsFunc(page.Points, func(p acts.DriverPoint) bool { return p.Kind.Output() })
	for _, k := range slices.Concat(page.Keys, page.More) {
		inner := strings.ContainsAny(k.Key, ".[")
		if !inner && (k.Required || isOutput && (k.Key == "active_low" || k.Key == "max_on")) {
			ask = append(ask, k)
		}
	}
	return ask
}

// CheckSetting returns what is wrong with one key of a device with that driver, whatever its others are. What the
// driver itself finds is left to the check of the whole.
func CheckSetting(name string, s config.Setting, drivers []driver.Driver) error {
	base := config.NewFile("x")
	text, err := config.Edit("", base, "x", []config.Setting{{Key: "driver", Value: name}})
	if err == nil {
		base, err = text, nil
		text, err = config.Edit("", base, "x", []config.Setting{s})
	}
	if err != nil {
		return err
	}
	_, was := config.Parse("", base, drivers)
	_, err = config.Parse("", text, drivers)
	before := acts.MistakesOf(was)
	for _, m := range acts.MistakesOf(err) {
		missing := func(b acts.Mistake) bool { return b.Says == m.Says }
		if strings.Contains(m.Says, s.Key) && !slices.ContainsFunc(before, missing) {
			return device.Faultf(device.Invalid, "%s", strings.TrimPrefix(m.Says, "x: "))
		}
	}
	return nil
}

// PartFindings returns what doctor says of one device of a configuration on the board at root, but for notes,
// before the site has it.
func PartFindings(ctx context.Context, cfg *config.Site, name, root string) []driver.Finding {
	one := &config.Site{}
	for _, d := range cfg.Devices {
		if d.Name == name {
			one.Devices = append(one.Devices, d)
		}
	}
	b := board.On(board.Machine{Root: root})
	all := slices.Concat(unprepared(one, root), b.Findings(ctx, uses(one, false)), b.PowerOn(holds(one)))
	return slices.DeleteFunc(all, func(f driver.Finding) bool { return f.Subject != name || f.Severity == driver.Note })
}
