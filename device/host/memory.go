package host

import (
	"bytes"
	"path/filepath"

	"agentsite/device"
)

func findMemory(root string) []source {
	return file(filepath.Join(root, "proc/meminfo"), parseMemory,
		device.Point{Name: "memory_used", Kind: device.KindMeasurement, Unit: "%", Description: "share of the memory that programs hold", Range: device.Range{Max: 100}},
		device.Point{Name: "memory_available", Kind: device.KindMeasurement, Unit: "By", Description: "memory that programs could still get"})
}

// parseMemory reads MemTotal and MemAvailable, in units of 1024 bytes
// (proc_meminfo(5)). What is free says little: the kernel caches files in it.
func parseMemory(b []byte, values []float64) error {
	const missing = -1
	total, available := float64(missing), float64(missing)
	for line := range bytes.Lines(b) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		var into *float64
		switch string(name) {
		case "MemTotal":
			into = &total
		case "MemAvailable":
			into = &available
		default:
			continue
		}
		n, err := number(field(rest, 0))
		if err != nil {
			return err
		}
		*into = n
	}
	if total <= 0 || available == missing {
		return errFormat
	}
	values[0], values[1] = percent(total-available, total), available*1024
	return nil
}
