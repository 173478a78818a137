package board

import (
	"syscall"

	"agentsite/device"
)

// failures are the errors of an I2C transfer (Documentation/i2c/fault-codes.rst). periph
// returns only their texts.
var failures = []failure{
	{syscall.ENXIO, device.Offline, "nothing answers at %#02[2]x on i2c-%[1]d; check its power, SDA and SCL, and the address", true},
	{syscall.EREMOTEIO, device.Offline, "nothing answers at %#02[2]x on i2c-%[1]d; check its power, SDA and SCL, and the address", true},
	{syscall.EIO, device.Offline, "the transfer with %#02[2]x on i2c-%[1]d failed; check SDA and SCL, their length and their pull-ups", false},
	{syscall.ETIMEDOUT, device.Offline, "i2c-%[1]d is stuck in a transfer with %#02[2]x: that chip hangs, or something holds SDA or SCL low; unplug it, then the others one by one", false},
	{syscall.EAGAIN, device.Offline, "i2c-%[1]d lost arbitration: another master is on the bus, or a line is stuck", false},
	{syscall.ENOENT, device.Offline, "there is no i2c-%[1]d here; switch I2C on (on a Raspberry Pi dtparam=i2c_arm=on in config.txt), or plug its adapter in", false},
	{syscall.ENODEV, device.Offline, "i2c-%[1]d is disconnected; plug its adapter in again", false},
	{syscall.EACCES, device.Denied, "/dev/i2c-%[1]d may not be opened; add the user to the group i2c and start again", false},
}
