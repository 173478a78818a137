package host

import (
	"agentsite/device"
	"agentsite/device/sysfs"
)

// volume is the usage of a file system, in bytes. Blocks reserved for the superuser are neither
// used nor free, as in df(1).
type volume struct{ used, free float64 }

// findDisk watches the file system of a folder; the one under root when none is
// named. A named folder that is not there is the owner's mistake, not a lack.
func findDisk(root, folder string) ([]source, error) {
	named := folder != ""
	if !named {
		folder = root
	}
	if _, err := statVolume(folder); err != nil {
		if named {
			return nil, device.Faultf(device.Offline, "disk: %s cannot be monitored; use an existing folder: %w", folder, err)
		}
		return nil, nil
	}
	read := func(_ *sysfs.Reader, values []float64) error {
		v, err := statVolume(folder)
		values[0], values[1] = percent(v.used, v.used+v.free), v.free
		return err
	}
	return []source{{read: read, points: []device.Point{
		{Name: "disk_used", Kind: device.KindMeasurement, Unit: "%", Description: "share of the disk that is full", Range: device.Range{Max: 100}},
		{Name: "disk_free", Kind: device.KindMeasurement, Unit: "By", Description: "room left on the disk"},
	}}}, nil
}

// Free returns how many bytes are free on the file system of a folder.
func Free(folder string) (uint64, error) {
	v, err := statVolume(folder)
	return uint64(v.free), err
}
