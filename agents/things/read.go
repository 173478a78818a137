package things

import (
	"context"
	"math"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// value is a device.Value on its way out: a number, a bool, a text or null.
type value any

type none struct{}

type pointsOut struct {
	Points []pointOut `json:"points"`
}

type pointOut struct {
	Point       string   `json:"point"`
	Kind        string   `json:"kind"`
	Unit        string   `json:"unit,omitzero"`
	Description string   `json:"description,omitzero"`
	Device      string   `json:"device,omitzero"`
	Min         *float64 `json:"min,omitzero"`
	Max         *float64 `json:"max,omitzero"`
	Values      []string `json:"values,omitzero"`
	Safe        value    `json:"safe,omitzero"`
	MaxSeconds  float64  `json:"max_seconds,omitzero"`
	Limits      string   `json:"limits,omitzero"`
	Confirm     string   `json:"confirm,omitzero"` // who has to approve each move
}

func (a *Agent) listPoints() (verb, error) {
	if !a.sees(agents.Ask{Tool: "list_points", Effect: agents.Reads}) {
		return verb{}, nil
	}
	out := pointsOut{Points: []pointOut{}}
	for _, p := range a.points {
		if !a.seen("list_points", p.Address) {
			continue
		}
		o := pointOut{
			Point: p.Address, Kind: string(p.Kind), Unit: p.Unit, Description: p.Description,
			Device: p.model, Values: p.Values,
		}
		r := p.Range
		if p.Kind.Output() {
			policy, err := a.site.Outputs.Policy(p.Address)
			if err != nil {
				return verb{}, err
			}
			r = policy.Range
			o.Safe = policy.Safe.Any()
			o.MaxSeconds, o.Limits, o.Confirm = seconds(policy.Longest()), a.limits(policy), p.confirms()
		}
		if r != (device.Range{}) {
			o.Min, o.Max = &r.Min, &r.Max
		}
		out.Points = append(out.Points, o)
	}
	return define(agents.Tool{
		Name:        "list_points",
		Description: "Sensors and outputs: kind, unit, range; of outputs the safe value, max_seconds away from it, other limits and who confirms a move.",
		Hints:       agents.Hints{ReadOnly: true, Idempotent: true},
	}, limits{}, func(none) agents.Ask { return about() }, nil,
		func(context.Context, agents.Principal, none, agents.Limits) (pointsOut, error) { return out, nil })
}

type readIn struct {
	Points []string `json:"points,omitzero" jsonschema:"all when left out"`
}

type readOut struct {
	Readings []reading `json:"readings"`
}

type reading struct {
	Point   string  `json:"point"`
	Value   value   `json:"value"`
	Unit    string  `json:"unit,omitzero"`
	Time    string  `json:"time,omitzero"`
	Age     float64 `json:"age_seconds"`
	Quality string  `json:"quality"`
	Why     string  `json:"why,omitzero"`
}

func (a *Agent) readPoints() (verb, error) {
	all := a.addresses("read_points", readable...)
	if len(all) == 0 {
		return verb{}, nil
	}
	return define(agents.Tool{
		Name:        "read_points",
		Description: "The latest readings. Quality: good, stale (too old) or fault (see why).",
		Hints:       agents.Hints{ReadOnly: true, Idempotent: true},
	}, limits{enums: map[string][]string{"points": all}},
		func(in readIn) agents.Ask { return about(in.Points...) }, nil,
		func(_ context.Context, _ agents.Principal, in readIn, _ agents.Limits) (readOut, error) {
			if len(in.Points) == 0 {
				in.Points = all
			}
			if len(in.Points) > len(all) {
				return readOut{}, device.Faultf(device.Invalid, "points: name each point once; there are %d", len(all))
			}
			out := readOut{Readings: make([]reading, len(in.Points))}
			for i, address := range in.Points {
				out.Readings[i] = a.read(address)
			}
			return out, nil
		})
}

// read is the latest reading of a point that exists.
func (a *Agent) read(address string) reading {
	out := reading{Point: address, Unit: a.byName[address].Unit}
	r, ok := a.site.Readings.Latest(address)
	if !ok {
		out.Quality, out.Why = string(device.Stale), "no reading yet"
		if a.byName[address].Kind == device.KindEvent {
			out.Quality, out.Why = string(device.Good), "nothing has happened yet"
		}
		return out
	}
	out.Value, out.Quality, out.Why = r.Value.Any(), string(r.Quality), r.Why
	out.Time = stamp(r.At)
	out.Age = seconds(time.Since(r.At))
	return out
}

const (
	maxSteps     = 288
	shortestStep = time.Minute // as History has it
)

type historyIn struct {
	Point string   `json:"point"`
	Hours *float64 `json:"hours,omitzero" jsonschema:"12 when left out"`
	Steps *float64 `json:"steps,omitzero" jsonschema:"24 when left out"`
}

type historyOut struct {
	Point string  `json:"point"`
	Unit  string  `json:"unit,omitzero"`
	Step  float64 `json:"step_seconds"`
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	Max   float64 `json:"max"`
	Steps []step  `json:"steps"`
}

type step struct {
	Time string  `json:"time"`
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

func (a *Agent) readHistory() (verb, error) {
	all := a.addresses("read_history", device.KindMeasurement)
	if len(all) == 0 {
		return verb{}, nil
	}
	return define(agents.Tool{
		Name:        "read_history",
		Description: "Minimum, mean and maximum of a measurement, of each step and of the whole.",
		Hints:       agents.Hints{ReadOnly: true, Idempotent: true},
	}, limits{
		enums:  map[string][]string{"point": all},
		ranges: map[string]device.Range{"hours": {Min: 0.05, Max: 24}, "steps": {Min: 1, Max: maxSteps}},
	}, func(in historyIn) agents.Ask { return about(in.Point) }, nil, func(_ context.Context, _ agents.Principal, in historyIn, _ agents.Limits) (historyOut, error) {
		hours, steps := 12.0, 24.0
		if in.Hours != nil {
			hours = *in.Hours
		}
		if in.Steps != nil {
			steps = math.Floor(*in.Steps)
		}
		// Rounded up, or there would be a step more than was asked for.
		length := time.Duration(math.Ceil(hours*3600/steps)) * time.Second
		length = max(length, shortestStep)
		from := time.Now().Add(-time.Duration(hours * float64(time.Hour)))
		return a.history(in.Point, from, length), nil
	})
}

func (a *Agent) history(address string, from time.Time, length time.Duration) historyOut {
	out := historyOut{
		Point: address, Unit: a.byName[address].Unit, Step: seconds(length), Steps: []step{},
	}
	sum, count := 0.0, 0
	for i, s := range a.site.History.Summaries(address, from, length) {
		if i == 0 || s.Min < out.Min {
			out.Min = s.Min
		}
		if i == 0 || s.Max > out.Max {
			out.Max = s.Max
		}
		sum, count = sum+s.Mean*float64(s.Count), count+s.Count
		out.Steps = append(out.Steps, step{stamp(s.At), s.Min, s.Mean, s.Max})
	}
	if count > 0 {
		out.Mean = sum / float64(count)
	}
	return out
}

// stamp writes a time as the wire has it: RFC 3339 in UTC, to the millisecond.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// seconds is a length as the wire has it: to the millisecond, and 0 for without
// limit.
func seconds(d time.Duration) float64 {
	if d == guard.Unlimited {
		return 0
	}
	return math.Round(d.Seconds()*1000) / 1000
}
