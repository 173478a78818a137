// Package modbus has the driver of devices that speak Modbus, by TCP or by a serial line.
package modbus

import (
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Drivers returns the drivers of this package; the serial ports are the board's.
func Drivers(b *board.Board) []driver.Driver { return nil }
