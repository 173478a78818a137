package events

import (
	"context"
	"slices"

	"agentsite/agents"
	"agentsite/agents/event"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// The types of events.
const (
	ConditionMet   = "condition.met"
	PointCrossed   = "point.crossed"
	PointChanged   = "point.changed"
	ButtonPressed  = "button.pressed"
	OutputMoved    = "output.moved"
	OutputReturned = "output.returned"
	StopChanged    = "stop.changed"
	DeviceChanged  = "device.changed"
	TaskChanged    = "task.changed"
	ApprovalWaits  = "approval.waits"
)

// kind is a type of events.
type kind struct {
	name, about string
	args, needs []string
	fits        func(device.Kind) bool // the points that it can be about; nil for none
	payload     []string               // members of the data
}

var (
	reading  = []string{"point", "value", "unit", "quality", "since"}
	output   = []string{"output", "value", "safe", "because", "broke", "holder"}
	outputs  = func(k device.Kind) bool { return k.Output() }
	measured = func(k device.Kind) bool { return k != device.KindEvent }
)

var kinds = []kind{
	{ConditionMet, "A condition over points became true. What is true already is not told: read_points first. " +
		"It is told again after until was true, or without until after the condition was false.",
		[]string{"when", "for", "until"}, []string{"when"}, measured, append([]string{"when"}, reading...)},
	{PointCrossed, "A number went above or below a limit, and stayed there for for_seconds. One that is there already " +
		"is not told: read_points first. It is told again after the number was at back, or at the limit, again.",
		[]string{"point", "above", "below", "for_seconds", "back"}, []string{"point"}, numeric, reading},
	{PointChanged, "A state has another value. At most one a second is told.",
		[]string{"point"}, []string{"point"}, func(k device.Kind) bool { return k == device.KindState }, reading},
	{ButtonPressed, "A button was pressed, or something else happened at a point that has no lasting value.",
		[]string{"point"}, []string{"point"}, func(k device.Kind) bool { return k == device.KindEvent }, reading},
	{OutputMoved, "An output was moved away from safe, or to another value.", []string{"output"}, nil, outputs, output},
	{OutputReturned, "An output that was held returned to safe; broke says that its lease was cut short.",
		[]string{"output"}, nil, outputs, output},
	{StopChanged, "The emergency stop was latched, or released.", nil, nil, nil, []string{"stopped"}},
	{DeviceChanged, "A device is not read any more, or it is again.", []string{"device"}, nil, nil,
		[]string{"device", "state", "because"}},
	{TaskChanged, "A task asks something, or has ended.", []string{"task", "agent"}, nil, nil,
		[]string{"task", "agent", "state", "asks"}},
	{ApprovalWaits, "A call waits for an owner's approval.", nil, nil, nil,
		[]string{"handle", "tool", "arguments", "caller", "seconds_left"}},
}

func find(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// descriptions are those of arguments and of members of the data.
var descriptions = map[string]string{
	"when": "A condition over points of read_points with the units of list_points, such as " +
		"climate/temperature < 5 Cel and (window/position == open or not fan/relay == on)",
	"until": "A condition after which the event is told again",
	"for":   "For how long it has to be true, such as 90s or 10m",
	"above": "The limit, in the unit of the point; write above or below", "below": "The limit, in the unit of the point",
	"for_seconds": "For how long it has to stay there; at once when left out",
	"back":        "The value that ends the crossing, on the other side of the limit; the limit when left out",
	"since":       "When it became so, RFC 3339",
	"because":     "Why, in the words of the site or of a device",
	"quality":     "good, or fault: the value is not known",
	"holder":      "Who holds or held it: you, or for owners anybody",
	"state":       "Of a device lost or back, of a task its state",
}

var types = map[string]string{
	"above": "number", "below": "number", "back": "number", "for_seconds": "number", "seconds_left": "number",
	"broke": "boolean", "stopped": "boolean", "value": "", "safe": "",
}

// schema returns that of some members. choices are the values that some of them can have.
func schema(members, needs []string, choices map[string][]string, closed bool) []byte {
	properties := make(map[string]any, len(members))
	for _, m := range members {
		p := map[string]any{}
		if t, ok := types[m]; !ok {
			p["type"] = "string"
		} else if t != "" {
			p["type"] = t
		}
		if d := descriptions[m]; d != "" {
			p["description"] = d
		}
		if c := choices[m]; c != nil {
			p["enum"] = c
		}
		properties[m] = p
	}
	s := map[string]any{"type": "object", "properties": properties}
	if len(needs) > 0 {
		s["required"] = needs
	}
	if closed {
		s["additionalProperties"] = false
	}
	b, _ := json.Marshal(s, json.Deterministic(true)) // of these types it does not fail
	return b
}

// Types implements event.Source.
func (s *Source) Types(ctx context.Context, p agents.Principal) (all []event.Type, err error) {
	readable, err := s.Node.Readable(p)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		choices := make(map[string][]string)
		var points, devices []string
		for _, q := range readable {
			if name, _, _ := device.SplitAddress(q.Point); !slices.Contains(devices, name) {
				devices = append(devices, name)
			}
			if k.fits != nil && k.fits(q.Kind) {
				points = append(points, q.Point)
			}
		}
		if k.name == DeviceChanged {
			choices["device"] = devices
			if devices == nil {
				continue
			}
		}
		choices["point"], choices["output"] = points, points
		if k.fits != nil && points == nil || k.fits == nil && !s.offers(ctx, p, k.name) {
			continue
		}
		all = append(all, event.Type{
			Name: k.name, Description: k.about, Input: schema(k.args, k.needs, choices, true),
			Payload: schema(k.payload, nil, nil, false),
		})
	}
	return all, nil
}

// offers reports whether there can be events of a type of the ring for p.
func (s *Source) offers(ctx context.Context, p agents.Principal, name string) bool {
	if s.Occurrences == nil {
		return false
	}
	switch name {
	case StopChanged:
		o, err := s.Node.Offer(ctx, p)
		return err == nil && o.Status
	case TaskChanged:
		if s.Tasks == nil {
			return false
		}
		all, err := s.Tasks.Agents(ctx, p)
		return err == nil && len(all) > 0
	case ApprovalWaits, DeviceChanged: // a caller is told of its own calls, and of devices that it reads
		o, err := s.Node.Offer(ctx, p)
		return err == nil && (len(o.Read) > 0 || s.Node.Owner(p) == nil || len(o.Switch)+len(o.Level) > 0)
	}
	return true
}
