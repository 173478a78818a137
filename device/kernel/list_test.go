package kernel

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

// wired is a machine with a bound BME280, an LM75 of an overlay, a thermometer, a fan
// controller without a bus, and parts that List skips.
var wired = in("sys/devices/soc/i2c-1/1-0076/iio:device0/", bme280).with(
	in("sys/devices/soc/i2c-1/1-0048/hwmon/hwmon2/", lm75),
	in("sys/class/hwmon/hwmon0/", files{"name": "cpu_thermal\n", "temp1_input": "48312\n", "device": "->../../../class/thermal/thermal_zone0"}),
	in("sys/class/hwmon/hwmon1/", files{"name": "rpi_volt\n", "in0_lcrit_alarm": "0\n"}),
	in("sys/class/hwmon/hwmon3/", files{"name": "nothing\n", "pwm1": "1"}),
	in("sys/class/hwmon/hwmon4/", files{"name": "w1_slave_temp\n", "temp1_input": "21875\n", "device": "->../../../bus/w1/devices/28-0316a2795c1f"}),
	in("sys/class/thermal/thermal_zone0/", files{"type": "cpu-thermal\n", "temp": "48312\n"}),
	in("sys/class/pwm/pwmchip0/", files{"npwm": "2\n", "device": "->../../../devices/soc/1f00098000.pwm", "export": ""}),
	in("sys/devices/soc/1f00098000.pwm/", files{"uevent": ""}),
	in(w1a, files{"w1_slave": w1Slave("5e014b467fff0210", true, 21875)}),
	files{
		"sys/devices/soc/i2c-1/1-0076/name": "bme280\n", "sys/devices/soc/i2c-1/1-0048/name": "lm75\n",
		"sys/bus/iio/devices/iio:device0":                   "->../../../devices/soc/i2c-1/1-0076/iio:device0",
		"sys/bus/i2c/devices/1-0076":                        "->../../../devices/soc/i2c-1/1-0076",
		"sys/bus/i2c/devices/1-0048":                        "->../../../devices/soc/i2c-1/1-0048",
		"sys/devices/soc/i2c-1/1-0076/driver":               "->../../../../bus/i2c/drivers/bmp280",
		"sys/bus/i2c/devices/i2c-1/new_device":              "",
		"sys/class/hwmon/hwmon2":                            "->../../devices/soc/i2c-1/1-0048/hwmon/hwmon2",
		"sys/devices/soc/i2c-1/1-0048/hwmon/hwmon2/device":  "->../../../1-0048",
		"sys/devices/w1_bus_master1/w1_master_slave_count":  "1\n",
		"sys/bus/w1/devices/00-400000000000/rw":             "",
		"sys/bus/iio/devices/iio_sysfs_trigger/add_trigger": "",
	})

