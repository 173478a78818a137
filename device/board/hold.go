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

// Hold is where a line has to be from power-on until a site drives it, or its device
// would not be safe.
type Hold struct {
	Pin  Pin
	High bool
	Open bool // nobody drives it: what is wired to it decides its level
}

// Holder is a Config whose lines move something.
type Holder interface{ Holds() []Hold }

// words are those of gpio= in config.txt: an output that drives low or high, or an
// input without a resistor.
func (h Hold) words() string {
	switch {
	case h.Open:
		return "ip,pn"
	case h.High:
		return "op,dh"
	}
	return "op,dl"
}

// PowerOn says for each device with outputs on the board's own lines what holds these
// lines at their safe level before a site runs: a line in config.txt, which the firmware
// obeys within seconds of power-on. It says nothing of a board that is no Raspberry Pi.
func (b *Board) PowerOn(holds map[string][]Hold) (all []driver.Finding) {
	file := b.ConfigFile()
	if file == "" || len(holds) == 0 {
		return nil
	}
	settings, err := b.settings()
	if err != nil {
		return []driver.Finding{{Severity: driver.Warning, Subject: "gpio", Says: "what holds the outputs before the site runs is not known: " + err.Error(), Do: "run agentsite doctor as a user who may read " + file}}
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
			line := "gpio=" + strings.Join(lines, ",") + "=" + group[0].words()
			switch {
			case len(lines) == 0:
				continue
			case len(wrong) > 0:
				f.Severity, f.Says, f.Do = driver.Warning, "until the site runs it is not at its safe level: "+file+" has "+strings.Join(wrong, " and "), "put "+line+" in its place and start the board again"
			case missing:
				f.Severity, f.Says, f.Do = driver.Warning, "until the site runs, nothing holds it at its safe level", "add "+line+" at the end of "+file+", below [all], and start the board again"
			default:
				f.Severity, f.Says = driver.Note, file+" holds it at its safe level from power-on, as "+line+" does"
			}
			all = append(all, f)
		}
	}
	return all
}

// grouped puts those together that one line of config.txt can hold.
func grouped(holds []Hold) (groups [][]Hold) {
	for _, h := range holds {
		i := slices.IndexFunc(groups, func(g []Hold) bool { return g[0].words() == h.words() })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], h)
	}
	return groups
}

// onHeader is the BCM number of a line of the 40-pin header.
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

// pinState is what config.txt makes of a line: a function, a level and a resistor, each
// "" where it says nothing of that.
type pinState struct{ function, level, pull string }

func (s pinState) String() string {
	return strings.Join(slices.DeleteFunc([]string{s.function, s.level, s.pull}, func(w string) bool { return w == "" }), ",")
}

func (s pinState) agrees(h Hold) bool {
	switch {
	case h.Open:
		return s.function == "ip" && cmp.Or(s.pull, "pn") == "pn"
	case h.High:
		return s.function == "op" && s.level == "dh"
	}
	return s.function == "op" && s.level == "dl"
}

// atPowerOn is what the gpio= lines among the settings make of the board's lines, by
// BCM number. A later one counts, for as much as it says.
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
				all[n] = all[n].told(words)
			}
		}
	}
	return all
}

func (s pinState) told(words string) pinState {
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
