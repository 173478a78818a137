package board

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"agentsite/device/driver"
)

// PowerOnLevel is the level that a line must have from power-on until a site drives it, for
// its device to be safe.
type PowerOnLevel struct {
	Pin  Pin
	High bool
	Open bool // not driven: the wiring decides its level
}

// PowerOnLeveler is a Config with outputs on lines of the board.
type PowerOnLeveler interface{ PowerOnLevels() []PowerOnLevel }

// setting is the value of gpio= in config.txt: an output that drives low or high, or an
// input without a resistor.
func (h PowerOnLevel) setting() string {
	switch {
	case h.Open:
		return "ip,pn"
	case h.High:
		return "op,dh"
	}
	return "op,dl"
}

// PowerOn reports for each device with outputs on the board's own lines whether config.txt holds
// these lines at their safe level before a site runs. The firmware applies it within seconds of
// power-on. It reports nothing for a board that is no Raspberry Pi.
func (b *Board) PowerOn(holds map[string][]PowerOnLevel) (all []driver.Finding) {
	file := b.ConfigFile()
	if file == "" || len(holds) == 0 {
		return nil
	}
	settings, err := b.settings()
	if err != nil {
		return []driver.Finding{{Severity: driver.Warning, Subject: "gpio", Says: "it is not known what holds the outputs before the site runs: " + err.Error(), Do: "run agentsite doctor as a user who may read " + file}}
	}
	has := atPowerOn(settings)
	chips, _ := b.machine.GPIO.Chips() // without them a number is a number all the same
	for _, name := range slices.Sorted(maps.Keys(holds)) {
		for _, group := range grouped(holds[name]) {
			f := driver.Finding{Subject: name}
			var lines, wrong []string
			missing := false
			for _, h := range group {
				n, ok := onHeader(chips, h.Pin)
				if !ok {
					all = append(all, driver.Finding{Severity: driver.Note, Subject: name, Says: fmt.Sprintf("%s is no line of the board's own header: until the site runs, its chip decides where it is", h.Pin)})
					continue
				}
				lines = append(lines, strconv.Itoa(n))
				switch state, set := has[n]; {
				case !set:
					missing = true
				case !state.agrees(h):
					wrong = append(wrong, fmt.Sprintf("gpio=%d=%s", n, state))
				}
			}
			line := "gpio=" + strings.Join(lines, ",") + "=" + group[0].setting()
			switch {
			case len(lines) == 0:
				continue
			case len(wrong) > 0:
				f.Severity, f.Says, f.Do = driver.Warning, "until the site runs it is not at its safe level: "+file+" has "+strings.Join(wrong, " and "), "put "+line+" in its place and reboot"
			case missing:
				f.Severity, f.Says, f.Do = driver.Warning, "until the site runs, nothing holds it at its safe level", "add "+line+" at the end of "+file+", below [all], and reboot"
			default:
				f.Severity, f.Says = driver.Note, file+" holds it at its safe level from power-on, as "+line+" does"
			}
			all = append(all, f)
		}
	}
	return all
}

// grouped groups the levels that one line of config.txt can set.
func grouped(holds []PowerOnLevel) (groups [][]PowerOnLevel) {
	for _, h := range holds {
		i := slices.IndexFunc(groups, func(g []PowerOnLevel) bool { return g[0].setting() == h.setting() })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], h)
	}
	return groups
}

// onHeader returns the BCM number of a line of the 40-pin header.
func onHeader(chips []Chip, p Pin) (int, bool) {
	n, ok := p.number()
	if label, offset, placed := p.place(); placed && slices.Contains(headerChips, label) {
		n, ok = offset, true
	} else if main, there := headerOf(chips); there {
		at, err := find(chips, p)
		n, ok = at.offset, err == nil && at.chip == main.Name
	}
	return n, ok && slices.Contains(header, strconv.Itoa(n))
}

// pinState is the state of a line by config.txt: a function, a level and a resistor, each
// "" where it is not set.
type pinState struct{ function, level, pull string }

func (s pinState) String() string {
	return strings.Join(slices.DeleteFunc([]string{s.function, s.level, s.pull}, func(w string) bool { return w == "" }), ",")
}

func (s pinState) agrees(h PowerOnLevel) bool {
	switch {
	case h.Open:
		return s.function == "ip" && cmp.Or(s.pull, "pn") == "pn"
	case h.High:
		return s.function == "op" && s.level == "dh"
	}
	return s.function == "op" && s.level == "dl"
}

// atPowerOn returns the state of the board's lines by the gpio= lines among the settings, by BCM
// number. A later line overrides its settings.
func atPowerOn(settings []string) map[int]pinState {
	all := make(map[int]pinState)
	for _, s := range settings {
		rest, ok := strings.CutPrefix(s, "gpio=")
		lines, words, both := strings.Cut(rest, "=")
		if !ok || !both {
			continue
		}
		for part := range strings.SplitSeq(lines, ",") {
			from, to, isRange := strings.Cut(part, "-")
			if !isRange {
				to = from
			}
			first, err := strconv.Atoi(from)
			last, err2 := strconv.Atoi(to)
			if err != nil || err2 != nil || first < 0 || last > 53 { // as many as there are
				continue
			}
			for n := first; n <= last; n++ {
				all[n] = all[n].with(words)
			}
		}
	}
	return all
}

func (s pinState) with(words string) pinState {
	for w := range strings.SplitSeq(words, ",") {
		switch w {
		case "ip", "op", "a0", "a1", "a2", "a3", "a4", "a5":
			s.function = w
		case "dh", "dl":
			s.level = w
		case "pu", "pd", "pn":
			s.pull = w
		case "np":
			s.pull = "pn"
		}
	}
	return s
}
