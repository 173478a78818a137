package board

import (
	"fmt"
	"slices"
	"strconv"
)

// Controller is a GPIO chip of this machine.
type Controller struct {
	Name  string // "gpiochip0"
	Label string // "pinctrl-bcm2711"
	Lines int
	// Free are the lines that are free for wiring, in the form that an owner writes; of the header's
	// chip only those on the header.
	Free []Pin
}

// Controllers lists the GPIO chips and requests no line of them. Pins in taken count as
// used; entries of taken that are no line are ignored.
func (b *Board) Controllers(taken ...Pin) ([]Controller, error) {
	all, err := b.machine.GPIO.Chips()
	if err != nil {
		return nil, fault("a GPIO line", err)
	}
	var ids []lineID
	for _, p := range taken {
		if at, err := find(all, p); err == nil {
			ids = append(ids, at)
		}
	}
	main, _ := headerOf(all)
	var found []Controller
	for _, c := range all {
		one := Controller{Name: c.Name, Label: c.Label, Lines: len(c.Lines)}
		for offset, l := range c.Lines {
			at := lineID{c.Name, offset}
			pin := at.pin(all, main.Name)
			if c.Name == main.Name && !slices.Contains(header, strconv.Itoa(offset)) {
				continue
			}
			if !l.Used && !slices.Contains(ids, at) && b.checkFree(all, at, pin) == nil {
				one.Free = append(one.Free, pin)
			}
		}
		found = append(found, one)
	}
	return found, nil
}

// pin returns the line as an owner writes it: by its name where that is unique.
func (s lineID) pin(all []Chip, header string) Pin {
	if s.chip == header {
		return Pin(fmt.Sprintf("GPIO%d", s.offset))
	}
	var p Pin
	if p.UnmarshalText([]byte(s.info(all).Name)) == nil {
		if at, err := find(all, p); err == nil && at == s {
			return p
		}
	}
	return Pin(fmt.Sprintf("%s/%d", s.chip, s.offset))
}
