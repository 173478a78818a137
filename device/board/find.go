package board

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"agentsite/device"
)

// headerChips are the labels of the controllers of a Raspberry Pi's 40-pin header (drivers
// pinctrl-bcm2835.c and pinctrl-rp1.c). On them a line's offset is its BCM number. Line names
// differ: GPIO4 is GPIO_GCLK on a Zero and a 3, GPIO17 is PIN11 on the first kernels of a 5. The
// chip's number changes, too: it was 4 on those first kernels and is 0 since. So neither identifies
// the header.
var headerChips = []string{"pinctrl-rp1", "pinctrl-bcm2711", "pinctrl-bcm2835"}

// lineID is a line as the kernel numbers it.
type lineID struct {
	chip   string
	offset int
}

// request finds the pins, which have to be on one chip, and requests them together.
func (b *Board) request(pins []Pin, c LineConfig) (*Line, error) {
	all, err := b.machine.GPIO.Chips()
	if err != nil {
		return nil, fault(pins[0], err)
	}
	var chip string
	offsets := make([]int, len(pins))
	for i, p := range pins {
		at, err := find(all, p)
		switch {
		case err != nil:
			return nil, err
		case i > 0 && at.chip != chip:
			return nil, device.Faultf(device.Invalid, "%s and %s are on two chips; choose two lines of one", pins[0], p)
		}
		if err := b.checkFree(all, at, p); err != nil {
			return nil, err
		}
		chip, offsets[i] = at.chip, at.offset
	}
	c.Consumer = consumer
	l, err := b.machine.GPIO.Request(chip, offsets, c)
	if err != nil {
		return nil, fault(pins[0], err)
	}
	return newLine(pins[0], l), nil
}

// CheckFree reports why the pins could not be requested, without requesting them.
func (b *Board) CheckFree(pins ...Pin) error {
	all, err := b.machine.GPIO.Chips()
	if err != nil {
		return fault(pins[0], err)
	}
	for _, p := range pins {
		at, err := find(all, p)
		if err != nil {
			return err
		}
		if err := b.checkFree(all, at, p); err != nil {
			return err
		}
	}
	return nil
}

// checkFree fails for a line that is in use, or that belongs to an enabled bus of the header.
// Requesting such a line would cut the bus off.
func (b *Board) checkFree(all []Chip, at lineID, p Pin) error {
	if info := at.info(all); info.Used {
		return device.Faultf(device.Busy, "%s is in use by %s; end that, or choose another line", p, info.user())
	}
	header, ok := headerOf(all)
	if !ok || header.Name != at.chip {
		return nil
	}
	for _, bus := range slices.Sorted(maps.Keys(headerLines)) {
		if !slices.Contains(headerLines[bus], "GPIO"+strconv.Itoa(at.offset)) {
			continue
		}
		if _, err := os.Stat(b.files.Path("dev", bus)); err == nil {
			return device.Faultf(device.Busy, "%s belongs to %s, which is enabled; choose another line, or disable the bus in the board's configuration", p, bus)
		}
	}
	return nil
}

// user names the user of a line.
func (i LineInfo) user() string {
	if i.Consumer == "" {
		return "the kernel"
	}
	return fmt.Sprintf("%q", i.Consumer)
}

func (s lineID) info(all []Chip) LineInfo {
	i := slices.IndexFunc(all, func(c Chip) bool { return c.Name == s.chip })
	return all[i].Lines[s.offset]
}

// find returns the one line that p names.
func find(all []Chip, p Pin) (lineID, error) {
	if name, offset, ok := p.place(); ok {
		return findOn(all, p, name, offset)
	}
	if n, ok := p.number(); ok {
		if c, ok := headerOf(all); ok && n < len(c.Lines) {
			return lineID{c.Name, n}, nil
		}
	}
	var found []lineID
	for _, c := range all {
		for offset, l := range c.Lines {
			if l.Name == string(p) && p != "" {
				found = append(found, lineID{c.Name, offset})
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return lineID{}, device.Faultf(device.Offline, "there is no line %s%s", p, suggestLines(all, p))
	}
	return lineID{}, device.Faultf(device.Invalid, "%d lines are called %s; write %s/%d or %s/%d", len(found), p, found[0].chip, found[0].offset, found[1].chip, found[1].offset)
}

// findOn returns the line of one chip, by the chip's name or its label.
func findOn(all []Chip, p Pin, name string, offset int) (lineID, error) {
	var found []Chip
	for _, c := range all {
		if c.Name == name || c.Label == name {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 0:
		return lineID{}, device.Faultf(device.Offline, "there is no chip %s; this machine has %s", name, chipNames(all))
	case len(found) > 1:
		return lineID{}, device.Faultf(device.Invalid, "%d chips are called %s: %s; write %s/%d or %s/%d", len(found), name, chipNames(found), found[0].Name, offset, found[1].Name, offset)
	case offset >= len(found[0].Lines):
		return lineID{}, device.Faultf(device.Offline, "%s has only %d lines, counted from 0; there is no %s", name, len(found[0].Lines), p)
	}
	return lineID{found[0].Name, offset}, nil
}

// headerOf returns the chip that has the header, if there is one.
func headerOf(all []Chip) (Chip, bool) {
	i := slices.IndexFunc(all, func(c Chip) bool { return slices.Contains(headerChips, c.Label) })
	if i < 0 {
		return Chip{}, false
	}
	return all[i], true
}

func chipNames(all []Chip) string {
	if len(all) == 0 {
		return "no GPIO chip at all"
	}
	var names []string
	for _, c := range all {
		names = append(names, fmt.Sprintf("%s (%s)", c.Name, c.Label))
	}
	return strings.Join(names, ", ")
}

// suggestLines ends the fault about a line that does not exist.
func suggestLines(all []Chip, p Pin) string {
	if len(all) == 0 {
		return "; this machine has no GPIO chip at all"
	}
	var names []string
	for _, c := range all {
		for _, l := range c.Lines {
			if l.Name != "" && l.Name != "-" {
				names = append(names, l.Name)
			}
		}
	}
	return device.Suggest(string(p), names, "line") + "; any line can be written with its chip, like " + all[0].Name + "/0"
}
