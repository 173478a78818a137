package ops

import (
	"fmt"
	"slices"
	"strings"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/pinout"
	"agentsite/device/driver"
	"agentsite/device/host"
	"agentsite/node/acts"
	"agentsite/node/config"
)

// ReadDriver returns the page of a driver. It touches no hardware.
func ReadDriver(d driver.Driver, all []driver.Driver) (*acts.Driver, error) {
	p := &acts.Driver{
		Driver: d.Name, Doc: d.Doc, Also: strings.Fields(d.Also), Entry: d.Shortest(), Keys: config.Keys(d), Note: d.Note,
	}
	cfg, err := config.Parse("agentsite.yaml", []byte("site: { name: a }\ndevices:\n  it: "+p.Entry+"\n"), all)
	if err != nil {
		return nil, fmt.Errorf("the shortest entry of %s is not valid: %w", d.Name, err)
	}
	c := cfg.Devices[0].Config
	_, machine := c.(*host.Config) // whose points depend on where this runs
	if describer, ok := c.(driver.Describer); ok && !machine {
		desc := describer.Describe()
		for _, point := range desc.Points {
			p.Points = append(p.Points, acts.DriverPoint{Point: point.Name, Kind: point.Kind, Unit: point.Unit})
		}
		p.More = config.PointKeys(desc)
		p.More = slices.DeleteFunc(p.More, func(k config.Key) bool {
			return slices.ContainsFunc(p.Keys, func(own config.Key) bool { return own.Key == k.Key || strings.HasSuffix(own.Key, ".NAME."+k.Key) })
		})
	}
	if chip, ok := c.(interface{ Addresses() []uint16 }); ok {
		p.Addresses = ranges(chip.Addresses())
	}
	uses := wiring(cfg)
	positions, _ := board.On(board.Machine{Root: "/none"}).Header(uses)
	for _, pos := range positions {
		if len(pos.Devices) > 0 {
			p.Wiring = append(p.Wiring, acts.Wire{Position: pos.Number, Line: pinout.Label(pos)})
		}
	}
	p.Setup = board.Setup(uses[0].Resources)
	if d.Setup != "" {
		p.Setup = append(p.Setup, d.Setup)
	}
	return p, nil
}

// ranges returns addresses as in 0x38, and three and more in a row as in 0x20..0x27.
func ranges(addresses []uint16) (all []string) {
	for i := 0; i < len(addresses); {
		last := i
		for last+1 < len(addresses) && addresses[last+1] == addresses[last]+1 {
			last++
		}
		if last < i+2 {
			last = i
			all = append(all, fmt.Sprintf("%#02x", addresses[i]))
		} else {
			all = append(all, fmt.Sprintf("%#02x..%#02x", addresses[i], addresses[last]))
		}
		i = last + 1
	}
	return all
}

// DescribeDrivers returns the pages of the drivers with that name, each with its schema; "" lists all drivers,
// each up to its entry.
func DescribeDrivers(name string, all []driver.Driver) (pages []acts.Driver, err error) {
	if name == "" {
		for _, d := range all {
			pages = append(pages, acts.Driver{Driver: d.Name, Doc: d.Doc, Also: strings.Fields(d.Also), Entry: d.Shortest()})
		}
		return pages, nil
	}
	found, err := FindDrivers(name, all)
	for _, d := range found {
		page, err := ReadDriver(d, all)
		if err == nil {
			page.Schema, err = config.DriverSchema(d)
		}
		if err != nil {
			return nil, err
		}
		for _, k := range PartKeys(d, all) {
			page.Asked = append(page.Asked, k.Key)
		}
		pages = append(pages, *page)
	}
	return pages, err
}

// FindDrivers returns the driver with that name, or those of a part that is called so.
func FindDrivers(name string, all []driver.Driver) ([]driver.Driver, error) {
	family := func(d driver.Driver) bool { return d.Of != nil && strings.TrimSuffix(name, ":")+":" == d.Name }
	if i := slices.IndexFunc(all, family); i >= 0 {
		return all[i : i+1], nil
	}
	if found := driver.Named(all, name); len(found) > 0 {
		return found, nil
	}
	return nil, fmt.Errorf("there is no driver %q%s", device.Clip(name, 60), config.DriverHint(name, all))
}
