package config

import (
	"cmp"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/driver"
)

// defaultMaxOn is max_on where it is not written, as the guard has it.
const defaultMaxOn = 10 * time.Minute

// Described returns the points that are known without hardware, as the file has them, and the
// names of the devices whose points are not.
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
				if o.Point.Name != p.Name {
					continue
				}
				if o.Confirm {
					q.Confirm = "owner"
				}
				if longest := cmp.Or(o.Lease, o.MaxOn, new(defaultMaxOn)); *longest != Unlimited {
					q.MaxSeconds = longest.Seconds()
				}
			}
			points = append(points, q)
		}
	}
	return points, open
}
