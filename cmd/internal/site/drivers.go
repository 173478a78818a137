package site

import (
	"agentsite/device/driver"
	"agentsite/device/host"
	"agentsite/device/sim"
)

// Drivers is the one list of them.
func Drivers() []driver.Driver {
	return []driver.Driver{
		host.Driver(),
		sim.Driver(),
	}
}
