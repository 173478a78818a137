package site

import (
	"slices"

	"agentsite/device/board"
	"agentsite/device/chip"
	"agentsite/device/driver"
	"agentsite/device/host"
	"agentsite/device/kernel"
	"agentsite/device/sim"
)

// Drivers is the one list of them.
func Drivers() []driver.Driver {
	b := board.New() // one: whoever shares a bus takes turns
	return slices.Concat(
		[]driver.Driver{host.Driver(), sim.Driver()},
		kernel.Drivers(),
		board.Drivers(b),
		chip.Drivers(b),
	)
}
