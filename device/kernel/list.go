package kernel

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

// Listed is a part with a kernel driver on this machine.
type Listed struct {
	Driver string   // of this package: "iio"
	Where  string   // "i2c-1/0x76" for a chip on I2C, else the kernel's name
	Name   string   // in the kernel
	Points []string // that can be read now; none for an output
	YAML   string   // a device that uses it, in braces
}

// List finds the parts that this package's drivers can read on the machine whose files are
// below root, and the PWM controllers. It opens each device, and reads no value, because
// some reads take a second or clear an alarm.
func List(ctx context.Context, root string) []Listed {
	t := sysfs.Root(root)
	var all []Listed
	add := func(l Listed, c driver.Config) {
		dev, err := driver.Open(ctx, c)
		if err != nil {
			return // no readable value
		}
		for _, p := range dev.Describe().Points {
			l.Points = append(l.Points, p.Name)
		}
		l.Name = printable(l.Name)
		all = append(all, l)
		dev.Close()
	}
	var r reader
	for _, class := range []class{iio, hwmon} {
		for _, folder := range t.Glob(class.folder + "/" + class.prefix + "*") {
			name, number, place := r.Text(filepath.Join(folder, "name")), filepath.Base(folder), class.place(folder)
			if strings.HasPrefix(place, "thermal_zone") || w1ID().MatchString(place) || name == "rpi_volt" {
				continue // listed as a thermal zone or a 1-Wire thermometer, or read by the driver host
			}
			l := Listed{Driver: class.name, Where: number, Name: name, YAML: fmt.Sprintf("{ driver: %s, name: %s }", class.name, quoted(name))}
			if place != "" {
				l.YAML = fmt.Sprintf("{ driver: %s, name: %s, at: %s }", class.name, quoted(name), quoted(place))
			}
			l.onI2C(t, place)
			add(l, &Selector{Device: number, class: class, root: t})
		}
	}
	for _, folder := range t.Glob(w1Devices + "/*") {
		if id := filepath.Base(folder); w1ID().MatchString(id) {
			add(Listed{Driver: "w1", Where: "1-wire/" + id, Name: w1Families[id[:2]], YAML: fmt.Sprintf("{ driver: w1, id: %s }", id)}, &W1{ID: id, root: t})
		}
	}
	for _, folder := range t.Glob(thermalZones + "/thermal_zone*") {
		zone := r.Text(filepath.Join(folder, "type"))
		add(Listed{Driver: "thermal", Where: filepath.Base(folder), Name: zone, YAML: fmt.Sprintf("{ driver: thermal, zone: %s }", quoted(zone))}, &Thermal{Zone: zone, root: t})
	}
	for _, folder := range t.Glob(pwmChips + "/pwmchip*") {
		chip := deviceOf(folder)
		if chip == "" {
			chip = filepath.Base(folder)
		}
		n, _ := r.number(filepath.Join(folder, "npwm"))
		all = append(all, Listed{Driver: "pwm", Where: filepath.Base(folder), Name: fmt.Sprintf("%s, %v channels", printable(chip), device.Number(n)), YAML: fmt.Sprintf("{ driver: pwm, chip: %s, channel: 0 }", quoted(chip))})
	}
	return all
}

var i2cPlace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]{1,4})-00([0-7][0-9a-f])$`) })

// onI2C sets the place of a chip on I2C, and YAML that binds it again after a reboot.
func (l *Listed) onI2C(t sysfs.Root, place string) {
	m := i2cPlace().FindStringSubmatch(place)
	if m == nil {
		return
	}
	address, _ := strconv.ParseUint(m[2], 16, 8)
	l.Where = fmt.Sprintf("i2c-%s/%#02x", m[1], address)
	if chip := t.Text(i2cDevices, place, "name"); chipName().MatchString(chip) {
		l.YAML = fmt.Sprintf("{ driver: kernel:%s, bus: i2c-%s, address: %#02x }", chip, m[1], address)
	}
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.@-]*$`) })

// quoted returns a name as a YAML scalar inside braces.
func quoted(s string) string {
	if plainWord().MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
