package events

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/event"
	"agentsite/agents/rule/expr"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// args are the arguments of all types.
type args struct {
	When       string   `json:"when,omitzero"`
	Until      string   `json:"until,omitzero"`
	For        string   `json:"for,omitzero"`
	Point      string   `json:"point,omitzero"`
	Above      *float64 `json:"above,omitzero"`
	Below      *float64 `json:"below,omitzero"`
	Back       *float64 `json:"back,omitzero"`
	ForSeconds *float64 `json:"for_seconds,omitzero"`
	Output     string   `json:"output,omitzero"`
	Device     string   `json:"device,omitzero"`
	Task       string   `json:"task,omitzero"`
	Agent      string   `json:"agent,omitzero"`
}

// maxFor is the longest time for which a condition has to be true.
const maxFor = 12 * time.Hour

// plan is a request that was checked.
type plan struct {
	who       agents.Principal
	name      string
	canonical []byte
	args      args
	points    []agents.Point // whose records it is about
	addresses []string       // theirs
	devices   []string       // that the caller sees something of
	readable  []agents.Point // all that the caller may read
	when      *expr.Program
	until     *expr.Program // nil for when that is false
	hold      int64         // ms for which a condition has to be true
	goodFor   []int64       // ms after which a reading of each point is stale; 0 for never
}

func invalid(format string, args ...any) error { return device.Faultf(device.Invalid, format, args...) }

// parse reads the arguments, without the points that they name.
func parse(p agents.Principal, r event.Request) (*plan, error) {
	of, ok := find(r.Name)
	if !ok {
		return nil, event.ErrUnknown
	}
	pl := &plan{who: p, name: r.Name}
	if len(r.Args) > 8<<10 {
		return nil, invalid("arguments: at most 8 KiB")
	}
	if len(r.Args) > 0 && string(r.Args) != "null" {
		if err := json.Unmarshal(r.Args, &pl.args, json.RejectUnknownMembers(true)); err != nil {
			return nil, misread(of, err)
		}
	}
	text, err := json.Marshal(&pl.args, json.Deterministic(true))
	if err != nil {
		return nil, invalid("arguments: a text is not UTF-8")
	}
	var given map[string]any
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, err
	}
	for name := range given {
		if !slices.Contains(of.args, name) {
			return nil, noArgument(of, name)
		}
	}
	for _, name := range of.needs {
		if given[name] == nil {
			return nil, invalid("%s: it is missing", name)
		}
	}
	pl.canonical = text
	return pl, pl.length()
}

// misread rewords an error of the JSON library.
func misread(of kind, err error) error {
	var wrong *json.SemanticError
	if !errors.As(err, &wrong) || wrong.JSONPointer == "" {
		return invalid("arguments: write one JSON object, each name once")
	}
	name := device.Clip(strings.ReplaceAll(string(wrong.JSONPointer[1:]), "/", "."), 60)
	switch {
	case !slices.Contains(of.args, name):
		return noArgument(of, name)
	case types[name] == "number":
		return invalid("%s: takes a number, without quotes and without a unit", name)
	case name == "for":
		return invalid("for: takes a text, such as \"10m\"")
	}
	return invalid("%s: takes a text", name)
}

func noArgument(of kind, name string) error {
	if len(of.args) == 0 {
		return invalid("%s: %s takes no arguments", name, of.name)
	}
	return invalid("%s: %s has no such argument; it takes %s", name, of.name, strings.Join(of.args, ", "))
}

// length reads for how long a condition has to be true.
func (pl *plan) length() error {
	a := &pl.args
	var d time.Duration
	if a.For != "" {
		var err error
		if d, err = time.ParseDuration(a.For); err != nil {
			return invalid("for: %.20q is no length; write 90s, 10m or 1h30m", a.For)
		}
	}
	if a.ForSeconds != nil {
		if !(*a.ForSeconds >= 0 && *a.ForSeconds <= maxFor.Seconds()) {
			return invalid("for_seconds: 0 to %v", maxFor.Seconds())
		}
		d = time.Duration(*a.ForSeconds * float64(time.Second))
	}
	if d < 0 || d > maxFor {
		return invalid("for: at most %v", maxFor)
	}
	pl.hold = d.Milliseconds()
	return nil
}

