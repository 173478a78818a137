package host

import (
	"errors"
	"fmt"
	"os"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// file makes a source of one file, or none when the machine has no such file. One
// that is there and cannot be read today stays a source: it may recover.
func file(path string, parse func(b []byte, values []float64) error, points ...device.Point) []source {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	read := func(r *sysfs.Reader, values []float64) error {
		b, err := r.Read(path)
		if err != nil {
			return err
		}
		if err := parse(b, values); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	return []source{{points: points, read: read}}
}

// errFormat is a file that a kernel wrote differently.
var errFormat = errors.New("not in the form that it has on Linux")
