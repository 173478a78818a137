// Package web has drivers of JSON documents, W3C Things and MCP servers elsewhere, as devices.
package web

import "agentsite/device/driver"

// Drivers returns the drivers of this package.
func Drivers() []driver.Driver { return nil }
