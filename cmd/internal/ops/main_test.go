package ops

import (
	"slices"
	"testing"

	"agentsite/device/beacon"
	"agentsite/device/board"
	"agentsite/device/chip"
	"agentsite/device/driver"
	"agentsite/device/gpio"
	"agentsite/device/host"
	"agentsite/device/kernel"
	"agentsite/device/sim"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// allDrivers returns those of a site. Package site, which has the list, imports this one.
func allDrivers() []driver.Driver {
	b := board.New()
	return slices.Concat([]driver.Driver{host.Driver(), sim.Driver()}, kernel.Drivers(), gpio.Drivers(b), chip.Drivers(b),
		beacon.Drivers())
}
