// Package esphome has drivers of nodes of ESPHome, by its native API.
package esphome

import "agentsite/device/driver"

// Drivers returns the drivers of this package.
func Drivers() []driver.Driver { return nil }
