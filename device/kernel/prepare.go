package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

const i2cDevices = "sys/bus/i2c/devices"

// Prepare binds the chip to the kernel driver in bind, if there is one.
func (c *Selector) Prepare(p driver.Preparation) ([]string, error) { return c.Bind.prepare(p) }

// Prepares returns the binding in bind, if there is one.
func (c *Selector) Prepares() []string { return c.Bind.prepares() }

// Resources returns the address in bind.
func (c *Selector) Resources() []driver.Resource { return c.Bind.resources() }

// resources returns the address, which devices that use the same kernel driver can share.
func (b *Bind) resources() []driver.Resource {
	if b == nil {
		return nil
	}
	return []driver.Resource{{Name: fmt.Sprintf("%s/%#02x", b.Bus, b.Address), Shared: "the kernel's driver " + b.Chip}}
}

// Resources returns the channel.
func (c *PWM) Resources() []driver.Resource {
	return []driver.Resource{{Name: fmt.Sprintf("%s/%d", c.Chip, c.Channel)}}
}

func (b *Bind) prepares() []string {
	if b == nil {
		return nil
	}
	return []string{fmt.Sprintf("bind %s at %#02x on %s to its kernel driver", b.Chip, b.Address, b.Bus)}
}

// prepare adds the chip to the kernel's bus until the next reboot. The kernel loads the
// driver's module and binds it.
func (b *Bind) prepare(p driver.Preparation) ([]string, error) {
	if b == nil {
		return nil, nil
	}
	if err := b.Validate(); err != nil {
		return nil, err
	}
	t := sysfs.Root(p.Root)
	var r reader
	switch known := r.Text(t.Path(i2cDevices, b.place(), "name")); {
	case known == b.Chip:
		if _, err := os.Readlink(t.Path(i2cDevices, b.place(), "driver")); err != nil {
			return nil, device.Faultf(device.Offline, "the kernel has the %s at %#02x on %s, but no driver is bound to it; check its wires, and that the kernel has a driver of that name, then run as root: echo %#02x > /sys/bus/i2c/devices/%s/delete_device", b.Chip, b.Address, b.Bus, b.Address, b.Bus)
		}
		return nil, nil
	case known != "":
		return nil, device.Faultf(device.Busy, "the kernel has a %s at %#02x on %s, not a %s; write that name, or run as root: echo %#02x > /sys/bus/i2c/devices/%s/delete_device", printable(known), b.Address, b.Bus, b.Chip, b.Address, b.Bus)
	}
	what := b.prepares()[0]
	file := t.Path(i2cDevices, b.Bus, "new_device")
	if _, err := os.Stat(file); err != nil {
		return nil, device.Faultf(device.Offline, "no bus %s; enable I2C (on a Raspberry Pi dtparam=i2c_arm=on in config.txt), or plug its adapter in", b.Bus)
	}
	if p.Ask {
		return []string{what}, nil
	}
	if err := write(file, fmt.Sprintf("%s %#02x\n", b.Chip, b.Address)); err != nil {
		return nil, err
	}
	return []string{what}, nil
}

// pwmFiles are the files that PWM.set writes.
var pwmFiles = []string{"enable", "period", "duty_cycle", "polarity"}

// Prepares returns the export of the channel.
func (c *PWM) Prepares() []string {
	return []string{fmt.Sprintf("export channel %d of %q, and give it to its group", c.Channel, c.Chip)}
}

// Prepare exports the channel and gives the group write permission. It moves nothing.
func (c *PWM) Prepare(p driver.Preparation) (did []string, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	there := PWM{Chip: c.Chip, Channel: c.Channel, root: sysfs.Root(p.Root)}
	chip, err := there.controller()
	if err != nil {
		return nil, err
	}
	channel := filepath.Join(chip, fmt.Sprintf("pwm%d", c.Channel))
	if _, err := os.Stat(channel); err != nil {
		did = append(did, fmt.Sprintf("export channel %d of %s", c.Channel, printable(c.Chip)))
		if p.Ask {
			return did, nil
		}
		if err := write(filepath.Join(chip, "export"), fmt.Sprint(c.Channel)); err != nil {
			return nil, err
		}
	}
	group, err := groupID(p.Group)
	if err != nil {
		return did, err
	}
	shared := false
	for _, name := range pwmFiles {
		changed, err := share(filepath.Join(channel, name), group, p.Ask)
		if err != nil && !(name == "polarity" && errors.Is(err, fs.ErrNotExist)) { // some controllers have a fixed polarity
			return did, device.Faultf(device.Offline, "channel %d of %s cannot be given to its group: %w", c.Channel, printable(c.Chip), err)
		}
		shared = shared || changed
	}
	if shared {
		did = append(did, fmt.Sprintf("give channel %d of %s to its group", c.Channel, printable(c.Chip)))
	}
	return did, nil
}

// groupID returns the ID of a group by its name or number.
func groupID(name string) (int, error) {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 {
		return n, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, device.Faultf(device.Invalid, "no group %s; create it with groupadd --system %[1]s, or use another", name)
	}
	return strconv.Atoi(g.Gid)
}

// share gives the group permission to read and write a file. With ask it only reports
// whether that is necessary.
func share(path string, group int, ask bool) (changed bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	if info.Mode().Perm()&0o060 == 0o060 && groupOf(info) == group {
		return false, nil
	}
	if ask {
		return true, nil
	}
	return true, errors.Join(os.Chown(path, -1, group), os.Chmod(path, info.Mode().Perm()|0o060))
}
