package host

import (
	"path/filepath"

	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

// Findings returns problems with the power and the heat of the machine whose files are below root;
// "" is this machine's own.
func Findings(root string) []driver.Finding {
	var r sysfs.Reader
	for _, path := range sysfs.Root(root).Glob(throttledFile) {
		if b, err := r.Read(path); err == nil {
			return throttling(b)
		}
	}
	for _, chip := range sysfs.Root(root).Glob("sys/class/hwmon/hwmon*") {
		if sysfs.Text(filepath.Join(chip, "name")) == "rpi_volt" && sysfs.Text(filepath.Join(chip, "in0_lcrit_alarm")) == "1" {
			return []driver.Finding{weak}
		}
	}
	return nil
}

var weak = driver.Finding{Severity: driver.Problem, Subject: "power", Says: "the supply is too weak at this moment (under-voltage)", Do: "use the supply that is made for this board, and a short, thick cable; feed motors and relays from another one"}

// throttling reads the firmware's flags; parseThrottled has their bits.
func throttling(b []byte) []driver.Finding {
	word, err := throttledWord(b)
	if err != nil {
		return nil
	}
	now := func(bits uint64) bool { return word&bits != 0 }
	since := func(bits uint64) bool { return word>>16&bits != 0 }
	const underVoltage, slowed = 1 << 0, 1<<1 | 1<<2 | 1<<3
	var all []driver.Finding
	switch {
	case now(underVoltage):
		all = append(all, weak)
	case since(underVoltage):
		all = append(all, driver.Finding{Severity: driver.Warning, Subject: "power", Says: "the supply has been too weak since the board was started (under-voltage)", Do: weak.Do})
	}
	cool := "cool the board, or give it a stronger supply"
	switch {
	case now(slowed):
		all = append(all, driver.Finding{Severity: driver.Warning, Subject: "processor", Says: "the processor is slowed down at this moment, by heat or a weak supply", Do: cool})
	case since(slowed):
		all = append(all, driver.Finding{Severity: driver.Note, Subject: "processor", Says: "the processor has been slowed down since the board was started, by heat or a weak supply", Do: cool})
	}
	return all
}
