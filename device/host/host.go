package host

import (
	"context"
	"path/filepath"

	"agentsite/device"
	"agentsite/device/driver"
)

// Driver returns the driver "host".
func Driver() driver.Driver {
	return driver.Driver{
		Name:   "host",
		Doc:    "the computer itself: temperature, load, memory, disk, network, power",
		Config: func() driver.Config { return new(Config) },
	}
}

// Config is the YAML of the driver.
type Config struct {
	Disk string `json:"disk,omitempty" jsonschema:"a folder on the disk to watch, such as /var/lib; the system's disk when not written"`
}

// Validate refuses a folder that depends on where the program was started.
func (c *Config) Validate() error {
	if c.Disk != "" && !filepath.IsAbs(c.Disk) {
		return device.Faultf(device.Invalid, "disk: %q is not an absolute path: write one, such as /var/lib", c.Disk)
	}
	return nil
}

// Describe reads the same files as Open, and no hardware. Without the named disk there are no
// points. None of them is ever an output, which a check relies on.
func (c *Config) Describe() device.Description {
	m, err := open("/", c.Disk)
	if err != nil {
		return device.Description{}
	}
	return m.Describe()
}

// Open finds the values that this machine offers. A disk that was named
// and is not there is an Offline fault; anything else that lacks is left out.
func (c *Config) Open(context.Context) (device.Device, error) {
	return open("/", c.Disk)
}
