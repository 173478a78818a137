package kernel

import (
	"strings"
	"testing"

	"agentsite/device"
)

const release = "6.12.1-v8"

// image is a system whose kernel has no IIO module, as the SD-card image, and other one
// with all modules.
var (
	image = files{
		"proc/sys/kernel/osrelease": release + "\n", "lib/modules/" + release + "/modules.dep": "kernel/drivers/hwmon/lm75.ko:\n",
		"lib/modules/" + release + "/modules.builtin": "kernel/drivers/i2c/i2c-core.ko\n",
		"lib/modules/" + release + "/modules.alias":   "alias i2c:lm75 lm75\n", "lib/modules/" + release + "/modules.builtin.modinfo": "jc42.alias=i2c:jc42\x00",
	}
	other = image.with(files{"lib/modules/" + release + "/modules.dep": "kernel/drivers/iio/industrialio.ko.xz:\n", "lib/modules/" + release + "/modules.alias": "alias i2c:bme680 bme680_i2c\n"})
)

func TestInstead(t *testing.T) {
	with, without, unknown := string(other.write(t)), string(image.write(t)), t.TempDir()
	for _, root := range []string{with, unknown} {
		for name, want := range map[string]string{"dht22": "dtoverlay=dht11", "AM2302": "dtoverlay=dht11", "bme680": "driver: kernel:bme680", "bme280": "", "pump": ""} {
			if got := Instead(root, name); !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	for _, name := range []string{"dht22", "bme680"} {
		if got := Instead(without, name); strings.Contains(got, "dtoverlay") || strings.Contains(got, "driver: kernel") || got == "" {
			t.Errorf("%s where the kernel has no IIO: %q", name, got)
		}
	}
	for chip, want := range map[string]bool{"lm75": true, "jc42": true, "bme680": false, "c42": false} {
		if Drives(without, chip) != want || !Drives(unknown, chip) {
			t.Errorf("%s: %v", chip, !want)
		}
	}
}

// TestKernelWithoutIIO: the fault of a part names the missing IIO, and does not advise to
// bind a driver.
func TestKernelWithoutIIO(t *testing.T) {
	root := image.write(t)
	_, iio := (&Selector{class: iio, Name: "dht11", root: root}).Open(t.Context())
	_, chip := (&Chip{Bus: "i2c-1", Address: 0x76, name: "bme680", root: root}).Open(t.Context())
	for _, err := range []error{iio, chip} {
		if err == nil || device.AsFault(err).Kind != device.Offline || strings.Contains(err.Error(), "prepare") {
			t.Error(err)
		}
	}
	for _, f := range Findings(string(root), "/boot/config.txt") {
		if f.Subject == "dht" {
			t.Errorf("an overlay helps nothing there: %+v", f)
		}
	}
}
