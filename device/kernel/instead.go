package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentsite/device/sysfs"
)

// dht are the names of one part that is on a line and that Linux reads.
var dht = []string{"dht11", "dht22", "am2301", "am2302", "dht21"}

// chipDrivers are kernel drivers of chips on I2C, by what people call a chip
// (docs/kernel-parts.md has them all). A driver whose name is the chip's is its own.
var chipDrivers = map[string]string{
	"apds9960": "", "bme680": "", "bmp380": "", "bmp388": "bmp380", "dps310": "", "hdc1080": "", "htu21": "", "htu21d": "htu21", "lm75": "", "lm75a": "lm75",
	"lm75b": "lm75", "max44009": "", "mlx90614": "", "mpl3115": "", "ms5611": "", "opt3001": "", "sht30": "sht3x", "sht31": "sht3x", "sht35": "sht3x", "sht3x": "",
	"si7020": "", "si7021": "si7020", "tsl2561": "", "tsl2591": "", "veml6030": "", "veml7700": "", "vl53l0x": "", "vl6180": "",
}

// Instead says what to write for a part that Linux drives and that has no driver of its
// own here, on the machine whose files are below root; "" for any other name.
func Instead(root, name string) string {
	name = strings.ToLower(name)
	if slices.Contains(dht, name) {
		if lacksIIO(root) {
			return "Linux reads that part where its kernel has IIO, which this one has not (nor has that of the SD-card image): use Raspberry Pi OS, or a sensor that agentsite reads itself, such as an aht20 or sht4x on I2C"
		}
		return "Linux reads that part: add dtoverlay=dht11,gpiopin=4 (for GPIO4) to config.txt, start the board again, and agentsite scan --write adds it as driver: iio (the kernel of the SD-card image has no IIO: there use a sensor such as aht20 or sht4x)"
	}
	chip, ok := chipDrivers[name]
	if !ok {
		return ""
	}
	if chip == "" {
		chip = name
	}
	if !Drives(root, chip) {
		return "Linux drives that chip, and this system's kernel has no driver for it (nor has that of the SD-card image): use Raspberry Pi OS, or a chip that agentsite reads itself"
	}
	return "Linux drives that chip: write driver: kernel:" + chip + ", with bus and address (the kernel of the SD-card image has no IIO and few drivers of hwmon)"
}

// Drives reports whether the kernel whose files are below root may have a driver for
// that chip on I2C: it has one, or there is no list of its drivers to tell.
func Drives(root, chip string) bool {
	folder := modules(sysfs.Root(root))
	loadable, err := os.ReadFile(filepath.Join(folder, "modules.alias")) // "alias i2c:bme280 bmp280_i2c"
	builtin, err2 := os.ReadFile(filepath.Join(folder, "modules.builtin.modinfo"))
	return err != nil || err2 != nil ||
		strings.Contains(string(loadable), " i2c:"+chip+" ") || strings.Contains(string(builtin), ".alias=i2c:"+chip+"\x00")
}

// modules is the folder of the running kernel's modules.
func modules(t sysfs.Root) string {
	var r reader
	return t.Path("lib/modules", r.Text(t.Path("proc/sys/kernel/osrelease")))
}

// lacksIIO reports whether the kernel whose files are below root can have no IIO: it
// has a list of its modules, and none of them is IIO.
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
