package site

import (
	"slices"
	"time"

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

// Kinds is the one list of the kinds of agents that a site can host. now is its clock, which
// nothing but running them asks for.
func Kinds(now func() (t time.Time, sure bool)) hosted.Kinds {
	return func(cfg *config.Site) []agent.Kind {
		points, open := cfg.Described()
		return []agent.Kind{heartbeat.Kind, rule.Kind(rule.World{Now: now, Place: cfg.Place, Points: points, Open: open})}
	}
}

// CheckAgents checks the agents section of a configuration.
func CheckAgents(cfg *config.Site) error { return hosted.Check(cfg, Kinds(nil)) }

// Schema is the JSON Schema of a configuration with these drivers and kinds, for editors.
func Schema() ([]byte, error) { return config.Schema(AllDrivers(), Kinds(nil)(new(config.Site))) }
