package fake

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// Drivers returns the drivers with fakes in place of the devices of their configurations, which are still decoded and
// checked as the drivers do.
func Drivers(all []driver.Driver) []driver.Driver {
	faked := make([]driver.Driver, len(all))
	for i, d := range all {
		d.Replace = replace
		faked[i] = d
	}
	return faked
}

// replace returns a configuration that opens a fake of the device that real describes. It keeps nothing of real that
// opens anything.
func replace(real driver.Config, named []string) driver.Config {
	c := config{}
	switch d := real.(type) {
	case driver.Describer:
		c.desc = d.Describe()
	case driver.Guesser:
		c.desc = d.Guess(named)
	}
	if l, ok := real.(driver.Lasting); ok {
		c.goodFor = l.GoodFor()
	}
	if s, ok := real.(driver.Stopper); ok {
		c.stops = s.Stops()
	}
	return &c
}

// config opens a fake.
type config struct {
	desc    device.Description
	goodFor time.Duration
	stops   string
}

func (c *config) Describe() device.Description { return c.desc }

func (c *config) GoodFor() time.Duration { return c.goodFor }

func (c *config) Stops() string { return c.stops }

// Open returns a new fake.
func (c *config) Open(context.Context) (device.Device, error) { return New(c.desc, nil), nil }
