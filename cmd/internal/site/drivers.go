package site

import (
	"slices"
	"sync"

	"agentsite/cmd/internal/hosting"
	"agentsite/device/beacon"
	"agentsite/device/board"
	"agentsite/device/chip"
	"agentsite/device/driver"
	"agentsite/device/esphome"
	"agentsite/device/gpio"
	"agentsite/device/host"
	"agentsite/device/kernel"
	"agentsite/device/modbus"
	"agentsite/device/mqtt"
	"agentsite/device/sim"
	"agentsite/device/web"
	"agentsite/node/config"
)

// Drivers returns all drivers. All devices of a process share one board, which serialises access to
// a shared bus.
func Drivers(b *board.Board) []driver.Driver {
	return slices.Concat(
		[]driver.Driver{host.Driver(), sim.Driver()},
		kernel.Drivers(),
		gpio.Drivers(b),
		chip.Drivers(b),
		modbus.Drivers(b),
		esphome.Drivers(),
		mqtt.Drivers(),
		web.Drivers(),
		beacon.Drivers(),
	)
}

// AllDrivers returns the drivers on a new board, for a process that runs no site.
func AllDrivers() []driver.Driver { return Drivers(board.New()) }

// Schema returns the JSON Schema of a configuration with these drivers and kinds, for editors. It is made once,
// because a board takes seconds for it.
var Schema = sync.OnceValues(func() ([]byte, error) {
	return config.Schema(AllDrivers(), hosting.Kinds())
})
