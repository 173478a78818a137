package site

import (
	"slices"

	"agentsite/agents/agent"
	"agentsite/agents/heartbeat"
	"agentsite/agents/rule"
	"agentsite/device/board"
	"agentsite/device/chip"
	"agentsite/device/driver"
	"agentsite/device/gpio"
	"agentsite/device/host"
	"agentsite/device/kernel"
	"agentsite/device/sim"
	"agentsite/node/config"
	"agentsite/node/hosted"
)

// Drivers is the one list of them. All devices of a process are on one board: who
// shares a bus takes turns there.
func Drivers(b *board.Board) []driver.Driver {
	return slices.Concat(
		[]driver.Driver{host.Driver(), sim.Driver()},
		kernel.Drivers(),
		gpio.Drivers(b),
		chip.Drivers(b),
	)
}

// AllDrivers returns the drivers on a new board, for a process that runs no site.
func AllDrivers() []driver.Driver { return Drivers(board.New()) }

// kinds is the one list of the kinds of agents that a site can host.
func kinds(w rule.World) hosted.Kinds {
	return func(cfg *config.Site) []agent.Kind {
		w := w
		w.Place = cfg.Place
		w.Points, w.Open = cfg.Described()
		return []agent.Kind{heartbeat.Kind, rule.Kind(w)}
	}
}

// CheckAgents checks the agents section of a configuration, and makes the tests of its rules.
func CheckAgents(cfg *config.Site) error { return hosted.Check(cfg, kinds(rule.World{})) }

// acceptAgents checks the agents section before a start or a reload, which wait for no tests.
func acceptAgents(cfg *config.Site) error {
	return hosted.Check(cfg, kinds(rule.World{Untested: true}))
}

// Schema is the JSON Schema of a configuration with these drivers and kinds, for editors.
func Schema() ([]byte, error) {
	return config.Schema(AllDrivers(), kinds(rule.World{})(new(config.Site)))
}
