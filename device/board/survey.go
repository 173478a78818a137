package board

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"agentsite/device"
	"agentsite/device/driver"
)

// Finding is a mistake about one device.
type Finding struct {
	Device string
	Err    error
}

func (f *Finding) Error() string { return f.Device + ": " + f.Err.Error() }
func (f *Finding) Unwrap() error { return f.Err }

// Survey finds what contradicts itself in what the devices need, by their names, before
// any of it is opened: two that want one line under two names. The error joins all
// *Finding. What the machine lacks, or others have, is no finding: opening it says so.
func (b *Board) Survey(claims map[string][]driver.Claim) error {
	all, err := b.machine.GPIO.Chips()
	if err != nil {
		return nil // opening a line says why; there may be no need of any
	}
	var found []error
	owners := map[spot]string{} // who has a line, and how it is written there
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		for _, c := range claims[name] {
			pin, ok := claimedLine(c)
			if !ok || c.With != "" { // a bus uses its own lines
				continue
			}
			at, err := find(all, pin)
			if err != nil {
				continue
			}
			if other, taken := owners[at]; taken {
				found = append(found, &Finding{name, device.Faultf(device.Invalid, "%s is line %d of %s, which %s has too; choose another line", pin, at.offset, at.chip, other)})
			}
			owners[at] = fmt.Sprintf("%s (%s)", name, pin)
		}
	}
	return errors.Join(found...)
}

// Missing compares the lines that the devices need with those of this board, where it
// is a Raspberry Pi whose lines may be listed; of another machine it says nothing: the
// configuration may be another board's. The error joins all *Finding.
func (b *Board) Missing(claims map[string][]driver.Claim) error {
	all, err := b.machine.GPIO.Chips()
	if _, ok := headerOf(all); err != nil || !ok {
		return nil
	}
	var found []error
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		for _, c := range claims[name] {
			if pin, ok := claimedLine(c); ok && c.With == "" {
				if _, err := find(all, pin); err != nil {
					found = append(found, &Finding{name, err})
				}
			}
		}
	}
	return errors.Join(found...)
}
