package host

import (
	"fmt"
	"math"
	"os"
	"slices"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// file makes a source of one file, or none when the machine has no such file. One
// that is there and cannot be read today stays a source: it may recover.
//
// parse fills in one value for each point. It makes a value NaN that is not in the form which
// the file has on Linux.
func file(path string, parse func(b []byte, values []float64), points ...device.Point) []source {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	read := func(r *sysfs.Reader, values []float64) error {
		b, err := r.Read(path)
		if err != nil {
			return err
		}
		if parse(b, values); slices.ContainsFunc(values, math.IsNaN) {
			return fmt.Errorf("%s: not in Linux's format", path)
		}
		return nil
	}
	return []source{{points: points, read: read}}
}
