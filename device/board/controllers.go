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
	// Free are the lines that something can be wired to, as an owner would write them:
	// of the chip with the header those of the header.
	Free []Pin
}

// Controllers lists the GPIO chips and takes no line of them. What is in taken counts
// as used; what is no line there is left out.
func (b *Board) Controllers(taken ...Pin) ([]Controller, error) {
	all, err := b.machine.GPIO.Chips()
	if err != nil {
		return nil, fault("a GPIO line", err)
	}
	var spots []spot
	for _, p := range taken {
		if at, err := find(all, p); err == nil {
			spots = append(spots, at)
		}
	}
	main, _ := headerOf(all)
	var found []Controller
	for _, c := range all {
		one := Controller{Name: c.Name, Label: c.Label, Lines: len(c.Lines)}
		for offset, l := range c.Lines {
			at := spot{c.Name, offset}
			pin := at.pin(all, main.Name)
			if c.Name == main.Name && !slices.Contains(header, strconv.Itoa(offset)) {
				continue
			}
			if !l.Used && !slices.Contains(spots, at) && b.taken(all, at, pin) == nil {
				one.Free = append(one.Free, pin)
			}
		}
		found = append(found, one)
	}
	return found, nil
}

// pin is how an owner would write the line: by its name where it is the only one of
// that name.
func (s spot) pin(all []Chip, header string) Pin {
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