// resolve finds the points of a request among those that the caller may read.
func (pl *plan) resolve(readable []agents.Point) error {
	of, _ := find(pl.name)
	pl.readable = readable
	for _, p := range readable {
		name, _, _ := device.SplitAddress(p.Point)
		if !slices.Contains(pl.devices, name) {
			pl.devices = append(pl.devices, name)
		}
	}
	take := func(address string, fits func(device.Kind) bool) error {
		for _, p := range readable {
			if fits(p.Kind) && (address == "" || p.Point == address) {
				pl.points = append(pl.points, p)
			}
		}
		if len(pl.points) == 0 {
			return event.ErrUnknown
		}
		return nil
	}
	var err error
	switch pl.name {
	case ConditionMet:
		err = pl.compile(readable, pl.args.When, pl.args.Until)
	case PointCrossed:
		err = pl.cross(readable)
	case DeviceChanged:
		if pl.args.Device != "" && !slices.Contains(pl.devices, pl.args.Device) || len(pl.devices) == 0 {
			err = event.ErrUnknown
		}
	default:
		if of.fits != nil {
			err = take(pl.args.Point+pl.args.Output, of.fits) // a type has one of them
		}
	}
	if len(pl.points) > maxPoints {
		err = invalid("at most %d points in one request: name one", maxPoints)
	}
	for _, p := range pl.points {
		pl.addresses = append(pl.addresses, p.Point)
	}
	return err
}

// cross writes a crossing as a condition.
func (pl *plan) cross(readable []agents.Point) error {
	a := &pl.args
	i := slices.IndexFunc(readable, func(p agents.Point) bool { return p.Point == a.Point && numeric(p.Kind) })
	if i < 0 {
		return event.ErrUnknown
	}
	number := func(n float64) string {
		return a.Point + " %s " + strconv.FormatFloat(n, 'f', -1, 64) + unit(readable[i].Unit)
	}
	op, back, limit := " > ", " <= ", a.Above
	if (a.Above == nil) == (a.Below == nil) {
		return invalid("above, below: write one of them, and not both")
	}
	if a.Below != nil {
		op, back, limit = " < ", " >= ", a.Below
	}
	end := limit
	if a.Back != nil {
		end = a.Back
		if a.Above != nil && *end > *limit || a.Below != nil && *end < *limit {
			return invalid("back: it is on the other side of the limit; leave it out, or name a value that ends the crossing")
		}
	}
	text := func(op string, n float64) string { return strings.Replace(number(n), " %s ", op, 1) }
	return pl.compile(readable, text(op, *limit), text(back, *end))
}

func unit(u string) string {
	if u == "" {
		return ""
	}
	return " " + u
}

// compile compiles a condition, of what can be replayed from records.
func (pl *plan) compile(readable []agents.Point, when, until string) error {
	uses, hidden := new(expr.Uses), false
	lookup := func(address string) (expr.Point, bool) {
		for _, p := range readable {
			if p.Point == address {
				return expr.Point{Kind: p.Kind, Unit: p.Unit, Values: p.Values}, true
			}
		}
		hidden = true
		return expr.Point{}, false
	}
	var programs [2]*expr.Program
	for i, text := range []string{when, until} {
		if text == "" {
			continue
		}
		program, err := uses.Compile(text, lookup, func() []string { return nil })
		if hidden {
			return event.ErrUnknown
		}
		if err != nil {
			var wrong *expr.Error
			errors.As(err, &wrong)
			return invalid("%s: %s", []string{"when", "until"}[i], wrong.Msg)
		}
		programs[i] = program
	}
	if pl.when, pl.until = programs[0], programs[1]; pl.when == nil {
		return invalid("when: it is missing")
	}
	for i, p := range programs {
		if p == nil {
			continue
		}
		name := []string{"when", "until"}[i]
		why := ""
		switch {
		case p.UsesClock():
			why = "the time of day and the sun"
		case len(p.Windows()) > 0:
			why = "mean, least, greatest, change and count"
		}
		for point := range p.Points() {
			if s := p.Sense(point); why == "" && (s.Age || s.Time) {
				why = "age"
			}
		}
		if why != "" {
			return invalid(
				"%s: %s cannot be replayed from what is recorded; leave it out, or ask for a rule of the site", name, why,
			)
		}
	}
	for _, address := range uses.Points {
		i := slices.IndexFunc(readable, func(p agents.Point) bool { return p.Point == address })
		if readable[i].Kind == device.KindEvent {
			return invalid("when: %s has no lasting value; ask for %s", address, ButtonPressed)
		}
		pl.points = append(pl.points, readable[i])
	}
	if len(pl.points) == 0 {
		return invalid("when: it names no point")
	}
	return nil
}

func numeric(k device.Kind) bool { return k == device.KindMeasurement || k == device.KindLevel }
