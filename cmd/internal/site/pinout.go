package site

import (
	"cmp"

	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/kernel"
	"agentsite/node/config"
)

// PinoutOptions are what pinout is told.
type PinoutOptions struct {
	Config string // a file; "" for agentsite.yaml, where there is one
	Root   string // "" is the machine; a test's tree of files
}

// Pinout is the board's header with the devices of a configuration at its positions.
type Pinout struct {
	Site      string           `json:"site,omitzero"` // "" without a configuration
	Board     string           `json:"board"`
	Positions []board.Position `json:"positions"`
	Elsewhere []string         `json:"elsewhere,omitzero"` // devices that have no position there
}

// anyBoard is what a machine is drawn as that is no Raspberry Pi: the one that the
// configuration is for.
const anyBoard = "Raspberry Pi"

// NewPinout reads the configuration and moves nothing.
func NewPinout(o PinoutOptions) (*Pinout, error) {
	cfg, _, _, err := readConfig(o.Config)
	if err != nil {
		return nil, err
	}
	b := boardAt(o.Root)
	p := &Pinout{Site: cfg.Name, Board: anyBoard}
	if b.ConfigFile() != "" {
		p.Board = cmp.Or(b.Model(), anyBoard)
	}
	p.Positions, p.Elsewhere = b.Header(wiredTo(cfg))
	return p, nil
}

// wiredTo is what each device has of the board.
func wiredTo(cfg *config.Site) []board.Use {
	var all []board.Use
	for _, d := range cfg.Devices {
		u := board.Use{Device: d.Name}
		if c, ok := d.Config.(driver.Claimer); ok {
			u.Claims = c.Claims()
		}
		if _, ok := d.Config.(*kernel.W1); ok {
			u.Claims = append(u.Claims, board.OneWireClaim)
		}
		all = append(all, u)
	}
	return all
}
