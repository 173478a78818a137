package scan

import (
	"cmp"
	"context"
	"slices"

	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/kernel"
	"agentsite/device/sysfs"
)

// Found is something that is wired up, or a place to wire something to.
type Found struct {
	Where      string     // "i2c-1/0x76", "1-wire/28-0316a2795c1f", "/dev/video0"
	What       string     // "BME280"
	Confidence Confidence // of What
	Says       string     // what else there is to know, or to do; may be ""
	// Devices are what could be written into the configuration to use it, the
	// likeliest first: one where What is certain or likely.
	Devices []Device
}

// Device is a name and its keys, in braces, as YAML.
type Device struct{ Name, YAML string }

// Scan has the parameters of a scan.
type Scan struct {
	Board *board.Board
	Root  sysfs.Root
	// Buses are the I2C buses to look at; nil is all but those of displays and of a
	// PC's main board.
	Buses []string
	// Probe are addresses where the owner has said that anything may be written, on
	// each bus that is looked at.
	Probe []uint16
	// Taken maps the resources of the site's devices to the device's name. Their addresses
	// are left alone.
	Taken map[string]string
	// Drivers are those that may be suggested.
	Drivers []driver.Driver
}

// Run scans everything and returns what it found, in a constant order, and what it could
// not scan. It takes about a second for each I2C bus, at most 30.
func (s *Scan) Run(ctx context.Context) ([]Found, []driver.Finding) {
	found := s.kernel(ctx)
	var trouble []driver.Finding
	if s.Buses == nil {
		lines, err := s.gpio()
		if err != nil {
			trouble = append(trouble, driver.Finding{Severity: driver.Problem, Subject: "GPIO", Says: err.Error()})
		}
		found = slices.Concat(found, s.files(), lines)
	}
	for _, bus := range s.I2C() {
		chips, err := s.bus(ctx, bus, found)
		if err != nil {
			trouble = append(trouble, driver.Finding{Severity: driver.Problem, Subject: bus, Says: err.Error()})
		}
		found = append(found, chips...)
	}
	if s.Buses != nil {
		found = slices.DeleteFunc(found, func(f Found) bool { return !slices.Contains(s.Buses, busOf(f.Where)) })
	}
	slices.SortStableFunc(found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(busOf(a.Where)), len(busOf(b.Where))), cmp.Compare(a.Where, b.Where))
	})
	return found, trouble
}

// rank puts what can be used before what may be.
func rank(f Found) int { return slices.Index([]Confidence{Certain, Likely, Candidate}, f.Confidence) }

// suggest returns the device that uses a part: through the driver here, or else
// through the kernel's, as far as this kernel has one.
func (s *Scan) suggest(name, own, chip, keys string) []Device {
	if _, ok := driver.Find(s.Drivers, own); ok {
		return []Device{{name, "{ driver: " + own + ", " + keys + " }"}}
	}
	if _, ok := driver.Find(s.Drivers, "kernel:"+chip); ok && chip != "" && kernel.Drives(string(s.Root), chip) {
		return []Device{{name, "{ driver: kernel:" + chip + ", " + keys + " }"}}
	}
	return nil
}
