package ops

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"agentsite/device/board"
	"agentsite/device/board/pinout"
	"agentsite/device/driver"
	"agentsite/device/kernel"
	"agentsite/node/acts"
	"agentsite/node/config"
)

// PinoutOptions are the options of ReadPinout.
type PinoutOptions struct {
	Config  string // a file; "" for agentsite.yaml, where there is one
	Drivers []driver.Driver
	Root    string // "" is the machine; a test's tree of files
}

// anyBoard is the name of the configuration's board when this machine is not a Raspberry Pi.
const anyBoard = "Raspberry Pi"

// ReadPinout reads the configuration and returns the header that it is wired to. It touches
// no hardware.
func ReadPinout(o PinoutOptions) (*pinout.Pinout, error) {
	cfg, _, _, err := config.LoadFile(o.Config, o.Drivers)
	if err != nil {
		return nil, err
	}
	return PinoutOf(cfg, o.Root), nil
}

// PinoutOf returns the header that a configuration is wired to, of the board at root.
func PinoutOf(cfg *config.Site, root string) *pinout.Pinout {
	b := board.On(board.Machine{Root: root})
	p := &pinout.Pinout{Site: cfg.Name, Board: anyBoard}
	if b.ConfigFile() != "" {
		p.Board = cmp.Or(b.Model(), anyBoard)
	}
	p.Positions, p.Elsewhere = b.Header(wiring(cfg))
	return p
}

// AnswerPinout returns a header as an owner gets it.
func AnswerPinout(p *pinout.Pinout) acts.Pinout {
	a := acts.Pinout{Site: p.Site, Board: p.Board, Elsewhere: p.Elsewhere}
	for _, x := range p.Positions {
		a.Positions = append(a.Positions,
			acts.Pin{Position: x.Number, Kind: x.Kind, Line: string(x.Line), Signal: x.Signal, Devices: x.Devices})
	}
	return a
}

// OffHeader returns a remark about each line of a Raspberry Pi that is not on its header.
func OffHeader(cfg *config.Site) (all []string) {
	const last = 27 // the last line on the header
	for _, u := range wiring(cfg) {
		for _, c := range u.Resources {
			n, err := strconv.Atoi(strings.TrimPrefix(c.Name, "GPIO"))
			if err == nil && n > last {
				all = append(all, fmt.Sprintf("%s: %s is not on the 40-pin header, which ends with GPIO%d", u.Device, c.Name, last))
			}
		}
	}
	return all
}

// wiring returns the lines and buses that each device uses.
func wiring(cfg *config.Site) []board.Use {
	var all []board.Use
	for _, d := range cfg.Devices {
		u := board.Use{Device: d.Name}
		if c, ok := d.Config.(driver.ResourceUser); ok {
			u.Resources = c.Resources()
		}
		if _, ok := d.Config.(*kernel.W1); ok {
			u.Resources = append(u.Resources, board.OneWireResource)
		}
		all = append(all, u)
	}
	return all
}
