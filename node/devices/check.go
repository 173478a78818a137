package devices

import (
	_ "embed"
	"errors"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/node/config"
)

//go:embed demo.yaml
var demo []byte

// Load reads the configuration from the named file, else from config.DefaultFile if it exists, else
// the built-in demonstration. from is the file's name, "" for the demonstration.
func Load(path string, drivers []driver.Driver) (cfg *config.Site, from string, err error) {
	cfg, from, text, err := config.LoadFile(path, drivers)
	if err == nil && text == nil {
		cfg, err = loadDemo(drivers)
		return cfg, "", err
	}
	return cfg, from, err
}

func loadDemo(drivers []driver.Driver) (*config.Site, error) {
	return config.Parse("the built-in demonstration", demo, drivers)
}

// Check loads a configuration and checks all that can be checked without touching hardware; others
// check the other parts.
func Check(path string, drivers []driver.Driver, others ...func(*config.Site) error) (cfg *config.Site, from string, err error) {
	cfg, from, err = Load(path, drivers)
	if err != nil {
		return nil, from, err
	}
	return cfg, from, checkAll(cfg, others)
}

// CheckText does what Check does, with a text; errors name it name.
func CheckText(
	name string, text []byte, drivers []driver.Driver, others ...func(*config.Site) error,
) (*config.Site, error) {
	cfg, err := config.Parse(name, text, drivers)
	if err != nil {
		return nil, err
	}
	return cfg, checkAll(cfg, others)
}

// CheckDemo does what Check does, with the built-in demonstration.
func CheckDemo(drivers []driver.Driver, others ...func(*config.Site) error) (*config.Site, error) {
	cfg, err := loadDemo(drivers)
	if err != nil {
		return nil, err
	}
	return cfg, checkAll(cfg, others)
}

func checkAll(cfg *config.Site, others []func(*config.Site) error) error {
	errs := []error{CheckDevices(cfg)}
	for _, check := range others {
		errs = append(errs, check(cfg))
	}
	return errors.Join(errs...)
}

// CheckBoard does what Check does, and on a Raspberry Pi also checks that the board has the
// lines that the devices need. It opens no line.
func CheckBoard(path string, b *board.Board, drivers []driver.Driver, others ...func(*config.Site) error) (cfg *config.Site, from string, err error) {
	cfg, from, err = Check(path, drivers, others...)
	if err == nil {
		err = locateFindings(cfg, b.Missing(boardClaims(cfg)))
	}
	return cfg, from, err
}

// CheckBoardText does what CheckBoard does, with a text; errors name it name.
func CheckBoardText(
	name string, text []byte, b *board.Board, drivers []driver.Driver, others ...func(*config.Site) error,
) (*config.Site, error) {
	cfg, err := CheckText(name, text, drivers, others...)
	if err == nil {
		err = locateFindings(cfg, b.Missing(boardClaims(cfg)))
	}
	return cfg, err
}

// CheckDevices returns the mistakes that only the devices' drivers know, together: limits of
// outputs, emergency stops without an output, multiplexers that two processes would use.
func CheckDevices(cfg *config.Site) error {
	var errs []error
	for _, d := range cfg.Devices {
		if describer, ok := d.Config.(driver.Describer); ok {
			points, err := d.Points(describer.Describe())
			if err == nil {
				_, err = policies(d, points.Outputs)
			}
			errs = append(errs, err)
		}
	}
	errs = append(errs, checkStopButtons(cfg), checkMultiplexers(cfg))
	return errors.Join(errs...)
}

// Doubts returns what may be a mistake about devices: files that cannot be read, once, outputs that are reached by a
// network, and, once for each host, secrets that are sent without encryption.
func Doubts(cfg *config.Site) (doubts []error) {
	told, sent := false, make(map[string]bool)
	for _, d := range cfg.Devices {
		doubts = append(doubts, d.FileDoubts()...)
		if peer, ok := d.Config.(driver.Networked); ok && hasOutputs(d) && !told {
			told = true
			doubts = append(doubts, d.Errorf("", "driver", "%s: while the connection is lost, only %s itself can switch it "+
				"off; "+
				"set it to do so, as docs/network-devices.md says of its driver", d.Name, peer.Peer()))
		}
		if c, ok := d.Config.(driver.Unencrypted); ok && c.SentTo() != "" && !sent[c.SentTo()] {
			sent[c.SentTo()] = true
			doubts = append(doubts, d.Errorf("", "driver", "%s: its password or key is sent to %s without encryption: others "+
				"in the network can read it, "+
				"and whoever poses as %[2]s gets it; write mqtts:// or https:// where it has that", d.Name, c.SentTo()))
		}
	}
	return doubts
}

// Reader returns a function that reads and checks the file that the site was started with, and no
// other; "" is the demonstration. drivers are those of the first read: the devices of the new
// configuration have to share the board of the open ones.
func Reader(file string, drivers []driver.Driver, others ...func(*config.Site) error) func() (*config.Site, error) {
	return func() (*config.Site, error) {
		if file == "" {
			return nil, device.Faultf(device.Invalid, "the demonstration has no file to read again: write %s and start with it", config.DefaultFile)
		}
		cfg, _, err := Check(file, drivers, others...)
		return cfg, err
	}
}

// boardClaims returns the resources of the board that the devices need, by device name.
func boardClaims(cfg *config.Site) map[string][]driver.Resource {
	claims := make(map[string][]driver.Resource)
	for _, d := range cfg.Devices {
		if c, ok := d.Config.(driver.ResourceUser); ok {
			claims[d.Name] = c.Resources()
		}
	}
	return claims
}

// checkBoard finds resources that several devices need and only one can have, before any is opened.
// The error shows each finding at its device's line.
func checkBoard(cfg *config.Site, b *board.Board) error {
	return locateFindings(cfg, b.Survey(boardClaims(cfg)))
}

// locateFindings puts each finding in a board's error at its device's line.
func locateFindings(cfg *config.Site, err error) error {
	devices := make(map[string]config.Device)
	for _, d := range cfg.Devices {
		devices[d.Name] = d
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var all []error
	for _, err := range joined.Unwrap() {
		if f, ok := errors.AsType[*board.DeviceError](err); ok {
			err = devices[f.Device].Errorf("", "pin", "%w", f)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}
