package host

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// A tree is a machine's files, by path. Each test writes them; they are not in testdata, because
// the firmware's path has a colon, which Windows and Go modules refuse.
type tree map[string]string

// write lays the files out in a folder of the test's own.
func (files tree) write(t testing.TB) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Skipf("this system cannot have a file of that name: %v", err)
		}
	}
	return root
}

// with returns a copy that has further files.
func (files tree) with(more tree) tree {
	all := maps.Clone(files)
	maps.Copy(all, more)
	return all
}

const (
	throttled = "sys/devices/platform/soc/soc:firmware/get_throttled"
	zone0     = "sys/class/thermal/thermal_zone0/"
	hwmon0    = "sys/class/hwmon/hwmon0/"
	hwmon1    = "sys/class/hwmon/hwmon1/"
)

// linux has the files of every Linux.
var linux = tree{
	"proc/loadavg": "0.52 0.58 0.59 1/189 12345\n",
	"proc/uptime":  "35007.54 31234.10\n",
	"proc/stat": "cpu  100 0 100 700 100 0 0 0 0 0\n" +
		"cpu0 100 0 100 700 100 0 0 0 0 0\n" +
		"intr 1234 0 0 5\nctxt 99\nbtime 1763690000\nprocesses 12\n",
	"proc/meminfo": "MemTotal:         440000 kB\nMemFree:           20000 kB\nMemAvailable:     330000 kB\nBuffers: 1 kB\n",
	"proc/net/dev": "Inter-|   Receive                                                |  Transmit\n" +
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n" +
		"    lo: 5000 10 0 0 0 0 0 0 5000 10 0 0 0 0 0 0\n" +
		"  eth0: 1000 10 0 0 0 0 0 0 200 10 0 0 0 0 0 0\n" +
		" wlan0:30 10 0 0 0 0 0 0 4 10 0 0 0 0 0 0\n",
}

// pi is a Raspberry Pi with its vendor's kernel.
var pi = linux.with(tree{
	zone0 + "type":             "cpu-thermal\n",
	zone0 + "temp":             "48312\n",
	throttled:                  "50005\n",
	hwmon0 + "name":            "cpu_thermal\n",
	hwmon1 + "name":            "rpi_volt\n",
	hwmon1 + "in0_lcrit_alarm": "0\n",
})

// mainlinePi has no firmware file, only the kernel's watch over the voltage.
var mainlinePi = linux.with(tree{
	hwmon0 + "name":            "cpu_thermal\n",
	hwmon0 + "temp1_input":     "51000\n",
	hwmon1 + "name":            "rpi_volt\n",
	hwmon1 + "in0_lcrit_alarm": "1\n",
})

// pc has another thermal zone before that of the processor.
var pc = linux.with(tree{
	zone0 + "type":                         "acpitz\n",
	zone0 + "temp":                         "27800\n",
	"sys/class/thermal/thermal_zone1/type": "x86_pkg_temp\n",
	"sys/class/thermal/thermal_zone1/temp": "61000\n",
})
