package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/rule/calendar"
	"agentsite/agents/rule/expr"
	"agentsite/device"
)

// Points are the points that a definition may name, of rules and of what else an owner writes in
// their words.
type Points struct {
	all   []agents.Point
	open  []string // devices and sites whose points are not known yet
	any   bool     // nothing is known: every name is accepted
	place *calendar.Place
	days  calendar.Holidays
}

// Known returns the points of a site, where away are other sites whose points are not known yet;
// for nil those that the World knows before the site runs.
func (w World) Known(points []agents.Point, away ...string) Points {
	p := Points{all: points, open: away, place: w.Place, days: w.Holidays}
	if points == nil {
		p.all, p.open, p.any = w.Points, w.Open, w.Points == nil
	}
	return p
}

// names are those of all points, for an error.
func (p Points) names() []string {
	names := make([]string, len(p.all))
	for i := range p.all {
		names[i] = p.all[i].Point
	}
	return names
}

// find returns a point: nil for one that is not known yet, and false where there is none.
func (p Points) find(address string) (*agents.Point, bool) {
	for i := range p.all {
		if q := &p.all[i]; q.Point == address {
			return q, true
		}
	}
	of, _, ok := device.SplitAddress(address)
	return nil, ok && isAddress(address) && (p.any || slices.Contains(p.open, of))
}

// Moves reports whether the point is known to be an output, which callers move.
func (p Points) Moves(address string) bool {
	q, _ := p.find(address)
	return q != nil && q.Kind.Output()
}

// isAddress reports whether a point can have an address: device/point or site/device/point.
func isAddress(address string) bool {
	names := strings.Split(address, "/")
	return len(names) >= 2 && len(names) <= 3 && !slices.ContainsFunc(names, func(n string) bool { return device.CheckName(n) != nil })
}

var errNoPlace = errors.New("sunrise and sunset need to know where the site is; add place: \"52.52, 13.40\" under site:, its latitude and longitude in quotes")

// Compile compiles a condition that uses what others do, too.
func (p Points) Compile(text string, uses *expr.Uses) (*expr.Program, error) {
	return p.compile(uses, func(u *expr.Uses, lookup func(string) (expr.Point, bool)) (*expr.Program, error) {
		return u.Compile(text, lookup, p.names)
	})
}

// compiler compiles a text of a rule with the points that lookup knows.
type compiler func(uses *expr.Uses, lookup func(string) (expr.Point, bool)) (*expr.Program, error)

func (p Points) compile(uses *expr.Uses, compile compiler) (*expr.Program, error) {
	lookup := func(address string) (expr.Point, bool) {
		q, ok := p.find(address)
		if q == nil {
			return expr.Point{}, ok
		}
		return expr.Point{Kind: q.Kind, Unit: q.Unit, Values: q.Values}, true
	}
	if p.days != nil {
		uses.Holiday = p.days.Has
	}
	program, err := compile(uses, lookup)
	if err == nil && program.UsesSun() && p.place == nil {
		err = errNoPlace
	}
	return program, err
}

// Output checks that an output can be moved to a value, as far as it is known, and returns it;
// nil while the point is not yet known.
func (p Points) Output(address string, v device.Value) (*agents.Point, error) {
	q, ok := p.find(address)
	switch {
	case !ok:
		return nil, fmt.Errorf("there is no output %.60q%s", address, device.Suggest(address, p.names(), "output"))
	case v.Type() != device.TypeBool && v.Type() != device.TypeNumber || !v.Finite():
		return nil, fmt.Errorf("%s takes on, off or a number", address)
	case q == nil:
		return nil, nil
	case !q.Kind.Output():
		return nil, fmt.Errorf("%s is a %s, not an output", q.Point, q.Kind)
	}
	of := device.Point{Name: q.Point, Kind: q.Kind}
	if q.Min != nil && q.Max != nil {
		of.Range = device.Range{Min: *q.Min, Max: *q.Max}
	}
	return q, of.Accepts(v)
}

// Display checks that a display can show a text, as far as it is known.
func (p Points) Display(address string) error {
	q, ok := p.find(address)
	switch {
	case !ok:
		return fmt.Errorf("there is no display %.60q%s", address, device.Suggest(address, p.names(), "display"))
	case q != nil && q.Kind != device.KindText:
		return fmt.Errorf("%s is a %s, not a display", q.Point, q.Kind)
	}
	return nil
}
