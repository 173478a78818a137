package board

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"agentsite/device"
	"agentsite/device/driver"
)

// Finding is what stands in the way of a device.
type Finding struct {
	Device string
	Err    error
}

func (f *Finding) Error() string { return f.Device + ": " + f.Err.Error() }
func (f *Finding) Unwrap() error { return f.Err }

// Survey compares what the devices need, by their names, with what the machine has,
// before any of it is opened: two devices that want one line under two names, a line
// that another program, the kernel or one of its buses uses, an address that a
// kernel driver holds. Lines that this process uses, or one of ours, are free: they
// stay with a device that stays, or are let go first. The error joins all *Finding.
// What is not there at all is no finding: opening it says so.
func (b *Board) Survey(claims map[string][]driver.Claim, ours ...int) error {
	all, err := b.gpio().list()
	if err != nil {
		all = nil // opening a line says why; there may be no need of any
	}
	var found []error
	add := func(name string, err error) {
		if err != nil {
			found = append(found, &Finding{name, err})
		}
	}
	owners := map[spot]string{} // who has a line, and how it is written there
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		for _, c := range claims[name] {
			add(name, b.heldByKernel(c))
			pin, ok := claimedLine(c)
			if !ok || c.With != "" { // a bus uses its own lines
				continue
			}
			at, err := find(all, pin)
			if err != nil {
				continue
			}
			if other, taken := owners[at]; taken {
				add(name, device.Faultf(device.Invalid, "%s is line %d of %s, which %s has too; choose another line", pin, at.offset, at.chip, other))
			}
			owners[at] = fmt.Sprintf("%s (%s)", name, pin)
			add(name, b.lineBusy(all, at, pin, ours))
		}
	}
	return errors.Join(found...)
}

// lineBusy reports a line that is in use, or that belongs to a bus of the header
// that is switched on.
func (b *Board) lineBusy(all []chip, at spot, pin Pin, ours []int) error {
	switch info := at.info(all); {
	case info.used && (info.consumer == consumer || slices.ContainsFunc(ours, func(pid int) bool { return info.consumer == consumerOf(pid) })):
		return nil
	case info.used:
		return inUse(pin, info)
	}
	header, ok := headerOf(all)
	if !ok || header.name != at.chip {
		return nil
	}
	for _, bus := range slices.Sorted(maps.Keys(headerLines)) {
		if !slices.Contains(headerLines[bus], "GPIO"+strconv.Itoa(at.offset)) {
			continue
		}
		if _, err := os.Stat(filepath.Join(b.root, "dev", bus)); err == nil {
			return device.Faultf(device.Busy, "%s belongs to %s, which is switched on; choose another line, or switch the bus off in the board's configuration", pin, bus)
		}
	}
	return nil
}

// heldByKernel reports an address on an I2C bus that a kernel driver has.
func (b *Board) heldByKernel(c driver.Claim) error {
	var bus int
	var address uint16
	if n, _ := fmt.Sscanf(c.What, "i2c-%d/0x%x", &bus, &address); n != 2 || c.With != "" || c.What != fmt.Sprintf("i2c-%d/%#02x", bus, address) {
		return nil
	}
	name := b.kernelDriver(bus, address)
	if name == "" {
		return nil
	}
	return device.Faultf(device.Busy, "%s is held by the kernel driver %s; use driver: iio or driver: hwmon, or unbind it as root: echo %d-%04x > /sys/bus/i2c/drivers/%s/unbind", c.What, name, bus, address, name)
}
