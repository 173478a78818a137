package host

import (
	"path/filepath"
	"time"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// started is when this process began, near enough.
var started = time.Now()

// findUptime falls back on our own age where the kernel's is not to be had, and
// has that in the description.
func findUptime(root string) []source {
	point := device.Point{Name: "uptime", Kind: device.KindMeasurement, Unit: "s", Description: "how long the computer has been running"}
	if kernel := file(filepath.Join(root, "proc/uptime"), firstNumber, point); kernel != nil {
		return kernel
	}
	point.Description = "how long this program has been running"
	return []source{{points: []device.Point{point}, read: func(_ *sysfs.Reader, values []float64) error {
		values[0] = time.Since(started).Round(10 * time.Millisecond).Seconds()
		return nil
	}}}
}
