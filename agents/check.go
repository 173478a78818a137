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
