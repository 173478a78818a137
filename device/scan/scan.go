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

// Found is a connected part, or a port or line for one.
type Found struct {
	Where      string     // "i2c-1/0x76", "1-wire/28-0316a2795c1f", "/dev/video0"
	What       string     // "BME280"
	Confidence Confidence // of What
	Says       string     // a note or advice; may be ""
	// Devices are the suggested devices, the likeliest first. There is at most one if What
	// is certain or likely.
	Devices []Device
}

// Device is a name and its keys, in braces, as YAML.
type Device struct{ Name, YAML string }

// Scan has the parameters of a scan.
type Scan struct {
	Board *board.Board
	Root  sysfs.Root
	// Buses are the I2C buses to scan; nil is all but those of displays and of a PC's main
	// board.
	Buses []string
	// Probe are addresses, on each scanned bus, to which the owner permits writing.
	Probe []uint16
	// Taken maps the resources of the site's devices to the device's name. Their addresses
	// are skipped.
	Taken map[string]string
	// Drivers are the drivers that can be suggested.
	Drivers []driver.Driver
	// Wired leaves out devices that are reached by a network or by radio. So does a choice of Buses.
	Wired bool
	// Waiting is called before a wait for devices that are reached by a network or by radio, with the drivers that seek
	// them. It may be nil.
	Waiting func(drivers []string)
}

// Run scans everything. It returns the parts in a constant order, and the problems. It takes
// about a second for each I2C bus, at most 30, and meanwhile at most 12 s for devices that are not wired to the board.
func (s *Scan) Run(ctx context.Context) ([]Found, []driver.Finding) {
	var elsewhere *search
	if s.Buses == nil && !s.Wired {
		elsewhere = s.seek(ctx)
	}
	found := s.kernel(ctx)
	var trouble []driver.Finding
	if s.Buses == nil {
		lines, err := s.gpio()
		if err != nil {
			trouble = append(trouble, driver.Finding{Severity: driver.Problem, Subject: "GPIO", Says: err.Error()})
		}
		found = slices.Concat(found, s.hats(), s.files(), lines)
	}
	for _, bus := range s.I2C() {
		chips, err := s.bus(ctx, bus, found)
		if err != nil {
			trouble = append(trouble, driver.Finding{Severity: driver.Problem, Subject: bus, Says: err.Error()})
		}
		found = append(found, chips...)
	}
	if elsewhere != nil {
		others, failed := elsewhere.collect(s.Waiting)
		found, trouble = append(found, others...), append(trouble, failed...)
	}
	if s.Buses != nil {
		found = slices.DeleteFunc(found, func(f Found) bool { return !slices.Contains(s.Buses, busOf(f.Where)) })
	}
	slices.SortStableFunc(found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(busOf(a.Where)), len(busOf(b.Where))), cmp.Compare(a.Where, b.Where))
	})
	return found, trouble
}

// rank orders parts by confidence.
func rank(f Found) int { return slices.Index([]Confidence{Certain, Likely, Candidate}, f.Confidence) }

// suggest returns the device that uses a part, with agentsite's own driver or else with the
// kernel's, if this kernel has one.
func (s *Scan) suggest(name, own, chip, keys string) []Device {
	if _, ok := driver.Find(s.Drivers, own); ok {
		return []Device{{name, "{ driver: " + own + ", " + keys + " }"}}
	}
	if _, ok := driver.Find(s.Drivers, "kernel:"+chip); ok && chip != "" && kernel.Drives(string(s.Root), chip) {
		return []Device{{name, "{ driver: kernel:" + chip + ", " + keys + " }"}}
	}
	return nil
}
