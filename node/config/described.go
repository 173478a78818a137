package config

import (
	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/driver"
)

// Described returns the points that are known without hardware, as the file has them, and the
// names of the devices whose points are not. How long an output may be held is left out.
func (s *Site) Described() (points []agents.Point, open []string) {
	points = []agents.Point{}
	for _, d := range s.Devices {
		describer, ok := d.Config.(driver.Describer)
		if !ok {
			open = append(open, d.Name)
			continue
		}
		all, err := d.Points(describer.Describe())
		if err != nil { // Parse has found that
			open = append(open, d.Name)
			continue
		}
		for _, p := range all.Description.Points {
			q := agents.Point{Point: device.Address(d.Name, p.Name), Kind: p.Kind, Unit: p.Unit, Values: p.Values, Safe: p.Safe}
			if p.Range != (device.Range{}) {
				q.Min, q.Max = &p.Range.Min, &p.Range.Max
			}
			for _, o := range all.Outputs {
				if o.Point.Name == p.Name && o.Confirm {
					q.Confirm = "owner"
				}
			}
			points = append(points, q)
		}
	}
	return points, open
}
