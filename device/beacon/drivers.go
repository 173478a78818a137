// Package beacon has drivers of Bluetooth devices that advertise what they measure.
package beacon

import "agentsite/device/driver"

// Drivers returns the drivers of this package.
func Drivers() []driver.Driver { return nil }
