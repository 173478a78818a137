package kernel

import (
	"path/filepath"
	"strings"

	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

// Findings returns problems and hints about the kernel whose files are below root. config is
// the boot configuration that enables the board's parts, such as /boot/firmware/config.txt,
// or "" on a board without one.
func Findings(root, config string) []driver.Finding {
	t := sysfs.Root(root)
	var all []driver.Finding
	note := func(severity driver.Severity, subject, says, do string) {
		all = append(all, driver.Finding{Severity: severity, Subject: subject, Says: says, Do: do})
	}
	// Linux 6.10 and its backports have persist_gpio_outputs. strict_gpiod is a few weeks
	// older (raspberrypi/linux, pull requests 6117 and 6150).
	var r reader
	for _, module := range []string{"pinctrl_bcm2835", "pinctrl_rp1"} {
		parameters := t.Path("sys/module", module, "parameters")
		keeps := r.Text(filepath.Join(parameters, "persist_gpio_outputs")) == "Y" || r.Text(filepath.Join(parameters, "strict_gpiod")) == "N"
		if keeps {
			note(driver.Warning, "gpio", "this kernel keeps the level of a GPIO line after its release: an output that is on when the program crashes stays on",
				"add dtparam=strict_gpiod to "+config+" and reboot")
			break
		}
	}
	if config == "" {
		return all
	}
	if len(t.Glob(w1Devices+"/w1_bus_master*")) == 0 {
		note(driver.Note, "1-wire", "1-Wire is off", "for a thermometer such as DS18B20 on GPIO4, add dtoverlay=w1-gpio to "+config+" and reboot")
	}
	dht := false
	for _, folder := range t.Glob(iioDevices + "/iio:device*") {
		dht = dht || strings.HasPrefix(r.Text(filepath.Join(folder, "name")), "dht11")
	}
	if !dht && !lacksIIO(root) {
		note(driver.Note, "dht", "no DHT11 or DHT22 is set up; only the kernel can meet their timing",
			"for one on GPIO4, add dtoverlay=dht11,gpiopin=4 to "+config+" (the same for both parts), reboot and run agentsite scan")
	}
	return all
}
