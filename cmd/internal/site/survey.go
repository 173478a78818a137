package site

import (
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/node/config"
)

// survey compares what the devices need of the board with what it has, before any
// is opened.
func survey(cfg *config.Site) error {
	claims := make(map[string][]driver.Claim)
	for _, d := range cfg.Devices {
		if c, ok := d.Config.(driver.Claimer); ok {
			claims[d.Name] = c.Claims()
		}
	}
	return board.New().Survey(claims)
}
