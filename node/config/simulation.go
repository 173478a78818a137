package config

import (
	"bytes"
	"regexp"
	"slices"

	"agentsite/device/driver"
	"agentsite/device/fake"
)

// simulation is the section of a plan whose devices are fakes. No other file has it.
const simulation = "simulation"

// IsSimulation reports whether a plan is that of a simulated site.
func IsSimulation(plan []byte) bool { return bytes.HasPrefix(plan, []byte(simulation+": on\n")) }

// ParsePlan parses a plan. One of a simulated site has fakes, whatever the drivers are.
func ParsePlan(name string, text []byte, drivers []driver.Driver) (*Site, error) {
	if IsSimulation(text) {
		_, text, _ = bytes.Cut(text, []byte("\n"))
		drivers = fake.Drivers(drivers)
	}
	return Parse(name, text, drivers)
}

// simulate has the drivers that replace devices do so. No caller of Parse has the real ones then, nor the watchdog,
// which would restart the machine.
func (s *Site) simulate(drivers []driver.Driver, root *node) {
	s.Simulated = slices.ContainsFunc(drivers, func(d driver.Driver) bool { return d.Replace != nil })
	if !s.Simulated {
		return
	}
	s.Watchdog = ""
	texts := root.texts(nil)
	for i, d := range s.Devices {
		if drv, ok := driver.Find(drivers, d.Driver); ok && drv.Replace != nil {
			s.Devices[i].Config = drv.Replace(d.Config, d.named(texts))
		}
	}
}

// texts appends all scalars below n.
func (n *node) texts(all []string) []string {
	if n.shape == scalar {
		return append(all, n.text)
	}
	for _, e := range n.entries {
		all = e.value.texts(append(all, e.key))
	}
	return all
}

// named returns the points of the device that the configuration names: under points, and by their addresses in texts.
func (d Device) named(texts []string) []string {
	var all []string
	for _, w := range d.written {
		if w.point != "" {
			all = append(all, w.point)
		}
	}
	form := regexp.MustCompile(`(?:^|[^a-z0-9_/-])` + regexp.QuoteMeta(d.Name) + `/([a-z0-9_-]{1,24})\b`)
	for _, text := range texts {
		for _, m := range form.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
