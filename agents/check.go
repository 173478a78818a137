package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"agentsite/device"
)

// Ranges are the numbers that requests take, by their names in JSON.
var Ranges = map[string]device.Range{
	"for_seconds": {Min: 0.001, Max: 366 * 24 * 3600}, // well inside a time.Duration
	"hours":       {Min: 0.05, Max: 10 * 366 * 24},    // as long as a site keeps hours
	"steps":       {Min: 1, Max: 1000},
	"every":       {Max: 3600}, // seconds between two updates

	"wait_seconds": {Max: 25}, // below what clients wait for a result
	"within":       {Min: 1, Max: 24 * 3600},
}

// CheckNumber refuses a number outside the Ranges of its field. Nil is left out.
func CheckNumber(field string, n *float64) error {
	if r := Ranges[field]; n != nil && !r.Contains(*n) {
		return device.Faultf(device.Invalid, "%s is %v; it must be within %s", field, *n, r)
	}
	return nil
}

// CheckName refuses a name that is missing, or not among those of an offer.
func CheckName(field, name string, offered []string) error {
	switch {
	case name == "":
		return device.Faultf(device.Invalid, "%s is missing%s", field, choice(offered))
	case slices.Contains(offered, name):
		return nil
	}
	return device.Faultf(device.Invalid, "%s: there is no %.60q here%s", field, name, cmp.Or(device.Suggest(name, offered, ""), choice(offered)))
}

// unfit says of a point that is there why an operation cannot use it.
var unfit = map[Operation]string{
	OpMove: "is not an output that you may move", OpShow: "is not a display that you may use",
	OpCapture: "is not a camera that you may use",
	OpHistory: "has no history that you may read", OpRead: "has no readings that you may have",
	OpWatch: "has no readings that you may have",
}

// Unfit returns why an operation with a value cannot use a point, which is called shown, although the
// offer has it: the value is of another type, or the point is no such thing. It returns nil for a point that
// the operation can use, and for one that the offer does not have.
func (o *Offer) Unfit(op Operation, point, shown string, v device.Value) error {
	fits := map[Operation][]string{OpShow: o.Show, OpCapture: o.Capture, OpHistory: o.History,
		OpRead: o.Read, OpWatch: o.Read}[op]
	if op == OpMove {
		isSwitch, isLevel := slices.Contains(o.Switch, point), slices.Contains(o.Level, point)
		switch t := v.Type(); {
		case t == device.TypeNone:
			fits = o.Release
		case isSwitch && t != device.TypeBool:
			return device.Faultf(device.Invalid, "%s is a switch: its value is true or false, as %s takes it",
				shown, moveTool(device.Bool(true)))
		case isLevel && t != device.TypeNumber:
			return device.Faultf(device.Invalid, "%s is a level: its value is a number, as %s takes it",
				shown, moveTool(device.Number(0)))
		case isSwitch || isLevel:
			return nil
		}
	}
	if slices.Contains(fits, point) || unfit[op] == "" {
		return nil
	}
	for _, list := range [][]string{o.Read, o.Release, o.Show, o.Capture, o.History} {
		if slices.Contains(list, point) {
			return device.Faultf(device.Invalid, "%s %s", shown, unfit[op])
		}
	}
	return nil
}

// CheckPoint is CheckName for the point of an operation, of those that the offer has for it.
func (o *Offer) CheckPoint(op Operation, field, point string, v device.Value, offered []string) error {
	if err := o.Unfit(op, point, point, v); err != nil {
		return err
	}
	return CheckName(field, point, offered)
}

// choice lists the possible names, as the end of a sentence.
func choice(names []string) string {
	const most = 30
	switch {
	case len(names) > most:
		return fmt.Sprintf("; use one of %s and %d more (list_points names them)", strings.Join(names[:most], ", "), len(names)-most)
	case len(names) > 0:
		return "; use " + strings.Join(names, ", ")
	}
	return ""
}
