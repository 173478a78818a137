package board

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"agentsite/device"
	"agentsite/device/driver"
)

// DeviceError is a mistake about one device.
type DeviceError struct {
	Device string
	Err    error
}

func (f *DeviceError) Error() string { return f.Device + ": " + f.Err.Error() }
func (f *DeviceError) Unwrap() error { return f.Err }

// Survey finds conflicts between the resources of devices before any of them is opened:
// two devices that use one line under two names. The error joins *DeviceError. A line that
// is missing or in use is no conflict: opening it reports that.
func (b *Board) Survey(resources map[string][]driver.Resource) error {
	all, err := b.machine.GPIO.Chips()
	if err != nil {
		return nil // opening a line says why; there may be no need of any
	}
	var found []error
	owners := map[lineID]string{} // the device of a line, and how the line is written there
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		for _, c := range resources[name] {
			pin, ok := resourceLine(c)
			if !ok || c.Shared != "" { // a bus uses its own lines
				continue
			}
			at, err := find(all, pin)
			if err != nil {
				continue
			}
			if other, taken := owners[at]; taken {
				found = append(found, &DeviceError{name, device.Faultf(device.Invalid, "%s is line %d of %s, which %s uses too; choose another line", pin, at.offset, at.chip, other)})
			}
			owners[at] = fmt.Sprintf("%s (%s)", name, pin)
		}
	}
	return errors.Join(found...)
}

// Missing checks that this board has the lines of the devices, where it is a Raspberry Pi
// whose lines may be listed. It checks no other machine: the configuration may be another
// board's. The error joins *DeviceError.
func (b *Board) Missing(resources map[string][]driver.Resource) error {
	all, err := b.machine.GPIO.Chips()
	if _, ok := headerOf(all); err != nil || !ok {
		return nil
	}
	var found []error
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		for _, c := range resources[name] {
			if pin, ok := resourceLine(c); ok && c.Shared == "" {
				if _, err := find(all, pin); err != nil {
					found = append(found, &DeviceError{name, err})
				}
			}
		}
	}
	return errors.Join(found...)
}
