package host

import (
	"math"
	"path/filepath"

	"agentsite/device"
)

func findMemory(root string) []source {
	return file(filepath.Join(root, "proc/meminfo"), parseMemory,
		device.Point{Name: "memory_used", Kind: device.KindMeasurement, Unit: "%", Description: "share of the memory that programs hold", Range: device.Range{Max: 100}},
		device.Point{Name: "memory_available", Kind: device.KindMeasurement, Unit: "By", Description: "memory that programs could still get"})
}

// parseMemory reads MemTotal and MemAvailable, in units of 1024 bytes (proc_meminfo(5)). MemFree
// says little: the kernel caches files in free memory.
func parseMemory(b []byte, values []float64) {
	total, available := number(field(line(b, "MemTotal:"), 0)), number(field(line(b, "MemAvailable:"), 0))
	if values[0], values[1] = percent(total-available, total), available*1024; total <= 0 {
		values[0] = math.NaN()
	}
}
