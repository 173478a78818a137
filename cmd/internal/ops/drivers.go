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
	"agentsite/node/config"
)

// DriverPage describes a driver to somebody who wires up and configures a part.
type DriverPage struct {
	Driver string         `json:"driver"`
	Doc    string         `json:"is"`
	Also   []string       `json:"also,omitzero"` // other names of the part
	Entry  string         `json:"entry"`         // the shortest entry of a device
	Points []DriverPoint  `json:"points,omitzero"`
	Keys   []config.Key   `json:"keys"`
	More   []config.Key   `json:"point_keys,omitzero"` // those of the device's points
	Wiring []DriverWiring `json:"wiring,omitzero"`     // of the shortest entry
	Setup  []string       `json:"config_txt,omitzero"` // lines of a Raspberry Pi's config.txt
	Note   string         `json:"note,omitzero"`

	Addresses []string `json:"addresses,omitzero"` // that the chip can have: 0x38, 0x20..0x27
}

// DriverPoint is a point that the shortest entry makes.
type DriverPoint struct {
	Point string      `json:"point"`
	Kind  device.Kind `json:"kind"`
	Unit  string      `json:"unit,omitzero"`
}

// DriverWiring is a position of the header, and what is there.
type DriverWiring struct {
	Position int    `json:"position"`
	Line     string `json:"line"` // "GPIO2 SDA"
}

// ReadDriver returns the page of a driver. It touches no hardware.
func ReadDriver(d driver.Driver, all []driver.Driver) (*DriverPage, error) {
	p := &DriverPage{Driver: d.Name, Doc: d.Doc, Also: strings.Fields(d.Also), Entry: d.Shortest(), Keys: config.Keys(d), Note: d.Note}
	cfg, err := config.Parse("agentsite.yaml", []byte("site: { name: a }\ndevices:\n  it: "+p.Entry+"\n"), all)
	if err != nil {
		return nil, fmt.Errorf("the shortest entry of %s is not valid: %w", d.Name, err)
	}
	c := cfg.Devices[0].Config
	_, machine := c.(*host.Config) // whose points depend on where this runs
	if describer, ok := c.(driver.Describer); ok && !machine {
		desc := describer.Describe()
		for _, point := range desc.Points {
			p.Points = append(p.Points, DriverPoint{point.Name, point.Kind, point.Unit})
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
			p.Wiring = append(p.Wiring, DriverWiring{pos.Number, pinout.Label(pos)})
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

// String returns the point with its unit or kind.
func (p DriverPoint) String() string {
	if p.Unit != "" {
		return p.Point + " (" + p.Unit + ")"
	}
	return p.Point + " (" + string(p.Kind) + ")"
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
