// Package mqtt has drivers of devices behind an MQTT broker.
package mqtt

import "agentsite/device/driver"

// Drivers returns the drivers of this package.
func Drivers() []driver.Driver { return nil }
