package site

import (
	"errors"

	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/node/config"
)

// CheckHere is Check, and on a Raspberry Pi a look whether it has the lines that the
// devices need. It opens no line.
func CheckHere(path string) (*config.Site, string, error) {
	b := board.New()
	cfg, from, err := check(b, path)
	if err == nil {
		err = atDevices(cfg, b.Missing(claimed(cfg)))
	}
	return cfg, from, err
}

// claimed is what the devices need of the board, by their names.
func claimed(cfg *config.Site) map[string][]driver.Claim {
	claims := make(map[string][]driver.Claim)
	for _, d := range cfg.Devices {
		if c, ok := d.Config.(driver.Claimer); ok {
			claims[d.Name] = c.Claims()
		}
	}
	return claims
}

// survey finds what devices need and cannot all have, before any is opened. The error
// shows each finding at its device's line.
func survey(cfg *config.Site, b *board.Board) error {
	return atDevices(cfg, b.Survey(claimed(cfg)))
}

// atDevices is an error of a board's with each finding at its device's line.
func atDevices(cfg *config.Site, err error) error {
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
		if f, ok := errors.AsType[*board.Finding](err); ok {
			err = devices[f.Device].Errorf("", "pin", "%w", f)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}
