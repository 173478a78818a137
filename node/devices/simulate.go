package devices

import (
	"context"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/guard/proc"
)

// Simulate tells the fake of a simulated site what to read, as fake.Device.Simulate has it. The reading's point is an
// address, or a device's name where it is about the whole device; its value is in the unit of the configuration.
func (m *Manager) Simulate(ctx context.Context, r device.Reading) error {
	return m.ask(ctx, false, func(ctx context.Context) error {
		if !m.Config.Simulated {
			return device.Faultf(device.Invalid, "this site has real devices; agentsite simulate runs one with fakes")
		}
		name, point, ok := device.SplitAddress(r.Point)
		if !ok {
			name = r.Point
		}
		i := slices.IndexFunc(m.devices, func(d *instance) bool { return d.Name == name })
		if i < 0 {
			return device.Faultf(device.Invalid, "there is no device %q", device.Clip(name, 40))
		}
		d := m.devices[i]
		fake, ok := d.device.(proc.Simulated)
		if !ok {
			return device.Faultf(device.Offline, "%s cannot be simulated: %w", name, d.missing)
		}
		r.Point, r.At = point, time.Now()
		for _, measured := range d.points.Measurements {
			if measured.Point.Name == point && r.Value.Type() == device.TypeNumber {
				if p := measured.Point; p.Range != (device.Range{}) && !p.Range.Contains(r.Value.Number()) {
					return device.Faultf(
						device.Invalid, "%s is within %v; %v is outside", device.Address(name, point), p.Range, r.Value,
					)
				}
				r.Value = device.Number(measured.Raw(r.Value.Number()))
			}
		}
		return fake.Simulate(ctx, r)
	})
}