func TestList(t *testing.T) {
	root := wired.write(t)
	var got []string
	for _, l := range List(t.Context(), string(root)) {
		got = append(got, strings.Join([]string{l.Where, l.Name, strings.Join(l.Points, "+"), l.YAML}, " | "))
	}
	want := []string{
		"i2c-1/0x76 | bme280 | humidity+pressure+temperature | { driver: kernel:bme280, bus: i2c-1, address: 0x76 }",
		"i2c-1/0x48 | lm75 | temperature1+temperature1_max_alarm | { driver: kernel:lm75, bus: i2c-1, address: 0x48 }",
		"1-wire/28-0316a2795c1f | DS18B20 | temperature | { driver: w1, id: 28-0316a2795c1f }",
		"thermal_zone0 | cpu-thermal | temperature | { driver: thermal, zone: cpu-thermal }",
		"pwmchip0 | 1f00098000.pwm, 2 channels |  | { driver: pwm, chip: \"1f00098000.pwm\", channel: 0 }",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func chip(t *testing.T, name string, address int, root sysfs.Root) *Chip {
	t.Helper()
	d, ok := driver.Find(Drivers(), "kernel:"+name)
	if !ok {
		t.Fatal("there is no such driver")
	}
	c := d.Config().(*Chip)
	c.Address, c.root = address, root
	return c
}

func TestChip(t *testing.T) {
	root := wired.write(t)
	reads(t, open(t, chip(t, "bme280", 0x76, root)), map[string]any{"temperature Cel": 25.08, "pressure Pa": 100653.0, "humidity %": 56.565})
	reads(t, open(t, chip(t, "lm75", 0x48, root)), map[string]any{"temperature1 Cel": 21.5, "temperature1_max_alarm ": false})
	_, err := chip(t, "bme280", 0x77, root).Open(t.Context())
	offline(t, err, "agentsite prepare")
	if _, ok := driver.Find(Drivers(), "kernel:"); ok {
		t.Error("a family is no driver")
	}
	if err := chip(t, "a b", 0x77, root).Validate(); err == nil {
		t.Error("a chip of that name would be written into a root shell")
	}
}

func TestPrepareBinds(t *testing.T) {
	root := wired.write(t)
	p := driver.Preparation{Root: string(root)}
	for _, c := range []driver.Preparer{chip(t, "bme280", 0x76, root), &Selector{class: iio, Name: "bme280"}, &Selector{class: hwmon, Name: "lm75"}} {
		if did, err := c.Prepare(p); err != nil || did != nil {
			t.Errorf("%+v is ready, and was prepared: %v %v", c, did, err)
		}
	}
	other := &Selector{class: iio, Name: "sht4x", Bind: &Bind{Bus: "i2c-1", Address: 0x44, Chip: "sht4x"}}
	for _, ask := range []bool{true, false} {
		did, err := other.Prepare(driver.Preparation{Root: string(root), Ask: ask})
		if err != nil || len(did) != 1 || did[0] != "bind sht4x at 0x44 on i2c-1 to its kernel driver" {
			t.Error(did, err)
		}
		want := "sht4x 0x44"
		if ask {
			want = ""
		}
		if got := root.Text("sys/bus/i2c/devices/i2c-1/new_device"); got != want {
			t.Errorf("new_device got %q, want %q", got, want)
		}
	}
	_, err := chip(t, "bmp280", 0x76, root).Prepare(p)
	faulted(t, err, "busy", "the kernel has a bme280 at 0x76")
	_, err = chip(t, "lm75", 0x48, root).Prepare(p)
	offline(t, err, "echo 0x48 > ")
	c := chip(t, "lm75", 0x49, root)
	c.Bus = "i2c-7"
	_, err = c.Prepare(p)
	offline(t, err, "i2c-7")
}

func TestPrepareExports(t *testing.T) {
	root := wired.write(t)
	p := driver.Preparation{Root: string(root), Group: strconv.Itoa(groupOfTree(t, root))}
	c := &PWM{Chip: "1f00098000.pwm", Channel: 1, Safe: off}
	_, err := c.Prepare(p)
	offline(t, err, "") // this tree's controller does nothing
	if got := root.Text("sys/class/pwm/pwmchip0/export"); got != "1" {
		t.Errorf("exported %q", got)
	}
	channel := in("sys/class/pwm/pwmchip0/pwm1/", files{"enable": "0", "period": "0", "duty_cycle": "0"}).writeInto(t, root)
	for _, want := range []string{"give channel 1 of 1f00098000.pwm to its group", ""} {
		did, err := c.Prepare(p)
		if err != nil || strings.Join(did, ";") != want {
			t.Error(did, err)
		}
	}
	if root.Text(channel+"enable") != "0" {
		t.Error("it moved")
	}
	_, err = c.Prepare(driver.Preparation{Root: string(root), Group: "nobody has this one"})
	faulted(t, err, "invalid", "groupadd")
	_, err = (&PWM{Chip: "pwmchip0", Channel: 2, Safe: off}).Prepare(p)
	faulted(t, err, "invalid", "has only 2 channels")
	_, err = (&PWM{Chip: "pwmchip9", Safe: off}).Prepare(p)
	offline(t, err, "no PWM controller")
}

func TestFindings(t *testing.T) {
	line := regexp.MustCompile(`dt\w+=\S+`) // of config.txt
	findings := func(f files, config string) string {
		var all []string
		for _, finding := range Findings(string(f.write(t)), config) {
			all = append(all, string(finding.Severity)+" "+finding.Subject+": "+line.FindString(finding.Do))
		}
		return strings.Join(all, "\n")
	}
	const rp1 = "sys/module/pinctrl_rp1/parameters/persist_gpio_outputs"
	const dht = "dtoverlay=dht11,gpiopin=4"
	for name, tt := range map[string]struct {
		files  files
		config string
		want   string
	}{
		"no board": {files{"etc/x": ""}, "", ""},
		"a Pi 5 as it comes": {files{rp1: "Y\n", "sys/bus/w1/devices/w1_bus_master1/uevent": "", "sys/bus/iio/devices/iio:device0/name": "dht11@4\n"}, "/boot/firmware/config.txt",
			"warning gpio: dtparam=strict_gpiod"},
		"an older kernel": {files{"sys/module/pinctrl_bcm2835/parameters/strict_gpiod": "N\n", "sys/bus/w1/devices/w1_bus_master1/uevent": ""}, "/boot/firmware/config.txt",
			"warning gpio: dtparam=strict_gpiod\nnote dht: " + dht},
		"strict, and no 1-Wire": {files{rp1: "N\n"}, "/boot/firmware/config.txt",
			"note 1-wire: dtoverlay=w1-gpio\nnote dht: " + dht},
	} {
		if got := findings(tt.files, tt.config); got != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, tt.want)
		}
	}
}
