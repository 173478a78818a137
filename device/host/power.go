package host

import (
	"bytes"
	"math"
	"path/filepath"
	"strconv"

	"agentsite/device"
	"agentsite/device/sysfs"
)

var underVoltage = device.Point{Name: "under_voltage", Kind: device.KindState, Description: "the power supply is too weak at this moment"}

const throttledFile = "sys/devices/platform/soc*/soc*:firmware/get_throttled"

// findPower asks the Raspberry Pi's firmware, or else the kernel's own watch over
// its voltage, which knows nothing of the rest.
func findPower(root string) []source {
	for _, path := range sysfs.Root(root).Glob(throttledFile) {
		return file(path, parseThrottled, underVoltage,
			device.Point{Name: "frequency_capped", Kind: device.KindState, Description: "the processor may not run at its full speed at this moment"},
			device.Point{Name: "throttled", Kind: device.KindState, Description: "the processor is slowed down at this moment, by heat or a weak supply"})
	}
	for _, chip := range sysfs.Root(root).Glob("sys/class/hwmon/hwmon*") {
		if sysfs.Text(filepath.Join(chip, "name")) == "rpi_volt" {
			return file(filepath.Join(chip, "in0_lcrit_alarm"), firstNumber, underVoltage)
		}
	}
	return nil
}

// parseThrottled reads the firmware's word, in hexadecimal: bit 0 under-voltage, 1 frequency
// capped, 2 throttled, 3 the soft temperature limit. Bits 16 to 19 say the same of any moment since
// boot, and are not used (raspberrypi.com/documentation/computers/os.html#get_throttled).
func parseThrottled(b []byte, values []float64) {
	word, err := throttledWord(b)
	for bit := range values {
		if values[bit] = float64(word >> bit & 1); err != nil {
			values[bit] = math.NaN()
		}
	}
}

func throttledWord(b []byte) (uint64, error) {
	return strconv.ParseUint(string(bytes.TrimPrefix(bytes.TrimSpace(b), []byte("0x"))), 16, 32)
}
