package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentsite/device/sysfs"
)

// dht are the names of a family of sensors on one line that only the kernel reads.
var dht = []string{"dht11", "dht22", "am2301", "am2302", "dht21"}

// thermocouples are converters on SPI that only the kernel reads.
var thermocouples = []string{"max6675", "max31855", "max31856"}

// chipDrivers maps the common names of I2C chips to their kernel drivers (all are in
// docs/kernel-parts.md). "" is a driver with the chip's name.
var chipDrivers = map[string]string{
	"apds9960": "", "bme680": "", "bmp380": "", "bmp388": "bmp380", "dps310": "", "hdc1080": "", "htu21": "", "htu21d": "htu21", "lm75": "", "lm75a": "lm75",
	"lm75b": "lm75", "max44009": "", "mlx90614": "", "mpl3115": "", "ms5611": "", "opt3001": "", "sht30": "sht3x", "sht31": "sht3x", "sht35": "sht3x", "sht3x": "",
	"si7020": "", "si7021": "si7020", "tsl2561": "", "tsl2591": "", "veml6030": "", "veml7700": "", "vl53l0x": "", "vl6180": "",
}

// Instead returns advice for a part that has a kernel driver and none here, on the machine
// whose files are below root; "" for any other name.
func Instead(root, name string) string {
	name = strings.TrimPrefix(strings.ToLower(name), "kernel:")
	if slices.Contains(dht, name) {
		if lacksIIO(root) {
			return "the part needs a kernel with IIO, and this kernel has none (nor has the SD-card image): use Raspberry Pi OS, or a sensor with a driver of agentsite's own, such as aht20 or sht4x on I2C"
		}
		return "the kernel reads that part: add dtoverlay=dht11,gpiopin=4 (for GPIO4) to config.txt, reboot, and run agentsite scan --write, which adds it as driver: iio (the kernel of the SD-card image has no IIO: use a sensor such as aht20 or sht4x there)"
	}
	if slices.Contains(thermocouples, name) {
		return "the kernel reads that part: add dtoverlay=maxtherm,spi0-0," + name + " to config.txt, reboot, and run agentsite scan --write, which adds it as driver: iio (the kernel of the SD-card image has no IIO)"
	}
	chip, ok := chipDrivers[name]
	if !ok {
		return ""
	}
	if chip == "" {
		chip = name
	}
	if !Drives(root, chip) {
		return "the chip needs a kernel driver, and this system's kernel has none for it (nor has the SD-card image): use Raspberry Pi OS, or a chip with a driver of agentsite's own"
	}
	return "the chip has a kernel driver: write driver: kernel:" + chip + ", with bus and address (the kernel of the SD-card image has no IIO and few hwmon drivers)"
}

// Drives reports whether the kernel whose files are below root has a driver for that chip
// on I2C. Without a list of the kernel's drivers it returns true.
func Drives(root, chip string) bool {
	folder := modules(sysfs.Root(root))
	loadable, err := os.ReadFile(filepath.Join(folder, "modules.alias")) // "alias i2c:bme280 bmp280_i2c"
	builtin, err2 := os.ReadFile(filepath.Join(folder, "modules.builtin.modinfo"))
	return err != nil || err2 != nil ||
		strings.Contains(string(loadable), " i2c:"+chip+" ") || strings.Contains(string(builtin), ".alias=i2c:"+chip+"\x00")
}

// modules returns the folder of the running kernel's modules.
func modules(t sysfs.Root) string {
	var r reader
	return t.Path("lib/modules", r.Text(t.Path("proc/sys/kernel/osrelease")))
}

// lacksIIO reports whether the kernel whose files are below root has no IIO: there is a
// list of its modules without IIO, and no IIO device.
func lacksIIO(root string) bool {
	t := sysfs.Root(root)
	folder := modules(t)
	listed := false
	for _, name := range []string{"modules.dep", "modules.builtin"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil && strings.Contains(string(text), "/industrialio.ko") {
			return false
		}
		listed = listed || err == nil
	}
	return listed && len(t.Glob(iioDevices+"/iio:device*")) == 0
}
