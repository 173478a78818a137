package kernel

import (
	"context"
	"path/filepath"
	"slices"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// Thermal is the YAML of the driver "thermal".
type Thermal struct {
	Zone string `json:"zone" jsonschema:"the zone's type in the kernel, such as cpu-thermal"`

	root sysfs.Root
}

const thermalZones = "sys/class/thermal"

// Validate finds mistakes without hardware.
func (c *Thermal) Validate() error { return checkFileName("zone", c.Zone) }

// Open finds the zone, the first of several with the same type. A missing zone is an
// Offline fault.
func (c *Thermal) Open(context.Context) (device.Device, error) {
	s := &sensor{
		find: c.pick,
		same: func(r *reader, folder string) bool { return r.Text(filepath.Join(folder, "type")) == c.Zone },
	}
	folder, err := s.find(&s.reader)
	if err != nil {
		return nil, err
	}
	s.channels = []channel{{
		// "Unit: millidegree Celsius": Documentation/ABI/testing/sysfs-class-thermal. An
		// unreadable zone can have -274000, THERMAL_TEMP_INVALID.
		point: device.Point{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel", Description: "temperature", Range: absolute},
		times: 1, per: 1000, value: s.add("temp"), offset: none, scale: none, fault: none,
	}}
	return s.open(c.Zone, folder)
}

func (c *Thermal) pick(r *reader) (string, error) {
	var others []string
	for _, folder := range c.root.Glob(thermalZones + "/thermal_zone*") {
		name := r.Text(filepath.Join(folder, "type"))
		if name == c.Zone {
			return folder, nil
		}
		others = append(others, name)
	}
	slices.Sort(others)
	return "", device.Faultf(device.Offline, "this board has no thermal zone %s; it has %s", printable(c.Zone), listed(others))
}
