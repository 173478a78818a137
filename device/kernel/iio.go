package kernel

import (
	"path/filepath"
	"slices"
	"strings"

	"agentsite/device"
)

const iioDevices = "sys/bus/iio/devices"

// iioPlace returns the device of a folder of /sys/bus/iio, such as 1-0076.
func iioPlace(folder string) string {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return ""
	}
	return filepath.Base(filepath.Dir(real))
}

// addIIO adds the channels of the folder's files. A processed value is preferred to a raw
// one.
func (s *sensor) addIIO(folder, model string) error {
	files, err := filesIn(folder)
	if err != nil {
		return err
	}
	for _, suffix := range []string{"_input", "_raw"} {
		for _, file := range files {
			name, ok := strings.CutSuffix(file, suffix)
			if !ok || suffix == "_raw" && slices.Contains(files, name+"_input") {
				continue
			}
			if ch, ok := parseIIO(name); ok {
				s.channels = append(s.channels, s.iioChannel(ch, file, folder, model, files))
			}
		}
	}
	slices.SortStableFunc(s.channels, func(a, b channel) int { return natural(a.point.Name, b.point.Name) })
	return nil
}

// iioName is a parsed channel name, such as in_voltage0-voltage1 or in_temp_ambient.
type iioName struct {
	typ      string
	index    string
	other    string // the second index of a difference
	modifier string // with its underscore
}

// otherValues are the endings of files that do not have the present value of a channel.
var otherValues = []string{"_mean", "_peak", "_trough", "_quadrature_correction"}

func parseIIO(name string) (ch iioName, ok bool) {
	rest, ok := strings.CutPrefix(name, "in_")
	if !ok {
		return ch, false
	}
	ch.typ, rest = span(rest, func(c byte) bool { return c >= 'a' && c <= 'z' })
	if _, known := iioTypes[ch.typ]; !known {
		return ch, false
	}
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	ch.index, rest = span(rest, digit)
	if second, found := strings.CutPrefix(rest, "-"+ch.typ); found && ch.index != "" {
		if ch.other, rest = span(second, digit); ch.other == "" {
			return ch, false
		}
	}
	ch.modifier = rest
	for _, ending := range otherValues {
		if strings.HasSuffix(rest, ending) {
			return ch, false
		}
	}
	return ch, rest == "" || rest[0] == '_' && device.CheckName(rest[1:]) == nil
}

// span splits s after its longest prefix of bytes for which is returns true.
func span(s string, is func(byte) bool) (head, tail string) {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return s[:n], s[n:]
}

// shared lists the files that can have a channel's scale or offset: its own first, then the
// shared ones (the names are of __iio_device_attr_init in drivers/iio/industrialio-core.c).
func (ch iioName) shared(what string) []string {
	if ch.other != "" {
		return []string{
			"in_" + ch.typ + ch.index + "-" + ch.typ + ch.other + ch.modifier + "_" + what,
			"in_" + ch.typ + "-" + ch.typ + "_" + what, "in_" + what, what,
		}
	}
	return []string{
		"in_" + ch.typ + ch.index + ch.modifier + "_" + what,
		"in_" + ch.typ + ch.index + "_" + what,
		"in_" + ch.typ + ch.modifier + "_" + what,
		"in_" + ch.typ + "_" + what, "in_" + what, what,
	}
}

func (ch iioName) point() string {
	name := iioTypes[ch.typ].name
	if name == "" {
		name = ch.typ
	}
	name += ch.index
	if ch.other != "" {
		name += "-" + ch.other
	}
	return name + ch.modifier
}

func (s *sensor) iioChannel(ch iioName, file, folder, model string, files []string) channel {
	typ := iioTypes[ch.typ]
	if q, ok := quirks[model+" "+ch.typ]; ok {
		typ.times, typ.per = q.times, q.per
	}
	if l, ok := chipLimits[model][ch.typ]; ok {
		typ.limits, typ.slack = l.limits, l.slack
	}
	c := channel{
		point: device.Point{Name: ch.point(), Kind: device.KindMeasurement, Unit: typ.unit, Description: typ.doc, Range: typ.limits},
		times: typ.times, per: typ.per, slack: typ.slack,
		value: s.add(file), offset: none, scale: none, fault: none,
	}
	if strings.HasSuffix(file, "_raw") {
		find := func(what string) int {
			for _, name := range ch.shared(what) {
				if slices.Contains(files, name) {
					return s.add(name)
				}
			}
			return none
		}
		c.offset, c.scale = find("offset"), find("scale")
		if c.scale == none && !typ.asIs {
			// Without a scale the unit is unknown.
			c.point.Unit, c.point.Range, c.times, c.per = "", device.Range{}, 1, 1
			c.point.Description += ", as a bare count: the kernel gives no scale"
		}
	}
	c.point.Description += s.label(folder, strings.TrimSuffix(strings.TrimSuffix(file, "_raw"), "_input"))
	return c
}

// natural compares names in natural order: voltage2 before voltage10.
func natural(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] == b[i] {
			continue
		}
		digit := func(c byte) bool { return c >= '0' && c <= '9' }
		m, _ := span(a[i:], digit)
		n, _ := span(b[i:], digit)
		if len(m) != len(n) && (m != "" && n != "" || i > 0 && digit(a[i-1])) {
			return len(m) - len(n)
		}
		return int(a[i]) - int(b[i])
	}
	return len(a) - len(b)
}
