package things

import (
	"context"
	"math"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// longestFor keeps for_seconds well inside a time.Duration; an output's own
// lease is far below it unless its owner wrote unlimited.
const longestFor = 366 * 24 * 3600

var forRange = device.Range{Min: 0.001, Max: longestFor}

type outputOut struct {
	Output string  `json:"output"`
	Value  value   `json:"value"`
	Goal   value   `json:"going_to,omitzero"` // on a ramp
	Safe   value   `json:"safe"`
	Held   float64 `json:"seconds_left,omitzero"`
}

type switchIn struct {
	Output string   `json:"output"`
	On     *bool    `json:"on"`
	For    *float64 `json:"for_seconds,omitzero" jsonschema:"then back to safe; 60 when left out"`
}

func (a *Agent) switchOutput() (verb, error) {
	all := a.addresses("switch_output", device.KindSwitch)
	if len(all) == 0 {
		return verb{}, nil
	}
	return define(agents.Tool{
		Name:        "switch_output",
		Description: "Switch an output for a time. Call again to keep it so, within the owner's limits.",
		Hints:       agents.Hints{Destructive: true}, // again is for longer
	}, limits{enums: map[string][]string{"output": all}, ranges: map[string]device.Range{"for_seconds": forRange}},
		func(in switchIn) agents.Ask {
			var v float64
			if in.On != nil && *in.On {
				v = 1
			}
			return agents.Ask{Points: named(in.Output), Value: &v, For: lengthOf(in.For)}
		},
		func(p agents.Principal, in switchIn, plan *agents.Plan) {
			a.plan(p, in.Output, device.Bool(*in.On), plan)
		},
		func(ctx context.Context, p agents.Principal, in switchIn, l agents.Limits) (outputOut, error) {
			return a.move(ctx, p, in.Output, device.Bool(*in.On), lengthOf(in.For), l)
		})
}

type levelIn struct {
	Output string   `json:"output"`
	Value  *float64 `json:"value" jsonschema:"within its range, see list_points"`
	For    *float64 `json:"for_seconds,omitzero" jsonschema:"then back to safe; 60 when left out"`
}

func (a *Agent) setLevel() (verb, error) {
	all := a.addresses("set_level", device.KindLevel)
	if len(all) == 0 {
		return verb{}, nil
	}
	return define(agents.Tool{
		Name:        "set_level",
		Description: "Set an output for a time. Call again to keep it so, within the owner's limits.",
		Hints:       agents.Hints{Destructive: true}, // again is for longer
	}, limits{enums: map[string][]string{"output": all}, ranges: map[string]device.Range{"for_seconds": forRange}},
		func(in levelIn) agents.Ask {
			return agents.Ask{Points: named(in.Output), Value: in.Value, For: lengthOf(in.For)}
		},
		func(p agents.Principal, in levelIn, plan *agents.Plan) {
			a.plan(p, in.Output, device.Number(*in.Value), plan)
		},
		func(ctx context.Context, p agents.Principal, in levelIn, l agents.Limits) (outputOut, error) {
			return a.move(ctx, p, in.Output, device.Number(*in.Value), lengthOf(in.For), l)
		})
}

func (a *Agent) move(ctx context.Context, p agents.Principal, output string, v device.Value, length time.Duration, l agents.Limits) (outputOut, error) {
	s, err := a.site.Outputs.Move(ctx, p.ID, output, v, within(length, l))
	return a.outputOut(s), err
}

// within is how long an output is held that a caller may hold for so long only. Longer
// ones that it asked for were refused before.
func within(length time.Duration, l agents.Limits) time.Duration {
	if length == 0 && l.Lease > 0 && l.Lease < guard.DefaultFor {
		return l.Lease
	}
	return length
}

// plan completes the plan of a move.
func (a *Agent) plan(p agents.Principal, output string, v device.Value, plan *agents.Plan) {
	policy, err := a.site.Outputs.Policy(output)
	if err == nil && v == policy.Safe {
		plan.Ask.Effect, plan.Idle = agents.Returns, a.idle(output)
		return
	}
	plan.Confirm = a.byName[output].confirm
	plan.Try = func(ctx context.Context, l agents.Limits) error {
		return a.site.Outputs.Try(ctx, p.ID, output, v, within(plan.Ask.For, l))
	}
	plan.Undo = func(ctx context.Context) error {
		_, err := a.site.Outputs.Release(ctx, output)
		return err
	}
}

// idle reports whether an output is safe and nobody has asked for anything else.
func (a *Agent) idle(output string) bool {
	return slices.ContainsFunc(a.site.Outputs.Status(), func(s guard.Status) bool {
		return s.Output == output && s.Safe && s.Holder == ""
	})
}

func lengthOf(forSeconds *float64) time.Duration {
	if forSeconds == nil {
		return 0
	}
	return time.Duration(math.Ceil(*forSeconds * float64(time.Second)))
}

func (a *Agent) outputOut(s guard.Status) outputOut {
	policy, _ := a.site.Outputs.Policy(s.Output)
	return outputOut{Output: s.Output, Value: s.Value.Any(), Goal: goal(s), Safe: policy.Safe.Any(), Held: seconds(s.Left)}
}

// goal is where a ramp leads, nil where an output is that far or nobody knows where.
func goal(s guard.Status) value {
	if s.Goal == s.Value || s.Value.IsZero() {
		return nil
	}
	return s.Goal.Any()
}

type releaseIn struct {
	Output string `json:"output"`
}

func (a *Agent) releaseOutput() (verb, error) {
	all := a.addresses("release_output", device.KindSwitch, device.KindLevel)
	if len(all) == 0 {
		return verb{}, nil
	}
	return define(agents.Tool{
		Name:        "release_output",
		Description: "Return an output to safe now. Always allowed.",
		Hints:       agents.Hints{Idempotent: true},
	}, limits{enums: map[string][]string{"output": all}},
		func(in releaseIn) agents.Ask { return agents.Ask{Points: named(in.Output), Effect: agents.Returns} },
		func(_ agents.Principal, in releaseIn, plan *agents.Plan) { plan.Idle = a.idle(in.Output) },
		func(ctx context.Context, _ agents.Principal, in releaseIn, _ agents.Limits) (outputOut, error) {
			s, err := a.site.Outputs.Release(ctx, in.Output)
			return a.outputOut(s), err
		})
}

type stopOut struct {
	Stopped bool        `json:"emergency_stop"`
	Outputs []outputOut `json:"outputs"`
}

func (a *Agent) emergencyStop() (verb, error) {
	ask := agents.Ask{Tool: "emergency_stop", Effect: agents.Returns}
	outputs := slices.ContainsFunc(a.points, func(p point) bool { return p.Kind.Output() })
	if !outputs || !a.sees(ask) {
		return verb{}, nil
	}
	return define(agents.Tool{
		Name:        "emergency_stop",
		Description: "Send every output to safe until the owner resets it in person. For when something goes wrong.",
		Hints:       agents.Hints{Destructive: true, Idempotent: true},
	}, limits{}, func(none) agents.Ask { return ask }, func(_ agents.Principal, _ none, plan *agents.Plan) {
		plan.Idle = a.site.Outputs.Stopped()
	}, func(ctx context.Context, _ agents.Principal, _ none, _ agents.Limits) (stopOut, error) {
		if err := a.site.Outputs.Stop(ctx); err != nil {
			return stopOut{}, err
		}
		out := stopOut{Stopped: true, Outputs: []outputOut{}}
		for _, s := range a.site.Outputs.Status() {
			if a.seen("release_output", s.Output) {
				out.Outputs = append(out.Outputs, a.outputOut(s))
			}
		}
		return out, nil
	})
}
