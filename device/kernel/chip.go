package kernel

import (
	"context"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

// Chip is the YAML of the drivers "kernel:NAME": a chip on I2C with the kernel driver of
// that name, read through IIO or hwmon. It is the short form of iio or hwmon with bind.
type Chip struct {
	Bus     string `json:"bus" jsonschema:"the I2C bus that the chip is wired to, such as i2c-1"`
	Address int    `json:"address" jsonschema:"the chip's address, such as 0x76"`

	name string // in its kernel driver
	root sysfs.Root
}

func (c *Chip) bind() *Bind { return &Bind{Bus: c.Bus, Address: c.Address, Chip: c.name} }

// Validate finds mistakes without hardware.
func (c *Chip) Validate() error { return c.bind().Validate() }

// Resources returns the chip's address.
func (c *Chip) Resources() []driver.Resource { return c.bind().resources() }

// Prepares returns the binding of the chip.
func (c *Chip) Prepares() []string { return c.bind().prepares() }

// Prepare binds the chip to its kernel driver.
func (c *Chip) Prepare(p driver.Preparation) ([]string, error) { return c.bind().prepare(p) }

// Open finds the chip by its bus and address; it reads no value. A chip that is not bound
// is an Offline fault.
func (c *Chip) Open(ctx context.Context) (device.Device, error) {
	for _, class := range []class{iio, hwmon} {
		dev, err := (&Selector{Bind: c.bind(), class: class, root: c.root}).Open(ctx)
		if err == nil || device.AsFault(err).Kind != device.Offline {
			return dev, err
		}
	}
	if !Drives(string(c.root), c.name) {
		return nil, device.Faultf(device.Offline, "this system's kernel has no driver for a %s (the kernel of the SD-card image has few); use Raspberry Pi OS, or one of agentsite's own drivers", c.name)
	}
	return nil, device.Faultf(device.Offline, "the kernel has nothing to read of a %s at %#02x on %s; if it is wired up, run as root: agentsite prepare", c.name, c.Address, c.Bus)
}
