package board

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"agentsite/device"
	"agentsite/device/driver"
)

// Use lists the resources of the board that a site's device uses.
type Use struct {
	Device    string
	Resources []driver.Resource
	Running   bool // a running site uses its lines
	Silent    bool // its chip acknowledges no bare read, so that silence proves nothing
}

// ConfigFile returns the file that turns this board's buses on; "" for a board that is
// no Raspberry Pi.
func (b *Board) ConfigFile() string {
	switch {
	case !strings.HasPrefix(b.Model(), "Raspberry Pi"):
		return ""
	case b.files.Exists("boot/firmware/config.txt"):
		return "/boot/firmware/config.txt"
	}
	return "/boot/config.txt" // before Debian 12
}

// Findings returns problems of the buses and lines of this board, and of the lines and addresses
// that a site uses. It requests no line, and reads one byte from each address, also while the site
// runs.
func (b *Board) Findings(ctx context.Context, uses []Use) []driver.Finding {
	var all []driver.Finding
	needed := make(map[string]bool) // buses
	for _, u := range uses {
		for _, c := range u.Resources {
			if bus, _, ok := strings.Cut(c.Name, "/"); ok {
				needed[bus] = true
			}
			if c.Shared != "" || c.Elsewhere {
				continue // a bus uses its own lines
			}
			if f := b.used(ctx, u, c.Name); f != nil {
				all = append(all, *f)
			}
		}
	}
	if file := b.ConfigFile(); file != "" {
		for _, bus := range []struct{ files, name, line, why string }{
			{"dev/i2c-1", "i2c-1", i2cOn, "I2C is off"},
			{"dev/spidev*", "spi", spiOn, "SPI is off"},
		} {
			switch {
			case len(b.files.Glob(bus.files)) > 0 || needed[bus.name]:
			case bus.name == "i2c-1" && b.files.Exists("sys/bus/i2c/devices/i2c-1"):
				all = append(all, driver.Finding{Severity: driver.Note, Subject: bus.name, Says: "I2C is on, but programs cannot use it", Do: "run as root: modprobe i2c-dev; and write i2c-dev into /etc/modules-load.d/i2c.conf"})
			default:
				all = append(all, driver.Finding{Severity: driver.Note, Subject: bus.name, Says: bus.why, Do: "to use it add " + bus.line + " to " + file + " and reboot"})
			}
		}
	}
	if os.Geteuid() == 0 {
		return append(all, driver.Finding{Severity: driver.Note, Subject: "user", Says: "the superuser may open everything, so this does not say whether the site may", Do: "run agentsite doctor as the user who runs the site"})
	}
	return append(all, b.permissions(mayUse)...)
}

// address matches the resource of an I2C address.
var address = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(i2c-[0-9]{1,4})/(0x[0-9a-f]{1,2})$`) })

// used looks at one thing that a device resources; nil when nothing is wrong with it.
func (b *Board) used(ctx context.Context, u Use, what string) *driver.Finding {
	problem := func(says, do string) *driver.Finding {
		return &driver.Finding{Severity: driver.Problem, Subject: u.Device, Says: says, Do: do}
	}
	if portName().MatchString(what) && !b.files.Exists("dev/"+what) {
		do := "turn SPI on"
		if file := b.ConfigFile(); file != "" {
			do = "add dtparam=spi=on to " + file + " and reboot"
		}
		return problem("there is no "+what+" here", do)
	}
	m := address().FindStringSubmatch(what)
	if m == nil {
		return b.lineFinding(u, what)
	}
	at := b.I2C()
	n, _ := strconv.ParseUint(m[2], 0, 16)
	at.Bus, at.Address = m[1], uint16(n)
	if at.Validate() != nil {
		return nil // reported by check
	}
	conn := at.Conn()
	if name := conn.KernelDriver(); name != "" {
		return problem(fmt.Sprintf("the kernel's driver %s has %s", name, what),
			fmt.Sprintf("write \"driver: kernel:%s\", or run as root: echo %d-%04x > /sys/bus/i2c/drivers/%s/unbind", b.files.Text(fmt.Sprintf("sys/bus/i2c/devices/%d-%04x/name", conn.number, n)), conn.number, n, name))
	}
	answers, err := at.Answers(ctx)
	var fault *device.Fault
	switch {
	case errors.As(err, &fault):
		says, do, _ := strings.Cut(fault.Msg, "; ")
		return problem(says, do)
	case err != nil:
		return problem(err.Error(), "")
	case !answers && !u.Silent:
		return problem("nothing answers at "+what, "check its power, SDA and SCL and the address (agentsite scan); another program may hold the bus")
	}
	return nil
}

// lineFinding looks at a line that a device resources; nil when nothing is wrong with it.
// permissions reports lines that cannot be listed.
func (b *Board) lineFinding(u Use, what string) *driver.Finding {
	pin, ok := resourceLine(driver.Resource{Name: what})
	all, err := b.machine.GPIO.Chips()
	if !ok || err != nil {
		return nil
	}
	at, err := find(all, pin)
	if err == nil && !(u.Running && strings.HasPrefix(at.info(all).Consumer, consumerPrefix)) {
		err = b.checkFree(all, at, pin)
	}
	if err == nil {
		return nil
	}
	says, do, _ := strings.Cut(device.AsFault(err).Msg, "; ")
	return &driver.Finding{Severity: driver.Problem, Subject: u.Device, Says: says, Do: do}
}

// permissions reports which of the board's files this user may not use. It checks one
// file of each kind: they have the same group.
func (b *Board) permissions(may func(path string) bool) []driver.Finding {
	var all []driver.Finding
	for _, kind := range []struct {
		group string
		files []string
	}{
		{"i2c", []string{"dev/i2c-*"}},
		{"spi", []string{"dev/spidev*"}},
		{"gpio", []string{"dev/gpiochip*"}},
		{"video", []string{"dev/video*"}},
		{"dialout", []string{"dev/serial[0-9]", "dev/ttyAMA*", "dev/ttyUSB*", "dev/ttyACM*"}},
	} {
		for _, pattern := range kind.files {
			paths := b.files.Glob(pattern)
			if len(paths) == 0 {
				continue
			}
			if !may(paths[0]) {
				all = append(all, driver.Finding{Severity: driver.Warning, Subject: kind.group,
					Says: "this user may not use " + strings.TrimPrefix(paths[0], strings.TrimSuffix(b.machine.Root, "/")),
					Do:   "sudo usermod -aG " + kind.group + " $USER, then log in again; for a service SupplementaryGroups=" + kind.group})
			}
			break
		}
	}
	return all
}
