package scan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/device/board/boardtest"
	"agentsite/device/sysfs"

	"periph.io/x/conn/v3/i2c"
)

// tree writes a machine's files; a content that begins with -> is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Skipf("this system cannot have such a folder: %v", err)
		}
		var err error
		if to, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Skipf("this system cannot have a file of that name: %v", err)
		}
	}
	return root
}

// TestMachine scans a whole board: parts with kernel drivers, buses, and /dev.
func TestMachine(t *testing.T) {
	const chip = "sys/devices/soc/i2c-1/1-0077/"
	root := tree(t, map[string]string{
		"dev/i2c-1": "", "sys/class/i2c-dev/i2c-1/name": "bcm2835 (i2c@7e804000)\n",
		"dev/i2c-20": "", "sys/class/i2c-dev/i2c-20/name": "fef04500.i2c\n",
		"dev/i2c-2": "", "sys/class/i2c-dev/i2c-2/name": "MCP2221 usb-i2c bridge\n",
		chip + "name": "bmp280\n", chip + "driver": "->../../../../bus/i2c/drivers/bmp280", chip + "iio:device0/name": "bmp280\n", chip + "iio:device0/in_temp_input": "21500\n",
		"sys/bus/i2c/devices/1-0077":      "->../../../devices/soc/i2c-1/1-0077",
		"sys/bus/iio/devices/iio:device0": "->../../../devices/soc/i2c-1/1-0077/iio:device0",
		"sys/bus/i2c/devices/1-0068/name": "ds3231\n", "sys/bus/i2c/devices/1-0068/driver": "->../../drivers/rtc-ds1307",
		"sys/class/thermal/thermal_zone0/type": "cpu-thermal\n", "sys/class/thermal/thermal_zone0/temp": "48312\n",
		"sys/class/pwm/pwmchip0/npwm":        "2\n",
		"sys/class/video4linux/video0/name":  "unicam-image\n",
		"sys/class/video4linux/video10/name": "bcm2835-codec-decode\n",
		"sys/class/video4linux/video1/name":  "UVC Camera (046d:0825)\n",
		"sys/class/video4linux/video1/index": "0\n",
		"sys/class/video4linux/video2/name":  "UVC Camera (046d:0825)\n",
		"sys/class/video4linux/video2/index": "1\n",
		"dev/ttyAMA0":                        "",
		"dev/serial0":                        "->ttyAMA0",
		"dev/ttyUSB0":                        "",
		"proc/cmdline":                       "console=serial0,115200 console=tty1 root=PARTUUID=1\n",
	})
	header, usb, hdmi := &bus{parts: map[uint16]model{0x76: bme280(), 0x77: &port{bytes: []byte{1}}, 0x68: new(registers), 0x20: &port{bytes: []byte{0xFF}}}}, &bus{parts: map[uint16]model{0x77: bme280()}}, &bus{}
	gpio := boardtest.NewChip("gpiochip0", "pinctrl-bcm2711", make([]string, 58)...)
	gpio.Take(4, "w1")
	adapter := boardtest.NewChip("gpiochip2", "usb", append(make([]string, 34), "DOOR")...)
	s := &Scan{
		Board: boardtest.Machine{I2C: map[int]i2c.Bus{1: header, 2: usb, 20: hdmi}, Root: root, Chips: []*boardtest.Chip{gpio, adapter}}.Board(),
		Root:  sysfs.Root(root), Drivers: have("bme280", "gps"), Taken: map[string]string{"i2c-1/0x20": "relays", "gpiochip0/17": "pump", "GPIO2": "relays"},
	}
	want := `certain /dev/gpiochip0: 58 GPIO lines of pinctrl-bcm2711
certain /dev/gpiochip2: 35 GPIO lines of usb
certain /dev/video0: camera unicam-image
certain /dev/video1: camera UVC Camera (046d:0825)
certain i2c-1/0x20: relays
certain i2c-1/0x68: rtc-ds1307
certain i2c-1/0x76: BME280 | bme280: { driver: bme280, bus: i2c-1, address: 0x76 }
certain i2c-1/0x77: bmp280 | bmp280: { driver: kernel:bmp280, bus: i2c-1, address: 0x77 }
certain i2c-2/0x77: BME280 | bme280-2: { driver: bme280, bus: i2c-2, address: 0x77 }
certain thermal_zone0: cpu-thermal | cpu-thermal: { driver: thermal, zone: cpu-thermal }
candidate /dev/serial0: serial port | gps: { driver: gps, port: /dev/serial0 }
candidate /dev/ttyUSB0: serial port | gps-2: { driver: gps, port: /dev/ttyUSB0 }
candidate pwmchip0: pwmchip0, 2 channels | pwm: { driver: pwm, chip: pwmchip0, channel: 0 }`
	found, trouble := s.Run(t.Context())
	Unique(found, []string{"bme280-3"})
	if got := lines(found); got != want || trouble != nil {
		t.Errorf("got:\n%s\n%v\nwant:\n%s", got, trouble, want)
	}
	if len(hdmi.log) > 0 {
		t.Errorf("the monitor saw %v", hdmi.log)
	}
	for _, tr := range header.log {
		if tr.addr == 0x77 || tr.addr == 0x68 || tr.addr == 0x20 {
			t.Errorf("%#x is held by the kernel or the site, and saw %+v", tr.addr, tr)
		}
	}
	says := map[string]string{}
	for _, f := range found {
		says[f.Where] = f.Says
	}
	for where, want := range map[string]string{ // GPIO2 and 3 belong to the bus, 4 and 17 are used
		"/dev/gpiochip0": "free: GPIO0 GPIO1 GPIO5 GPIO6 GPIO7 GPIO8 GPIO9 GPIO10 GPIO11 GPIO12 GPIO13 GPIO14 GPIO15 GPIO16 GPIO18 GPIO19 GPIO20 GPIO21 GPIO22 GPIO23 GPIO24 GPIO25 GPIO26 GPIO27",
		"/dev/gpiochip2": "free: gpiochip2/0 gpiochip2/1",
	} {
		if !strings.HasPrefix(says[where], want) {
			t.Errorf("%s: %q, want %q", where, says[where], want)
		}
	}
	if !strings.HasSuffix(says["/dev/gpiochip2"], " and 3 more") || gpio.Driven(0) {
		t.Error(says["/dev/gpiochip2"], gpio.Driven(0))
	}
	for _, f := range found {
		if f.Where == "/dev/serial0" && !strings.Contains(f.Says, "console=serial0") {
			t.Error(f.Says)
		}
	}
	s.Buses = []string{"i2c-2"}
	if found, _ = s.Run(t.Context()); len(found) != 1 {
		t.Errorf("on that bus alone:\n%s", lines(found))
	}
}

func TestDeviceName(t *testing.T) {
	for part, want := range map[string]string{"BME280": "bme280", "dht11@4": "dht11-4", "SSD1306 display": "ssd1306-display", "Ünïcode": "uenicode", "!": "sensor", "1f00098000.pwm-and-more-of-it": "1f00098000-pwm-and-m"} {
		if got := deviceName(part); got != want {
			t.Errorf("%s is called %s, want %s", part, got, want)
		}
	}
}
