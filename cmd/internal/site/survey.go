package site

import (
	"errors"

	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/node/config"
)

// survey compares what the devices need of the board with what it has, before any
// is opened. What the processes in ours use already is theirs. The error shows each
// finding at its device's line.
func survey(cfg *config.Site, b *board.Board, ours ...int) error {
	claims := make(map[string][]driver.Claim)
	devices := make(map[string]config.Device)
	for _, d := range cfg.Devices {
		devices[d.Name] = d
		if c, ok := d.Config.(driver.Claimer); ok {
			claims[d.Name] = c.Claims()
		}
	}
	err := b.Survey(claims, ours...)
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
