package kernel

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"agentsite/device"
)

// Bind is the bus and address of a chip and its kernel driver's name. Only root can bind
// them; a fault has the command.
type Bind struct {
	Bus     string `json:"bus" jsonschema:"the I2C bus that the chip is wired to, such as i2c-1"`
	Address int    `json:"address" jsonschema:"the chip's address, such as 0x76"`
	Chip    string `json:"chip" jsonschema:"the chip as its kernel driver names it, such as bme280"`
}

var (
	busName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^i2c-([0-9]{1,4})$`) })
	chipName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,18}$`) }) // I2C_NAME_SIZE is 20
)

// Validate is strict, because the owner pastes the command into a root shell.
func (b *Bind) Validate() error {
	switch {
	case b == nil:
		return nil
	case !busName().MatchString(b.Bus):
		return device.Faultf(device.Invalid, "bind: bus: %q is not an I2C bus; write it like i2c-1", printable(b.Bus))
	case b.Address < 0x03 || b.Address > 0x77:
		return device.Faultf(device.Invalid, "bind: address: %#x is not an I2C address; use 0x03 to 0x77", b.Address)
	case !chipName().MatchString(b.Chip):
		return device.Faultf(device.Invalid, "bind: chip: %q is not a chip's name; write it as its kernel driver does, such as bme280", printable(b.Chip))
	}
	return nil
}

// place returns the kernel's name of the chip's bus and address, such as 1-0076.
func (b *Bind) place() string {
	return fmt.Sprintf("%s-%04x", strings.TrimPrefix(b.Bus, "i2c-"), b.Address)
}

// line returns the command that binds the chip to its driver (Documentation/i2c/instantiating-devices.rst).
func (b *Bind) line() string {
	return fmt.Sprintf("echo %s %#02x > /sys/bus/i2c/devices/%s/new_device", b.Chip, b.Address, b.Bus)
}
