package host

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// zones are the names that kernels give the thermal zone of the processor.
var zones = []string{"cpu-thermal", "cpu_thermal", "x86_pkg_temp", "soc-thermal", "soc_thermal", "cpu0-thermal", "bcm2835_thermal"}

// sensors are the hwmon chips whose first temperature is the processor's.
var sensors = []string{"cpu_thermal", "coretemp", "k10temp"}

// findTemperature takes the first zone or chip that is the processor's. Both give
// thousandths of a degree (Documentation/ABI/testing/sysfs-class-thermal, -hwmon).
func findTemperature(root string) []source {
	point := device.Point{Name: "cpu_temperature", Kind: device.KindMeasurement, Unit: "Cel", Description: "temperature of the processor"}
	for _, zone := range sysfs.Root(root).Glob("sys/class/thermal/thermal_zone*") {
		if slices.Contains(zones, sysfs.Text(filepath.Join(zone, "type"))) {
			return file(filepath.Join(zone, "temp"), parseMilli, point)
		}
	}
	for _, chip := range sysfs.Root(root).Glob("sys/class/hwmon/hwmon*") {
		if slices.Contains(sensors, sysfs.Text(filepath.Join(chip, "name"))) {
			return file(filepath.Join(chip, "temp1_input"), parseMilli, point)
		}
	}
	return nil
}

func parseMilli(b []byte, values []float64) { values[0] = number(field(b, 0)) / 1000 }

func findLoad(root string) []source {
	return file(filepath.Join(root, "proc/loadavg"), firstNumber,
		device.Point{Name: "load_1m", Kind: device.KindMeasurement, Unit: "1", Description: "processes that run or wait to, mean of the last minute"})
}

// findStat reads /proc/stat, which holds the processor's time and the hour of the
// boot (proc_stat(5)).
func findStat(root string) []source {
	var cpu usage
	parse := func(b []byte, values []float64) {
		if s := parseStat(b); s.total > 0 && s.booted > 0 {
			values[0], values[1] = cpu.since(s), s.booted
		} else {
			values[0] = math.NaN()
		}
	}
	return file(filepath.Join(root, "proc/stat"), parse,
		device.Point{Name: "cpu_usage", Kind: device.KindMeasurement, Unit: "%", Description: "how busy the processor was since the last reading", Range: device.Range{Max: 100}},
		device.Point{Name: "boot_time", Kind: device.KindMeasurement, Unit: "s", Description: "when the computer started, in seconds since 1970 UTC; wrong until its clock is set"})
}

// stat is the part of /proc/stat that is of use: ticks since boot over all
// processors, and the time of the boot.
type stat struct{ idle, total, booted float64 }

// parseStat adds up user, nice, system, idle, iowait, irq, softirq and steal. The
// two after them, guest time, are in user and nice already.
func parseStat(b []byte) (s stat) {
	const idle, iowait, guest = 3, 4, 8
	i := 0
	for word := range bytes.FieldsSeq(line(b, "cpu ")) {
		if i == guest {
			break
		}
		n := number(word)
		s.total += n
		if i == idle || i == iowait {
			s.idle += n
		}
		i++
	}
	s.booted = number(bytes.TrimSpace(line(b, "btime ")))
	return s
}

// usage keeps the ticks of the last reading, and its result.
type usage struct {
	last    stat
	percent float64
}

// since returns the share of time not idle since the last call. Within the same
// tick it repeats itself: nothing has been counted yet.
func (u *usage) since(now stat) float64 {
	if total := now.total - u.last.total; total > 0 {
		u.percent = percent(total-(now.idle-u.last.idle), total)
		u.last = now
	}
	return u.percent
}
